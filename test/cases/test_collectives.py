# SPDX-License-Identifier: Apache-2.0
"""NCCL: its calls as they are recorded, against the simulated NCCL's own log, and what reports say
of collectives that not all ranks have come to."""

import collections
import re

import pytest
import stream_reader
import toolchain
from stream_reader import COMMUNICATOR, LIBRARY_BEGIN, LIBRARY_END

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="many processes: run natively")


def nccl_work(*flags):
    nccl = str(toolchain.SIM / "libnccl.so.2")
    return toolchain.build("nccl_work.c", *toolchain.runtime(12), nccl, *flags)


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


@pytest.mark.parametrize("libraries", ["names", "off"])
def test_less_of_calls(library, tmp_path, libraries):
    _, processes = run(library, tmp_path, "train", 2, GPUPROF_LIBRARIES=libraries)
    for process in processes.values():
        assert not process.of_type(COMMUNICATOR)
        found = process.of_type(LIBRARY_BEGIN)
        assert not any(r.args for r in found) and len(found) == (13 if libraries == "names" else 0)
