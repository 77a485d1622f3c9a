# SPDX-License-Identifier: Apache-2.0
"""NCCL: its calls as they are recorded, against the simulated NCCL's own log, and what reports say
of collectives that not all ranks have come to."""

import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import conftest
import launched
import made_hosts
import pytest
import stream_reader
import toolchain
from made_libraries import Libraries
from made_ops import MAIN, TYPES
from stream_reader import COMMUNICATOR, LIBRARY_BEGIN, LIBRARY_END
from test_tables import on_terminal

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="many processes: run natively")
SECOND = 1_000_000_000


def nccl_work(*flags):
    nccl = str(toolchain.SIM / "libnccl.so.2")
    return toolchain.build("nccl_work.c", *toolchain.runtime(12), f"-I{toolchain.SIM_NCCL}", nccl,
                           *flags)


def settings_of(tmp_path, world, **more):
    log = tmp_path / "log"
    log.mkdir(exist_ok=True)
    return {"WORLD_SIZE": world, "MEET": tmp_path, "SIMNCCL_FOLDER": tmp_path, "SIMNCCL_LOG": log,
            "SIMCUDA_DEVICES": 8, **more}


class Call:
    """A call as the simulated NCCL has logged it."""

    def __init__(self, pid, words):
        self.pid, self.begin_ns, self.tid = pid, int(words[0]), int(words[1])
        self.name, self.result = words[3], None
        self.says = dict(word.split("=") for word in words[4].split() if "=" in word)

    def __getattr__(self, name):
        return self.says[name]


def logged(tmp_path):
    """All calls, by process in their order; each end belongs to its thread's newest open begin."""
    calls = []
    for path in sorted((tmp_path / "log").glob("nccl-*.log")):
        pid, opened = int(path.stem[5:]), collections.defaultdict(list)
        for line in path.read_text(encoding="ascii").splitlines():
            words = line.split("\t")
            if words[2] == "begin":
                calls.append(Call(pid, words))
                opened[words[1]].append(calls[-1])
            else:
                call = opened[words[1]].pop()
                assert call.name == words[3]
                call.result = int(re.match(r"result=(\d+)", words[4])[1])
    return calls


def test_the_simulated_nccl(tmp_path):
    """Without gpuprof: ranks in processes, splits, groups, communicators that do not block."""
    toolchain.run([nccl_work(), "all"],
                  toolchain.environment(None, **settings_of(tmp_path, 4)))
    calls = logged(tmp_path)
    ranks = {call.pid for call in calls}
    assert len(ranks) == 4 and not list(tmp_path.glob("simnccl-*"))
    by_comm = collections.defaultdict(lambda: collections.defaultdict(list))
    for call in calls:
        assert call.result is not None
        if "number" in call.says and call.name not in ("ncclSend", "ncclRecv"):
            by_comm[call.comm][call.rank].append((call.name, call.count, call.number))
    sizes = sorted(len(ranks) for ranks in by_comm.values())
    assert sizes == [2, 2, 3, 3, 4, 4, 4]
    for ranks in by_comm.values():  # as a real one demands: the same on all ranks
        assert len({tuple(each) for each in ranks.values()}) == 1


def test_the_simulated_nccl_in_one_process(tmp_path):
    toolchain.run([nccl_work(), "clique"],
                  toolchain.environment(None, **settings_of(tmp_path, 8)))
    calls = [call for call in logged(tmp_path) if "number" in call.says]
    assert len(calls) == 8 * 4 and len({call.comm for call in calls}) == 1
    for rank in range(8):
        assert [int(call.number) for call in calls if call.rank == str(rank)] == [0, 1, 2, 3]


def nvcc_built(source, program):
    command = ["nvcc", "-arch=compute_80", "-cudart", "shared", "-x", "cu", source,
               f"-I{toolchain.SIM_NCCL}", f"-L{toolchain.SIM}", "-lnccl", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("compiler", ("g++", pytest.param("nvcc", marks=pytest.mark.skipif(
    not shutil.which("nvcc"), reason="not run: no nvcc in PATH (of NVIDIA's CUDA toolkit)"))))
def test_the_header_serves_cpp_and_nvcc(tmp_path, compiler):
    """Its functions have C's names, its types their synonyms, and it hides no header of CUDA's."""
    source = "nccl_alone.cpp"
    if compiler == "nvcc":
        program = nvcc_built(toolchain.SOURCES / source, tmp_path / "alone")
    else:
        program = toolchain.build(source, *toolchain.runtime(13), f"-I{toolchain.SIM_NCCL}",
                                  f"-L{toolchain.SIM}", "-lnccl", compiler=compiler)
    done = toolchain.run([program], toolchain.environment(None, **settings_of(tmp_path, 1)))
    assert done.stdout == "0 2 6 7 8\n"
    assert [call.type for call in logged(tmp_path) if call.name == "ncclAllReduce"] == ["7"]


ASKS = ("ncclCommCount", "ncclCommUserRank", "ncclCommCuDevice", "ncclGetUniqueId")


def run(library, tmp_path, scene, world, **settings):
    """What the simulated NCCL has logged, and the recordings, by process."""
    env = toolchain.environment(tmp_path / "data", library,
                                **settings_of(tmp_path, world, **settings))
    toolchain.run([nccl_work(), scene], env)
    calls = collections.defaultdict(list)
    for call in logged(tmp_path):
        calls[call.pid].append(call)
    processes = {p.header.pid: p for p in stream_reader.read_folder(tmp_path / "data")}
    return calls, processes


def arguments(process, record):
    return dict(zip((label for _, label in process.functions[record.code].args), record.args))


def begins(process):
    """By thread, in its order."""
    tids = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    found = collections.defaultdict(list)
    for r in process.of_type(LIBRARY_BEGIN):
        found[tids[r.thread]].append((process.functions[r.code].symbol, arguments(process, r),
                                      r.begin))
    return found


def as_told(call, name=None):
    """The arguments of a call on a communicator, but for that, as its record is to have them."""
    told = {"sequence": int(call.number) + 1, "count": int(call.count), "type": int(call.type)}
    if int(call.op) >= 0:
        told["op"] = int(call.op)
    if int(call.peer) >= 0:
        told["peer" if call.name in ("ncclSend", "ncclRecv") else "root"] = int(call.peer)
    return name or call.name, told


@pytest.mark.parametrize("scene, world", [("all", 4), ("clique", 8)])
def test_calls_are_as_the_library_had_them(library, tmp_path, scene, world):
    """Each with its arguments and its number, the communicator the same on all its ranks."""
    calls, processes = run(library, tmp_path, scene, world)
    assert set(calls) == set(processes)
    ids = {}
    for pid, process in processes.items():
        assert not process.losses
        comms = [(r.begin, *r.args) for r in process.of_type(COMMUNICATOR)]
        told = [call for call in calls[pid] if call.name not in ASKS]
        by_thread = collections.defaultdict(list)
        for call in told:
            by_thread[call.tid].append(call)
        found = begins(process)
        assert {tid: [name for name, _, _ in begun] for tid, begun in found.items()} == \
            {tid: ["ncclBcast" if call.name == "ncclBroadcast" else call.name for call in begun]
             for tid, begun in by_thread.items()}
        for (name, args, begin), call in ((f, c) for tid, begun in by_thread.items()
                                   for f, c in zip(found[tid], begun)):
            if "number" not in call.says or call.result == 4:
                continue
            assert as_told(call, name) == (name, {label: value for label, value in args.items()
                                                  if label not in ("comm", "stream")})
            # What its handle means then.
            _, _, number, rank, ranks, _ = max(each for each in comms
                                               if each[1] == args["comm"] and each[0] <= begin)
            assert rank == int(call.rank)
            ids.setdefault(call.comm, set()).add((number, ranks))
        splits = [args["split"] for begun in found.values() for _, args, _ in begun
                  if "split" in args]
        assert splits == ([1, 2, 3] if scene == "all" else [])[:len(splits)] and \
            len(splits) in ((2, 3) if scene == "all" else (0,))
        results = [r.result for r in process.of_type(LIBRARY_END)]
        assert sorted(results) == sorted(call.result for call in told)
    assert all(len(each) == 1 for each in ids.values())
    assert sorted(ranks for [(_, ranks)] in ids.values()) == \
        ([2, 2, 3, 3, 4, 4, 4] if scene == "all" else [8])


def test_calls_are_counted_while_nothing_is_recorded(library, tmp_path):
    """From the communicator's creation on; what it is stands in the file when the first is."""
    _, processes = run(library, tmp_path, "paused", 2)
    for process in processes.values():
        [(name, args, _)] = [each for begun in begins(process).values() for each in begun
                             if "sequence" in each[1]]
        [communicator] = process.of_type(COMMUNICATOR)
        assert (name, args["sequence"], args["comm"]) == ("ncclAllReduce", 4, communicator.args[0])
        assert communicator.args[3] == 2
    assert len({p.of_type(COMMUNICATOR)[0].args[1] for p in processes.values()}) == 1
    assert {p.of_type(COMMUNICATOR)[0].args[2] for p in processes.values()} == {0, 1}


def test_a_recording_of_halves_of_groups(library, tmp_path):
    """It stops in the middle of a group and goes on in the middle of the next: what is recorded is
    whole, and has its number."""
    _, processes = run(library, tmp_path, "halves", 1)
    [process] = processes.values()
    [begun] = begins(process).values()
    assert [(name, args.get("sequence"), args.get("count")) for name, args, _ in begun] == \
        [("ncclCommInitRank", None, None), ("ncclGroupStart", None, None), ("ncclAllReduce", 1, 1),
         ("ncclAllReduce", 4, 2), ("ncclGroupEnd", None, None)]
    assert len(process.of_type(stream_reader.LIBRARY_END)) == 5 and not process.losses


@pytest.mark.parametrize("libraries", ["names", "off"])
def test_less_of_calls(library, tmp_path, libraries):
    _, processes = run(library, tmp_path, "train", 2, GPUPROF_LIBRARIES=libraries)
    for process in processes.values():
        assert not process.of_type(COMMUNICATOR)
        found = process.of_type(LIBRARY_BEGIN)
        assert not any(r.args for r in found) and len(found) == (13 if libraries == "names" else 0)


@pytest.mark.parametrize("libraries", ["on", "names", "off"])
def test_a_call_is_one_row(library, collector, tmp_path, libraries):
    """NCCL says its calls by ranges, too: these are shown where its calls are not."""
    calls, _ = run(library, tmp_path, "train", 2, GPUPROF_LIBRARIES=libraries)
    told = collections.Counter(call.name for each in calls.values() for call in each
                               if call.name not in ASKS)
    found = json.loads(report(collector, tmp_path / "data", "--format=json"))
    ranges = {row["name"].removeprefix("NCCL:"): row["instances"] for row in found["nvtx_sum"]}
    subprocess.run([collector, "merge", "--keep-live", tmp_path / "data", "-o",
                    tmp_path / "trace.json"], check=True, timeout=60, capture_output=True)
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    shown = collections.Counter(event["name"] for event in events
                                if event.get("ph") in "XB" and event["name"] in told)
    assert shown == told and sum(told.values()) == 2 * 13
    assert {name: ranges.get(name, 0) for name in told} == \
        (told if libraries == "off" else dict.fromkeys(told, 0))


# ---- what a report says of them ----


def report(collector, data, *options):
    done = subprocess.run([collector, "report", "--keep-live", *options, data], timeout=180,
                          capture_output=True, text=True, check=False)
    return done.stdout


def pending(collector, data):
    """What the report has of collectives, and its first line; nothing before there are files."""
    text = report(collector, data, "--format=json")
    return json.loads(text)["collectives"] if text else []


class Job:
    """nccl_work with a rank that is absent, in a group of processes of its own."""

    def __init__(self, library, tmp_path, scene="train", world=8, **settings):
        self.data = tmp_path / "data"
        env = toolchain.environment(self.data, library, **settings_of(tmp_path, world), **{
            "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.12",
            "GPUPROF_LIVE": tmp_path, "GPUPROF_BACKTRACE": "launch,sync", **settings})
        self.program = conftest.Program([nccl_work(), scene], env=env, text=True,
                                        stdout=subprocess.PIPE, start_new_session=True)
        for line in self.program.stdout:
            if line.strip() == "stays":
                break

    def __enter__(self):
        return self

    def kill(self, number=signal.SIGKILL):
        if self.program.poll() is None:
            os.killpg(self.program.pid, number)
            self.program.wait()

    def __exit__(self, kind, value, trace):
        self.kill()
        self.program.stdout.close()


def line_of(text):
    lines = (toolchain.SOURCES / "nccl_work.c").read_text(encoding="ascii").splitlines()
    [number] = [i for i, line in enumerate(lines, 1) if text in line]
    return f"nccl_work.c:{number}"


@pytest.mark.parametrize("number, stays, gpu", [(4, "away", "on"), (9, "sync", "on"),
                                                (4, "away", "off")])
def test_a_rank_that_does_not_come(library, collector, tmp_path, number, stays, gpu):
    """Which one, from which line on, what it has not called, and what the others wait for; while
    they run, and after they were killed."""
    with Job(library, tmp_path, SIMNCCL_ABSENT=f"5:{number}", STAYS_IN=stays, GPUPROF_GPU=gpu,
             SIMCUDA_ENDLESS="forever", SIMCUPTI_BUFFER_BYTES=1024) as job:
        launched.wait_until(lambda: len(pending(collector, job.data)) == 8, 120)
        running = pending(collector, job.data)
        first = report(collector, job.data).splitlines()[0]
        job.kill()
        killed = pending(collector, job.data)
        findings = json.loads(report(collector, job.data, "--format=json"))["findings"]
        text = report(collector, job.data).splitlines()
    name, size = ("ncclAllReduce", 4 << 16) if number % 2 == 0 else ("ncclAllGather", 2 << 13)
    for found in (running, killed):
        late, *others = found
        assert (late["rank"], late["state"], late["communicator_rank"]) == ("5", "not called", 5)
        assert [each["rank"] for each in others] == list("0123467")
        assert {each["state"] for each in others} == \
            {"kernel not finished" if gpu == "on" else "called, not known whether finished"}
        assert all((each["function"], each["sequence"], each["bytes"], each["ranks"]) ==
                   (name, number + 1, size, 8) for each in found)
        assert all(each["waited_ns"] >= 1_000_000_000 for each in found)
        if stays == "sync":
            assert late["last_call"] == "cudaStreamSynchronize" and late["last_call_open"]
            assert late["line"] == f"stays_away ({line_of('never returns')})"
        else:
            assert not late["last_call_open"]
            assert f"step ({line_of('launch(compute,')})" in late["stack"]
    assert text[0].startswith(f"  collective rank 5 of 8 has not called {name} {number + 1} (")
    assert late["line"] in text[0]
    if gpu == "on":  # of the other waits that hang nothing else is said
        hang, *others = findings
        assert hang["id"] == "hang" and hang["evidence"][0]["where"].endswith(text[0][13:])
        assert re.match("rank [0-7] waits", hang["evidence"][0]["where"])
        assert (hang["rank"], hang["pid"]) == ("5", killed[0]["pid"])
        assert hang["where"] == (None if "newest stack" in text[0] else late["line"])
        assert all(row["ns"] < SECOND for row in others), others
        screen = "\n".join(text[:text.index("")])
        assert "  held back  " in screen and "  lost       nothing" in screen
        assert re.search("finding .* the other ranks wait in a collective for this one\n +rank 5",
                         screen)
    assert "its process" not in text[0] + first  # it was ended with all the others
    assert re.search("^  open .* in rank [0-7]", text[1])


def test_a_call_of_nccl_that_does_not_return(library, collector, tmp_path):
    """On the host, where no call of CUDA's is open and nothing is recorded any more: alive, too."""
    with Job(library, tmp_path, scene="unmade", world=2) as job:
        launched.wait_until(lambda: len(pending(collector, job.data)) == 2, 120)
        running = json.loads(report(collector, job.data, "--format=json"))
        job.kill()
        killed = json.loads(report(collector, job.data, "--format=json"))
        text = report(collector, job.data).splitlines()
    for found in (running, killed):
        late, waits = found["collectives"]
        assert (late["rank"], late["state"]) == ("1", "not called")
        assert (waits["rank"], waits["state"]) == ("0", "called")
        [call] = found["open_calls"]
        assert (call["function"], call["domain"], call["rank"]) == ("ncclCommInitRank", "nccl", "0")
        hang = found["findings"][0]
        assert (hang["id"], hang["rank"]) == ("hang", "1")
        assert [row["name"] for row in hang["evidence"]] == ["ncclCommInitRank"]
    assert text[0].startswith("  collective rank 1 of 2 has not called ncclCommInitRank, ")
    assert text[1].startswith("  open       ncclCommInitRank had not returned after ")


@pytest.mark.parametrize("apart, stays", [(signal.SIGKILL, "away"), (signal.SIGKILL, "sync"),
                                          (signal.SIGSTOP, "away"), (0, "away")])
def test_a_rank_that_was_killed(library, collector, tmp_path, apart, stays):
    """Before the others, outside of calls or in one, which it is in no longer; or with them, by a
    signal that ends all, long after its last call. One that was stopped is seen to be so while it
    is there."""
    with Job(library, tmp_path, SIMNCCL_ABSENT="5:3", SIMCUDA_ENDLESS="forever",
             STAYS_IN=stays) as job:
        launched.wait_until(lambda: len(pending(collector, job.data)) == 8, 120)
        if apart:
            os.kill(pending(collector, job.data)[0]["pid"], apart)
            time.sleep(2.5)
            while_they_run = report(collector, job.data).splitlines()[0]
        else:
            launched.wait_until(
                lambda: pending(collector, job.data)[0]["last_call_ago_ns"] > 3 * SECOND, 120)
        job.kill(signal.SIGKILL if apart == signal.SIGSTOP else signal.SIGTERM)
        text = report(collector, job.data)
    said = "; its process was killed or stopped, or called exec: find out why"
    first = text.splitlines()[0]
    assert first.startswith("  collective rank 5 of 8 has not called ")
    assert text.count(said) == 2 * bool(apart)
    if apart:
        assert while_they_run.endswith("; its process is stopped by a signal or a debugger"
                                       if apart == signal.SIGSTOP else said)
    assert re.search({
        "away": r"; its last call was \S+, \d\S* s ago, at step \(nccl_work\.c:\d+\)",
        "sync": r"; its open call was cudaStreamSynchronize, \d\S* s ago, at stays_away \("
    }[stays], first), first


def test_a_job_that_goes_on(library, collector, tmp_path):
    """Nothing is said of it, though its processes end at different times."""
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_GPU="on",
                                GPUPROF_CUPTI=toolchain.SIM / "libcupti.so.12",
                                **settings_of(tmp_path, 8))
    toolchain.run([nccl_work(), "train"], env)
    assert pending(collector, tmp_path / "data") == []
    assert "collective" not in report(collector, tmp_path / "data").splitlines()[0]


def test_ranks_that_call_different_things(library, collector, tmp_path):
    """The first time that they do, whether anybody waits or not."""
    run(library, tmp_path, "mismatch", 4)
    found = pending(collector, tmp_path / "data")
    text = report(collector, tmp_path / "data").splitlines()[0]
    assert [(each["rank"], each["state"], each["function"], each["bytes"]) for each in found] in (
        [("1", "called something else", "ncclAllGather", 256),
         *[(rank, "finished", "ncclAllReduce", 256) for rank in "023"]],
        [*[(rank, "called something else", "ncclAllReduce", 256) for rank in "023"],
         ("1", "finished", "ncclAllGather", 256)])
    assert {each["sequence"] for each in found} == {2}
    assert re.match(r"  collective (rank 1 called ncclAllGather 2 .* others of 4 called "
                    r"ncclAllReduce 2|rank 0, rank 2, rank 3 called ncclAllReduce 2)", text)


COMM, ID = 0x5500, 0x1234


class World:
    """Recordings of ranks that were killed after so many seconds, but for those that ended."""

    def __init__(self, count, number=ID):
        self.ranks = [Libraries() for _ in range(count)]
        for i, rank in enumerate(self.ranks):
            rank.lines[0] = f"meta env.RANK={i}"
            rank.lines.append("meta recovered=1")
            rank.communicator(COMM, number, i, count)

    def counted(self, i, name, sequence, count=8, **more):
        with self.ranks[i].library(name, "nccl", comm=COMM, sequence=sequence, count=count, type=7,
                                   stream=0x7000, **more):
            self.ranks[i].call("cudaLaunchKernel", [0, 1, 1, 32, 1, 0, 0x7000])

    def write(self, folder, seconds=3, first=0):
        folder.mkdir(exist_ok=True)
        maker = conftest.built(conftest.BUILD / "make_raw")
        for i, rank in enumerate(self.ranks):
            rank.now = max(each.now for each in self.ranks) if seconds else rank.now
            rank.now += int(seconds * SECOND)
            rank.call("cudaFree", [0])
        for i, rank in enumerate(self.ranks):
            subprocess.run([maker, folder / f"{first + i}.gpuprof", str(first + i)], text=True,
                           check=True, input="\n".join(rank.lines) + "\n", timeout=60)
        return folder

    def found(self, collector, tmp_path, seconds=3):
        return [(row["rank"], row["state"], row["function"], row["sequence"])
                for row in pending(collector, self.write(tmp_path / "data", seconds))]


@pytest.mark.parametrize("seconds", [3, 0.3])
def test_all_ranks_are_in_a_call(collector, tmp_path, seconds):
    """That does not return, with all ranks' kernels launched or none; or has just begun."""
    world = World(2)
    for rank in world.ranks:
        rank.begin("ncclAllReduce", "nccl", comm=COMM, sequence=1, count=8, type=7, stream=0x7000)
    world.ranks[0].call("cudaLaunchKernel", [0, 1, 1, 32, 1, 0, 0x7000])
    found = world.found(collector, tmp_path, seconds)
    assert found == ([("0", "called", "ncclAllReduce", 1), ("1", "called", "ncclAllReduce", 1)]
                     if seconds > 1 else [])


def test_failed_calls_of_libraries(run_verb, tmp_path):
    """Are errors as any: on the first screen, in their table, and in parts that are added up."""
    made = Libraries()
    made.call("cudaMalloc", [8, 0x1000])
    for result in (0, 7, 7, 5):  # 7: it is in progress
        with made.library("ncclAllReduce", "nccl", comm=COMM, result=result):
            pass
    for _ in range(2):
        with made.library("cublasGemmEx", m=8, n=8, k=8, result=13):
            pass
    data = made.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    [first] = [line for line in run_verb("report", data).stdout.splitlines()
               if line.startswith("  error ")]
    assert first == "  error      3 failed; first ncclInvalidUsage of ncclAllReduce"
    parts = [tmp_path / f"{i}.part" for i in range(2)]
    for i, part in enumerate(parts):
        run_verb("report", "--partial", f"--share={i}/2", "-o", part, data)
    for words in ([data], ["--combine", *parts]):
        found = json.loads(run_verb("report", "--format=json", *words).stdout)
        assert [(row["function"], row["domain"], row["error"], row["count"])
                for row in found["failures"]] == \
            [("ncclAllReduce", "nccl", "ncclInvalidUsage", 1),
             ("cublasGemmEx", "cublas", "CUBLAS_STATUS_EXECUTION_FAILED", 2)]
        assert [row["function"] for row in found["functions"]] == ["cudaMalloc"]


def test_a_collective_is_young(collector, tmp_path):
    """Killed in its work: nobody had waited for long."""
    world = World(2)
    world.counted(0, "ncclAllReduce", 1)
    assert world.found(collector, tmp_path, 0.5) == []


@pytest.mark.parametrize("how", ["paused", "dropped", "ended", None])
def test_who_is_blamed(collector, tmp_path, how):
    """Nobody whose calls may be missing; nobody waits who has ended, or has destroyed it."""
    world = World(3)
    for i in (0, 1):
        world.counted(i, "ncclAllReduce", 1)
    if how == "paused":
        world.ranks[2].add(MAIN, TYPES["pause"], [1])
    elif how == "dropped":
        world.ranks[2].add(0, TYPES["counter"], [5], "dropped")
    elif how == "ended":
        world.ranks[0].lines.remove("meta recovered=1")
        with world.ranks[1].library("ncclCommAbort", "nccl", comm=COMM):
            pass
    assert world.found(collector, tmp_path) == ([] if how else [
        ("2", "not called", "ncclAllReduce", 1), ("0", "kernel not finished", "ncclAllReduce", 1),
        ("1", "kernel not finished", "ncclAllReduce", 1)])


def test_who_is_blamed_on_80_columns(collector, tmp_path):
    """The first lines are there as a whole; in the table what rank 1 did has a line of its own."""
    world = World(2)
    world.counted(0, "ncclAllReduce", 1)
    world.found(collector, tmp_path)
    shown = on_terminal([collector, "report", tmp_path / "data"], 80)
    first = " ".join(shown[:shown.index("  wall time")].split())
    assert first.startswith("collective rank 1 of 2 has not called ncclAllReduce 1")
    assert "..." not in first and "others have waited" in first and "was cudaFree, " in first
    assert re.search(r"  rank 1: ncclAllReduce 1 \S.*\n +its last call ",
                     shown[shown.index("collectives that"):]), shown


def test_a_stack_that_is_not_of_the_last_call(collector, tmp_path):
    """It says where the rank was before, and not where it is."""
    world = World(2)
    world.counted(0, "ncclAllReduce", 1)
    late = world.ranks[1]
    late.add(MAIN, TYPES["python"], [1, 7], b"/home/me/data.py\0load")
    late.add(MAIN, TYPES["stack"], [1, 0], (2 << 60 | 1).to_bytes(8, "little"))
    late.add(MAIN, "cudaMalloc", [8], code=1)
    row, _ = pending(collector, world.write(tmp_path / "data"))
    first = report(collector, tmp_path / "data").splitlines()[0]
    assert re.search(r"; its last call was cudaFree, \S+ [mun]?s ago; newest stack, of an earlier "
                     r"call: load \(.*data\.py:7\)", first), first
    assert row["stack_ago_ns"] >= row["last_call_ago_ns"] + 3 * SECOND


def test_a_message_that_nobody_receives(collector, tmp_path):
    """By the two ranks and the direction: the third one has nothing to do with it."""
    world = World(3)
    for sequence in (1, 2):
        world.counted(0, "ncclSend", sequence, peer=2)
        world.counted(2, "ncclSend", sequence, peer=0)
        world.counted(0, "ncclRecv", sequence, peer=2)
    world.counted(2, "ncclRecv", 1, peer=0)
    assert world.found(collector, tmp_path) == [
        ("2", "not called", "ncclSend", 2), ("0", "kernel not finished", "ncclSend", 2)]


def test_a_communicator_that_is_never_made(collector, tmp_path):
    """Who has not come is known by the number that the launcher gave it."""
    world = World(4)
    for i, rank in enumerate(world.ranks):
        if i != 1:
            rank.begin("ncclCommInitRank", "nccl", comm=0, id=0x77, rank=i, ranks=4)
    assert world.found(collector, tmp_path) == [
        ("1", "not called", "ncclCommInitRank", 1), *[(str(i), "called", "ncclCommInitRank", 1)
                                                      for i in (0, 2, 3)]]


@pytest.mark.parametrize("ranks, numbers, come", [
    (2, (0, 1, 2, 3), {2: 0}),  # of which each has another number in it
    (2, (0, 1, 2, 3), {0: 0}),  # with 0 and 3
    (4, (None,) * 4, {0: 0, 2: 2, 3: 3}),  # no launcher has numbered them
    (4, (0, 1, 1, 2, 3), {0: 0, 3: 2, 4: 3}),  # a rank has started another program
    (4, (0, 2, 3), {0: 0, 1: 2, 2: 3})])
def test_who_does_not_make_a_communicator(collector, tmp_path, ranks, numbers, come):
    """Its numbers may be its own: nobody is taken for who has not come because the job has given
    him that number."""
    world = World(len(numbers))
    for i, rank in enumerate(world.ranks):
        rank.lines[0] = f"meta env.RANK={numbers[i]}" if numbers[i] is not None else "meta of=none"
        rank.lines.append("meta env.TORCHELASTIC_RUN_ID=run")
        if i in come:
            rank.begin("ncclCommInitRank", "nccl", comm=0, id=0x77, rank=come[i], ranks=ranks)
    late, *others = pending(collector, world.write(tmp_path / "data"))
    first = report(collector, tmp_path / "data").splitlines()[0]
    assert (late["state"], late["communicator_rank"], late["rank"]) == ("not called", 1, None)
    assert {row["pid"] - 1000: row["communicator_rank"] for row in others} == come
    of = f"of {'a communicator of ' if ranks == 2 else ''}{ranks}"
    assert first.startswith(f"  collective rank 1 {of} has not called ncclCommInitRank, "), first
    assert first.endswith(" s for it; none of its calls is recorded here"), first


@pytest.mark.parametrize("is_made", [True, False])
def test_two_jobs(collector, tmp_path, is_made):
    """Of which one hangs, and the other goes on for a minute: that is none of the first one's
    time, and its rank 1 is not who has not come."""
    worlds = World(2), World(2, ID + 1)
    for job, world in enumerate(worlds):
        for rank in world.ranks:
            rank.lines.append(f"meta env.TORCHELASTIC_RUN_ID=run{job}")
    if is_made:
        worlds[0].counted(0, "ncclAllReduce", 1)
    else:
        worlds[0].ranks[0].begin("ncclCommInitRank", "nccl", comm=0, id=0x77, rank=0, ranks=2)
    for job, world in enumerate(worlds):
        world.write(tmp_path / "data", 60 if job else 3, first=2 * job)
    rows = pending(collector, tmp_path / "data")
    assert [(row["rank"], row["job"], row["pid"], row["state"]) for row in rows] == [
        ("1", 0, 1001, "not called"),
        ("0", 0, 1000, "kernel not finished" if is_made else "called")]
    assert rows[0]["last_call_ago_ns"] < SECOND
    first = report(collector, tmp_path / "data").splitlines()[0]
    assert re.match(r"  collective rank 1 of 2 in job 0 has not called nccl", first), first
    assert re.search(r" its last call was cudaFree, [\d.]+ [mun]s ago", first), first


@pytest.mark.parametrize("before, behind_s, died_s, is_over", [
    (0, 0, 300, True), (0, 0, 0, False),
    (20, 10, 0, False), (20, 3600, 10, True), (20, -3600, 10, True)])
def test_a_process_ends_by_no_clock(run_verb, make_records, before, behind_s, died_s, is_over):
    """The late rank's host has a clock that is behind by so much, which only collectives before the
    hang can tell; its process ended so much before the others, which waited for it."""
    hosts = [made_hosts.Host(0), made_hosts.Host(1, -behind_s * SECOND)]
    ranks = [made_hosts.Rank(i, hosts[i == 1]) for i in range(4)]
    job = made_hosts.Job(random.Random(1), ranks, late=0, lost=0)
    job.communicator(9, range(4))
    for i in range(before):
        job.collective(9, made_hosts.BEGIN + (i + 1) * SECOND // 10)
    hang = made_hosts.BEGIN + 3 * SECOND
    for rank in ranks:
        if rank.number != 1:
            rank.collective(9, before + 1, hang, 0, 0, has_kernel=False)
        rank.mark(hang + 400 * SECOND - (died_s * SECOND if rank.number == 1 else 0))
    job.last = 4 * SECOND
    lines = [line for rank in ranks for line in (*rank.text(4), "meta recovered=1")]
    first = run_verb("report", make_records(lines)).stdout.splitlines()[0]
    assert first.startswith("  collective rank 1 of 4 has not called ncclAllReduce "), first
    assert ("; its process has ended" in first) == is_over, first


@pytest.mark.parametrize("how, state", [("hangs", "called"), ("returns", "called, not known")])
def test_a_split_that_not_all_have_called(collector, tmp_path, how, state):
    """By its number on the parent, whatever the color; a communicator that does not block may still
    be in progress."""
    world = World(3)
    for i, rank in enumerate(world.ranks):
        args = {"comm": 0, "parent": COMM, "color": i % 2, "key": 0}
        with rank.library("ncclCommSplit", "nccl", **args, split=1):
            pass
        if i != 1:
            rank.begin("ncclCommSplit", "nccl", **args, split=2)
            if how == "returns":
                rank.end("ncclCommSplit", result=7)
    found = [(rank, text.removesuffix(" whether finished"), *more)
             for rank, text, *more in world.found(collector, tmp_path)]
    assert found == [("1", "not called", "ncclCommSplit", 2), ("0", state, "ncclCommSplit", 2),
                     ("2", state, "ncclCommSplit", 2)]


def test_the_first_that_is_missing_is_told(collector, tmp_path):
    """Of a hundred that the others have called ahead; of each communicator one."""
    world = World(2)
    for rank in world.ranks:
        rank.communicator(COMM + 1, ID + 1, world.ranks.index(rank), 2)
    for sequence in range(1, 101):
        world.counted(0, "ncclAllReduce" if sequence % 2 else "ncclAllGather", sequence)
        if sequence < 42:
            world.counted(1, "ncclAllReduce" if sequence % 2 else "ncclAllGather", sequence)
    assert world.found(collector, tmp_path) == [
        ("1", "not called", "ncclAllGather", 42), ("0", "kernel not finished", "ncclAllGather", 42)]


def test_bus_bandwidth(library, tmp_path, run_verb):
    """By nccl-tests' formulae, from the shortest kernel of each collective among the ranks."""
    world, floats, steps = 4, 1 << 16, 5
    _, processes = run(library, tmp_path, "train", world, GPUPROF_GPU="on",
                       GPUPROF_CUPTI=toolchain.SIM / "libcupti.so.12")
    of_ranks = []  # of each the kernels of its collectives, in their order
    for process in processes.values():
        names = {r.args[0]: r.text.decode() for r in process.of_type(stream_reader.TYPE_NUMBERS
                                                                     ["kernel_name"])}
        of_ranks.append([(r.begin, r.duration) for r in process.of_type(stream_reader.TYPE_NUMBERS
                                                                        ["kernel"])
                         if "nccl" in names[r.args[3]]])
        assert len(of_ranks[-1]) == 2 * steps + 1
    shortest = [min(ns for _, ns in kernels)
                for kernels in zip(*(sorted(kernels) for kernels in of_ranks))]
    found = json.loads(run_verb("report", "--format=json", tmp_path / "data").stdout)
    rows = {row["function"]: row for row in found["library"]}
    for function, kernels, size in (
            ("ncclAllReduce", shortest[:-1:2], 2 * (world - 1) / world * 4 * floats),
            ("ncclAllGather", shortest[1:-1:2], (world - 1) / world * 2 * floats)):
        row = rows[function]
        assert row["calls"] == world * steps and row["bus_calls"] == steps
        assert row["name"].endswith(f"over {world} ranks")
        assert row["bus_gb_s"] == pytest.approx(steps * size / sum(kernels), rel=0.01)
    launched_by = {row["name"]: row.get("launched_by") for row in found["cuda_gpu_kern_sum"]}
    assert launched_by.pop("compute(float*)") is None
    assert all(by.startswith("nccl") for by in launched_by.values())


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_file_says(collector, tmp_path, seed):
    """Calls and communicators of any numbers: a report, and in time."""
    said = random.Random(seed)
    world = World(3)

    def number():
        return said.choice((0, 1, 2, 3, COMM, COMM + 1, said.getrandbits(32), 2**32 - 1, 2**64 - 1,
                            said.getrandbits(64)))

    names = ("ncclAllReduce", "ncclSend", "ncclRecv", "ncclBcast", "ncclCommInitRank",
             "ncclGroupStart", "ncclGroupEnd", "ncclCommDestroy", "ncclCommSplit")
    labels = {name: said.sample(("comm", "sequence", "count", "type", "op", "root", "peer", "id",
                                 "rank", "ranks", "stream", "parent"), 8) for name in names}
    for rank in world.ranks:
        for _ in range(4000):
            name = said.choice(names)
            args = {label: number() for label in labels[name]}
            what = said.randrange(4)
            if what == 0:
                rank.add(MAIN, TYPES["communicator"], [number() for _ in range(5)])
            elif what == 1:
                rank.end(name) if name in rank.codes else rank.call("cudaFree", [0])
            else:
                rank.begin(name, "nccl", **args)
    for row in world.found(collector, tmp_path):
        assert row[1]
    text = subprocess.run([collector, "report", "--full", tmp_path / "data"], timeout=60,
                          capture_output=True, check=False)
    assert text.returncode in (0, 3) and text.stdout
