# SPDX-License-Identifier: Apache-2.0
"""Jobs of many ranks: which processes are of one, and who was late to what."""

import collections
import csv
import dataclasses
import gzip
import io
import json
import random
import re
import statistics
import struct
import subprocess
import zipfile

import conftest
import pytest
import stream_reader
from made_hosts import BEGIN, MS, Host, Job, Rank
from made_libraries import Libraries
from test_idle import DEVICE, US, Script, damage, reduces
from test_partial import check_equal, make_parts, sealed

SECOND = 10 ** 9
EPOCH = 1_700_000_000 * SECOND  # as stream_builder has it


@dataclasses.dataclass
class Process:
    """A recorded process, which is there from `begin` on, in seconds, for `lasts`."""
    rank: int
    begin: float
    lasts: float
    says: dict = dataclasses.field(default_factory=dict)
    parent: int = 1
    host: int = 0
    pid: int = 0


def rewrite(path, process):
    """Sets what make_records gives to no two processes differently."""
    content = bytearray(path.read_bytes())
    header = stream_reader.read_header(bytes(content))
    content[40:56] = bytes([process.host + 1]) * 16
    struct.pack_into("<II", content, 72, process.pid or header.pid, process.parent)
    struct.pack_into("<Q", content, 108, EPOCH + int(process.begin * SECOND))
    crc = stream_reader.crc32c(bytes(content[:header.bytes - 4]))
    struct.pack_into("<I", content, header.bytes - 4, crc)
    path.write_bytes(content)


@pytest.fixture(name="recorded")
def fixture_recorded(make_records):
    def record(processes):
        lines = []
        for number, process in enumerate(processes):
            script = Script(number, now=0)
            script.launch()
            script.now = int(process.lasts * 1e6) - 200
            script.launch()
            says = {"RANK": process.rank, **process.says}
            text = script.text()
            lines += [text[0], *(f"meta env.{name}={value}" for name, value in says.items()),
                      *text[1:]]
        folder = make_records(lines)
        for path in folder.glob("*.gpuprof"):
            pid = stream_reader.read_header(path.read_bytes()).pid
            rewrite(path, processes[pid - 1000])
        return folder
    return record


def ranks_table(run_verb, *words):
    done = run_verb("report", "--format=json", "--table=ranks", *words)
    return [(row["job"], int(row["rank"])) for row in json.loads(done.stdout)["ranks"]], done.stderr


def world(size, begin, lasts=10, **says):
    return [Process(rank, begin + 0.1 * rank, lasts, dict(says)) for rank in range(size)]


TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
SEVERAL = {
    # Slurm's steps at one time, and one of them again under another number
    "slurm": [world(3, 0, SLURM_JOB_ID=17, SLURM_STEP_ID=0, RANK="", SLURM_PROCID=""),
              world(2, 1, SLURM_JOB_ID=17, SLURM_STEP_ID=1, RANK="", SLURM_PROCID=""),
              world(3, 2, SLURM_JOB_ID=18, SLURM_STEP_ID=0, RANK="", SLURM_PROCID="")],
    "torchrun": [world(4, 0, **TORCHRUN), world(2, 1, **{**TORCHRUN, "MASTER_PORT": "29501"})],
    # the same words twice: by time alone
    "again": [world(4, 0, **TORCHRUN), world(4, 20, **TORCHRUN), world(2, 40, **TORCHRUN)],
    "restarted": [world(4, 0, **TORCHRUN, TORCHELASTIC_RESTART_COUNT=0),
                  world(4, 10.5, **TORCHRUN, TORCHELASTIC_RESTART_COUNT=1)],
    "loop": [world(3, 0), world(3, 20)],
    "mpi": [world(2, 0, RANK="", OMPI_COMM_WORLD_RANK="", PMIX_NAMESPACE="1885732865"),
            world(3, 0.05, RANK="", OMPI_COMM_WORLD_RANK="", PMIX_NAMESPACE="1885732867")],
    "horovod": [world(2, port / 20, RANK="", HOROVOD_RANK="", HOROVOD_GLOO_RENDEZVOUS_ADDR="n1",
                      HOROVOD_GLOO_RENDEZVOUS_PORT=port) for port in range(2)],
    "mvapich": [world(2, step / 20, RANK="", MV2_COMM_WORLD_RANK="", SLURM_JOB_ID=7,
                      SLURM_STEP_ID=step) for step in range(2)],
}


def with_rank(process):
    """Under the variable that its launcher has."""
    for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "MV2_COMM_WORLD_RANK"):
        if name in process.says:
            process.says[name] = process.rank
    return process


def check_screen(run_verb, folder, processes, ranks):
    """The first screen counts a rank once, whatever children it has forked."""
    text = run_verb("report", folder).stdout
    assert f"{processes} processes ({ranks} ranks)," in text
    overview = json.loads(run_verb("report", "--format=json", folder).stdout)["overview"]
    assert (overview["processes"], overview["ranks"]) == (processes, ranks)


@pytest.mark.parametrize("kind", SEVERAL)
def test_jobs_in_one_folder(kind, run_verb, recorded):
    """Their processes in any order; each job can be looked at alone, and so can a rank of it."""
    jobs = [[with_rank(process) for process in job] for job in SEVERAL[kind]]
    processes = [process for job in jobs for process in job]
    random.Random(kind).shuffle(processes)
    folder = recorded(processes)
    rows, said = ranks_table(run_verb, folder)
    assert rows == [(number, process.rank) for number, job in enumerate(jobs) for process in job]
    assert f"belong to {len(jobs)} jobs" in said and len(said.splitlines()) == 1
    for number, job in enumerate(jobs):
        rows, said = ranks_table(run_verb, f"--job={number}", folder)
        assert [rank for _, rank in rows] == [process.rank for process in job] and not said
    text = run_verb("report", "--table=ranks", folder).stdout
    assert "rank 1 of job 1 (" in text
    check_screen(run_verb, folder, len(processes), len(processes))
    trace = folder.parent / "trace.json"
    run_verb("merge", "--job=1", "--rank=1", folder, "-o", trace)
    shown, = json.loads(trace.read_text())["otherData"]["processes"]
    assert (shown["rank"], shown["job"]) == ("1", 1)


@pytest.mark.parametrize("processors", ("-j1", "-j2"))
def test_a_folder_of_traces_for_each_job(run_verb, recorded, tmp_path, processors):
    """Ranks of two jobs are the same numbers; one job alone has no folder."""
    child = Process(1, 1.5, 2, dict(TORCHRUN, MASTER_PORT="29501"))
    folder = recorded([*world(2, 0, **TORCHRUN), *world(3, 1, **{**TORCHRUN,
                                                                 "MASTER_PORT": "29501"}), child])
    both = sorted([*(f"job_0/rank_{rank}" for rank in range(2)),
                   *(f"job_1/rank_{rank}" for rank in range(3))])

    def made(*words, name):
        run_verb("merge", processors, *words, folder, "-o", tmp_path / name)
        if name.endswith(".zip"):
            return sorted(zipfile.ZipFile(tmp_path / name).namelist())
        return sorted(str(path.relative_to(tmp_path / name))
                      for path in (tmp_path / name).rglob("*.gz"))
    *files, other = sorted(made("--per-rank", name="ranks"), key=lambda name: "others" in name)
    assert files == [f"{name}.pt.trace.json.gz" for name in both]
    assert other.startswith("job_1/others/process_")
    for name in files:
        job, rank = re.search(r"job_(\d)/rank_(\d)", name).groups()
        trace = json.loads(gzip.decompress((tmp_path / "ranks" / name).read_bytes()))
        shown, = trace["otherData"]["processes"]
        assert (shown["job"], shown["rank"]) == (int(job), rank)
        assert trace["distributedInfo"]["rank"] == int(rank)
    assert [f"{name}.pt.trace.json" for name in both] == [
        name for name in made(name="ranks.zip") if "rank_" in name]
    assert made("--per-rank", "--job=0", name="one") == [
        f"rank_{rank}.pt.trace.json.gz" for rank in range(2)]


def test_jobs_of_kubernetes(run_verb, make_records):
    """Pods of indexed Jobs are called after these, and start with pid 1."""
    lines = []
    for number, (host, index) in enumerate((("train-0", 0), ("eval-0", 0), ("train-1", 1),
                                            ("eval-1", 1), ("elsewhere", 2))):
        begin = number * SECOND // 10
        lines += [f"process {number} {host} {number + 1} {begin} {EPOCH + begin}",
                  "meta env.RANK=", f"meta env.JOB_COMPLETION_INDEX={index}",
                  f"{stream_reader.TYPE_NUMBERS['call']} 1 1000 {SECOND} 0 0 cudaFree 0 0"]
    folder = make_records(lines)
    done = run_verb("export", "--format=csv", "--kind=call", folder)
    jobs = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        if row["name"] == "cudaFree":
            jobs.setdefault(row["job"], []).append((row["host"], row["rank"]))
    assert sorted(jobs.values()) == [[("elsewhere", "2")], [("eval-0", "0"), ("eval-1", "1")],
                                     [("train-0", "0"), ("train-1", "1")]]
    assert "belong to 3 jobs" in done.stderr


ONE = {
    "plain": world(4, 0),
    "torchrun": world(4, 0, **TORCHRUN),
    "one after the other": [Process(rank, 20 * rank, 10) for rank in range(4)],
    "children": [*world(2, 0), Process(0, 1, 2, parent=1000), Process(1, 1, 2, parent=1001)],
    "two hosts": [Process(rank, 0.1 * rank, 10, parent=50 + rank // 2, host=rank // 2)
                  for rank in range(4)],
    # whoever started these, the launcher says that they are one
    "siblings": [*world(2, 0, **TORCHRUN), Process(0, 1, 2, TORCHRUN, parent=77)],
}


@pytest.mark.parametrize("kind", ONE)
def test_one_job(kind, run_verb, recorded):
    folder = recorded(ONE[kind])
    rows, said = ranks_table(run_verb, folder)
    assert sorted(rows) == sorted((0, process.rank) for process in ONE[kind]) and not said
    check_screen(run_verb, folder, len(ONE[kind]), len({process.rank for process in ONE[kind]}))


def test_a_rank_that_was_cut_off(run_verb, make_gpu):
    """Its sums are of less time than those of others."""
    folder = make_gpu("train", 2, 40)
    path = folder / "rank0.gpuprof"  # of rank 1
    path.write_bytes(path.read_bytes()[:-3])
    text = run_verb("report", "--table=ranks", folder, status=3).stdout
    assert re.search(r" rank 0 \([^()]+\)\n.* rank 1 \([^()]+\), cut off\n", text)


def test_devices_are_in_the_order_of_ranks(run_verb, make_stacks):
    """Not in that of their first work."""
    lines = []
    for rank in range(4):
        at = 100_000 - 10_000 * rank
        lines += [f"process {rank}", f"meta env.RANK={rank}",
                  f"call cudaLaunchKernel {at} 500 1 0 0", f"kernel 1 {at + 700} 900 1"]
    folder = make_stacks(*lines)
    rows = json.loads(run_verb("report", "--format=json", folder).stdout)["gpu_time"]
    assert [row["rank"] for row in rows] == ["0", "1", "2", "3"]
    text = run_verb("report", "--table=gpu_time", folder).stdout
    assert re.findall(r"rank (\d), GPU", text) == ["0", "1", "2", "3"]
    longest = json.loads(run_verb("report", "--format=json", "--sort=idle_start_up_ns",
                                  folder).stdout)["gpu_time"]
    assert [row["rank"] for row in longest] == ["0", "1", "2", "3"]


def test_no_such_job(run_verb, recorded):
    folder = recorded(world(2, 0) + world(2, 20))
    for options in (("--job=2",), ("--job=1", "--rank=7")):
        said = run_verb("report", *options, folder, status=2).stderr
        assert "none of the 4 recorded processes matches" in said and said.count("\n") == 1
    assert "list of numbers" in run_verb("report", "--job=x", folder, status=2).stderr


# ---- arrivals ------------------------------------------------------------------------------------

REDUCE, GATHER = 4, 5  # kernels, behind those of Script
NAMES = {REDUCE: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         GATHER: "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}


def job(seed, ranks=4, count=40):
    """Ranks that load data, compute and communicate; some are late, by one or the other. Returns
    their scripts, and of each collective when who began it."""
    dice = random.Random(seed)
    scripts, begins = [Script(rank) for rank in range(ranks)], []
    for s in scripts:
        for number, name in NAMES.items():
            s.add("kernel_name", DEVICE, 0, 0, args=(number,), text=name)
        s.launch(lasts=50)
        s.now = s.last + 60
    for n in range(count):
        late = dice.choice((1, 2, 2, None))
        start = max(s.now for s in scripts) + 5
        for rank, s in enumerate(scripts):
            s.now = start
            if late == rank == 1:
                s.range("load data", dice.randrange(400, 900))
            if late == rank == 2:
                s.add(stream_reader.PUSH, 1, s.now, 0, args=(0,) * 6, text="attention")
                s.launch(us=3, after=5, lasts=dice.randrange(400, 900))
                s.now = s.last + 600
                s.add(stream_reader.POP, 1, s.now, 0, args=(0,))
            s.launch(us=3, after=5, lasts=80)
        kernel = dice.choice((REDUCE, GATHER))
        end = max(s.now for s in scripts) + 1000
        at = []
        for s in scripts:
            s.now = max(s.now, s.last + 80) + dice.randrange(20)
            s.launch(us=3, after=5, lasts=end - s.now - 5, kernel=kernel)
            at.append(s.last + 5)
            s.now = end
        begins.append((kernel, at))
    return scripts, begins


def arrivals(run_verb, *words):
    done = run_verb("report", "--format=json", "--table=arrivals", *words)
    return json.loads(done.stdout)["arrivals"]


@pytest.mark.parametrize("seed", range(3))
def test_arrivals(seed, run_verb, make_records):
    """All is known of the begins, and what a rank was late by is what it did."""
    scripts, begins = job(seed)
    folder = make_records(line for s in scripts for line in s.text())
    rows = {row["collective"]: row for row in arrivals(run_verb, folder)}
    for kernel, name in ((REDUCE, "AllReduce"), (GATHER, "AllGather")):
        apart = [max(at) - min(at) for kind, at in begins if kind == kernel]
        last = [at.index(max(at)) for kind, at in begins if kind == kernel and
                at.count(max(at)) == 1]
        row = rows.pop(name)
        assert (row["count"], row["ranks"], row["communicator"]) == (len(apart), 4, None)
        assert (row["skew_total_ns"], row["skew_max_ns"]) == (sum(apart) * US, max(apart) * US)
        assert row["skew_median_ns"] == pytest.approx(statistics.median_low(apart) * US, rel=0.01)
        assert row["skew_p95_ns"] <= row["skew_max_ns"]
        worst = max(set(last), key=last.count)
        if last.count(worst) < 2 + max([last.count(rank) for rank in set(last) - {worst}]):
            continue  # ranks that began at one moment may change that
        assert row["rank"] == str(worst) and abs(row["last"] - last.count(worst)) <= 1
        assert (row["cause"], row["where"]) == {1: ("loader", "load data"),
                                                2: ("work", "attention")}[worst]
    assert not rows


def test_idle_behind_start_up(make_gpu, run_collector):
    """As its share, so that the time of a row says what the share is of."""
    folder = make_gpu("train", 3, 20)
    rows = json.loads(run_collector("report", "--table=ranks", "--format=json", folder).stdout)
    text = run_collector("report", "--table=ranks", folder).stdout.splitlines()
    at = text[2].index(" idle") + 5
    assert text[2][:at].split()[-1] == "idle" and [line[at - 8:at] for line in text[3:6]] == [
        f"{(row['idle_ns'] - row['idle_start_up_ns']) / 1e6:.3f} ms" for row in rows["ranks"]]


def test_late(run_verb, make_gpu):
    """Rank 1 comes 20 ms late to every third reduction, behind a range that is over by then."""
    ranks, steps, late = 4, 12, 4
    folder = make_gpu("late", ranks, steps)
    table = "--table=ranks,arrivals,idle,findings"
    made = json.loads(run_verb("report", "--format=json", table, folder).stdout)
    behind, short, long = 20 * MS * late, 9_030 * US, 29_030 * US
    assert [[row[key] for key in ("rank", "steps", "step_mean_ns", "communication_ns", "waits_ns",
                                  "late", "late_ns", "awaited_ns")] for row in made["ranks"]] == [
        [str(rank), steps - 1, ((steps - late) * short + (late - 1) * long) // (steps - 1),
         steps * MS, *((0, late, behind, (ranks - 1) * behind) if rank == 1 else
                       (behind, 0, 0, 0))] for rank in range(ranks)]
    row, = made["arrivals"]
    assert [row[key] for key in ("collective", "count", "ranks", "skew_total_ns", "skew_max_ns",
                                 "rank", "last", "behind_ns", "cause", "where")] == [
        "AllReduce", steps, ranks, behind, 20 * MS, "1", late, behind, "host", "evaluate"]
    idle = {(row["cause"], row["place"]): (row["count"], row["total_ns"]) for row in made["idle"]}
    assert idle["communication", "rank 1"] == ((ranks - 1) * late, (ranks - 1) * behind)
    assert idle["host", "evaluate"] == (late, behind - late * 10 * US)
    straggler, = (row for row in made["findings"] if row["id"] == "straggler")
    assert (straggler["rank"], straggler["ns"]) == ("1", behind)
    text = run_verb("report", table, folder).stdout
    assert re.search(r"\n +12   80.000 ms        0 ns .* 33.3%   80.000 ms  "
                     "AllReduce of 4: rank 1: evaluate, host\n", text)
    assert re.search(r"\n +11 .*        0 ns +4  33.3%   80.000 ms    240.000 ms  rank 1 ", text)
    assert re.search(r"  longest +began at  where\n.*   20.000 ms    26.180 ms  rank 1\n", text)
    assert "evaluate: 79.960 ms, 4 times, the longest began at 26.180 ms\n" in text
    assert re.search(r"\n  finding     42.5%   80.000 ms  the other ranks wait for this one\n +"
                     "rank 1, GPU 1\n", run_verb("report", folder).stdout)
    check_parts(run_verb, folder, 2)


@pytest.mark.parametrize("seed", range(3))
def test_whom_a_step_waited_for(seed, run_verb, make_records):
    """The rank that its own waited for longest in it; a wait that lasts into the next step is cut
    there. Known of the begins alone."""
    dice = random.Random(seed)
    ranks, count, length = 4, 40, 2700
    begins = [[1000 * n + dice.randrange(600) for n in range(count)] for _ in range(ranks)]
    last = [max(range(ranks), key=lambda rank: begins[rank][n]) for n in range(count)]
    ends = [begins[rank][n] for n, rank in enumerate(last)]
    scripts = [reduces(rank, row, [end + 200 - begin for begin, end in zip(row, ends)])
               for rank, row in enumerate(begins)]
    for script in scripts:
        for step in range(count * 1000 // length):
            script.add("step", 1, 1_000_000 + length * step, 0, args=(step,))
    folder = make_records(line for script in scripts for line in script.text())
    rows = json.loads(run_verb("report", "--format=json", "--table=steps", folder).stdout)["steps"]
    assert len(rows) == ranks * (count * 1000 // length)
    for row in (row for row in rows if not row["partial"]):
        rank, begin, waited = int(row["rank"]), length * row["step"], collections.Counter()
        for n, awaited in enumerate(last):  # a kernel begins 5 us behind its call
            from_us, to_us = begins[rank][n] + 5, ends[n] + 5
            waited[f"rank {awaited}"] += max(0, min(to_us, begin + length) - max(from_us, begin))
        most = max(waited.values())
        assert row.get("waited_for_ns", 0) == most * US
        assert "waited_for" not in row if not most else waited[row["waited_for"]] == most


def test_whom_the_slowest_step_waited_for(run_verb, make_gpu):
    text = run_verb("report", "--table=steps", make_gpu("late", 4)).stdout
    slowest = re.findall(r"29.030 ms +slowest: step (\d+) of rank (\d)\n", text)
    assert slowest == [("2", "1"), ("5", "1"), ("8", "1")]  # the other ranks' have only waited
    assert "difference between the slowest step, step 2 of rank 1 (" in text
    assert "\n  its ranges and calls: " in text
    assert re.search(r" batches +waited for  which\n", text)
    assert re.search(r"\n.*   29.030 ms .*    rank 1, 20.000 ms  step 2 of rank 3\n", text)
    assert re.search(r"\n.*   29.030 ms .* 0 +step 2 of rank 1\n", text)  # it waited for nobody
    assert "waited for" not in run_verb("report", "--table=steps", make_gpu(
        "late", 1, name="alone")).stdout


@pytest.mark.parametrize("late", [0.5, 2])
def test_text_tells_of_no_wait_below_a_microsecond(late, run_verb, make_records):
    """Clocks of two processes are read no closer; JSON has it."""
    scripts = []
    for rank in range(2):
        s = reduces(rank, [1000 + 10_000 * n + late * rank for n in range(6)],
                    [200 - late * rank] * 6)
        for number in range(7):
            s.add("step", 1, 1_000_000 + 10_000 * number, 0, args=(number,))
        scripts.append(s)
    folder = make_records(line for script in scripts for line in script.text())
    rows = json.loads(run_verb("report", "--format=json", "--table=steps", folder).stdout)["steps"]
    assert {row.get("waited_for_ns", 0) for row in rows if row["pid"] == 1000} >= {int(late * US)}
    text = run_verb("report", "--table=steps", folder).stdout
    assert bool(re.search(r"rank 1, [\d.]+ [nu]s", text)) == (late >= 1)


@pytest.mark.parametrize("more, named", [(0, 1), (200, 1), (2000, 0)])
def test_who_is_named_for_the_slowest_step(more, named, run_verb, make_records):
    """Rank 1 comes 20 ms late in step 3; that of rank 0, which waits for it, is `more` us longer. A
    hundredth more is no reason to name it; and what it waited for is in the other's step."""
    scripts = []
    for rank in range(2):
        s = reduces(rank, (1000, 11_000, 21_000, 51_000 if rank else 31_000, 63_000, 73_000),
                    (200, 200, 200, 200 if rank else 20_200, 200, 200))
        for number, at in enumerate((0, 10_000, 20_000, 30_000, 60_000 + (0 if rank else more),
                                     72_000, 80_000)):
            s.add("step", 1, 1_000_000 + at, 0, args=(number,))
        scripts.append(s)
    folder = make_records(line for script in scripts for line in script.text())
    long = 30_000 + (0 if named else more)
    text = run_verb("report", "--table=steps", folder).stdout
    assert f" {long / 1000:.3f} ms                 slowest: step 3 of rank {named}\n" in text
    assert f"the slowest step, step 3 of rank {named} (" in text
    next_line, = (line for line in text.splitlines() if "ranges and calls" in line)
    assert " --step=3 --rank=1 " in next_line
    assert next_line.startswith("  its " if named else "  rank 1's ")
    waited = "\n  waited for: rank 1, 20.000 ms in the slowest step, nobody in the median step\n"
    assert (waited in text) != named
    assert f"(step 3 of rank {named})" in " ".join(run_verb("report", folder).stdout.split())
    steps = json.loads(run_verb("report", "--format=json", folder).stdout)["overview"]["steps"]
    assert (steps["slowest_number"], steps["slowest_pid"], steps["slowest_ns"]) == \
        (3, 1000 + named, long * US)
    assert (steps["slowest_rank"], steps["slowest_host"]) == (str(named), "testhost")
    check_parts(run_verb, folder, 2)


def test_idle_share_of_ranks_is_that_of_their_devices(run_verb, make_gpu):
    """Each has one, which was idle as long whatever of its work was asked for."""
    folder = make_gpu("late", 3)
    sums = ("window_ns", "stopped_ns", "other_ns", "idle_ns", "idle_start_up_ns", "idle_share")
    seen = set()
    for words in ((), ("--name=nccl",), ("--min-duration=10ms",)):
        made = json.loads(run_verb("report", "--format=json", "--table=gpu_time,ranks", *words,
                                   folder).stdout)
        of_ranks, of_devices = ([[row[key] for key in sums] for row in made[table]]
                                for table in ("ranks", "gpu_time"))
        assert of_ranks == of_devices
        seen.add(tuple(row["idle_share"] for row in made["ranks"]))
        assert words == () or all(row["other_ns"] >= 12 * 8 * MS for row in made["ranks"])
    assert len(seen) == 1


def test_where_waits_are_is_said(run_verb, make_gpu):
    note = "GPU busy includes waits for other ranks; the table 'ranks' counts them as idle"
    for ranks, is_said in ((2, True), (1, False)):
        folder = make_gpu("late", ranks, name=f"of {ranks}")
        text = run_verb("report", "--table=steps", folder).stdout
        assert (f"\n{note}\n" in text) is is_said


def test_tables_of_several_ranks_say_who_was_left_out(run_verb, make_gpu):
    text = run_verb("report", "--rank=1", "--table=ranks,arrivals", make_gpu("late", 2)).stdout
    none = "  none: needs at least two ranks, but --rank or --pid left the others out\n"
    assert text.count(none) == 2 and "needs recordings" not in text


def test_tables_of_several_ranks_say_so_of_one(run_verb, make_gpu):
    text = run_verb("report", "--table=ranks,arrivals", make_gpu("late", 1)).stdout
    assert "\n  none: needs recordings of at least two ranks\n" in text
    assert ("\n  none: needs recordings of at least two ranks that ran NCCL collectives together\n"
            in text)


def communicating(tmp_path, unsized=(), more=()):
    """Ranks 0 and 1, 2 and 3 have a communicator each; names and numbers are the same. `unsized`
    do not know how many ranks theirs has; `more` is in all of them."""
    folder = tmp_path / "data"
    folder.mkdir()
    for rank in range(4):
        made = Libraries()
        made.lines[0] = f"meta env.RANK={rank}"
        made.lines += more
        made.communicator(0x77, 0xabc + rank // 2, rank % 2, 0 if rank in unsized else 2)
        for n in range(5):
            made.now = 1_000_000 * (n + 1) + (rank % 2) * 7_000 + (rank // 2) * 100_000
            with made.library("ncclAllReduce", "nccl", count=8, type=7, comm=0x77, sequence=n + 1):
                made.launch(300_000, "ncclDevKernel_AllReduce_Sum")
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"),
                        folder / f"{rank}.gpuprof", str(rank)], check=True, timeout=60, text=True,
                       input="\n".join(made.lines) + "\n")
    return folder


def test_communicators(run_verb, tmp_path):
    """Who is first in one is not held against the other."""
    folder = communicating(tmp_path)
    rows = arrivals(run_verb, folder)
    assert [(int(row["communicator"], 16), row["count"], row["ranks"], row["rank"], row["last"],
             row["skew_total_ns"]) for row in rows] == [
        (0xabc, 5, 2, "1", 5, 35_000), (0xabd, 5, 2, "3", 5, 35_000)]
    text = run_verb("report", "--table=arrivals", folder).stdout
    assert text.count("AllReduce of 2: rank") == 2


def test_communicators_of_which_ranks_are_not_there(run_verb, tmp_path):
    """Each has two ranks: of one that is whole it is told who was last, left out or gone."""
    folder = communicating(tmp_path)

    def told(*words):
        made = json.loads(run_verb("report", "--format=json", *words, folder).stdout)
        waited = {row["place"]: row["total_ns"] for row in made["idle"]
                  if row["cause"] == "communication"}
        return ([(row["communicator"][-3:], row["rank"], row["count"]) for row in made["arrivals"]],
                made["arrivals_missed"]["piece"], waited, made["overview"]["left_out"])
    assert told("--rank=0,1") == ([("abc", "1", 5)], 0, {"rank 1": 35_000}, 2)
    assert told("--rank=0-2") == ([("abc", "1", 5)], 5, {"rank 1": 35_000}, 1)
    assert told("--rank=0,2") == ([], 10, {}, 2)
    said = "; who waited for whom is not known"
    for ranks, lacks in (("0,1", False), ("2,3", False), ("0-2", True), ("0", True)):
        assert (said in run_verb("report", f"--rank={ranks}", folder).stdout) == lacks
    (folder / "1.gpuprof").unlink()
    assert told() == ([("abd", "3", 5)], 5, {"rank 3": 35_000}, 0)
    text = run_verb("report", "--table=arrivals", folder).stdout
    assert "not counted here: ranks that are not here may have been last in 5\n" in text
    check_parts(run_verb, folder, 2)


def test_a_communicator_whose_size_one_rank_does_not_know(run_verb, tmp_path):
    """The other one does, whichever came first."""
    folder = communicating(tmp_path, unsized=(1, 2))
    for words, rank in (("--rank=0,1", "1"), ("--rank=2,3", "3")):
        assert [(row["rank"], row["count"]) for row in arrivals(run_verb, words, folder)] == \
            [(rank, 5)]


def test_a_few_ns_make_nobody_late(run_verb, make_records):
    """Rank 1 is last most often, by 1 us; the others wait for rank 2."""
    scripts = []
    for number in range(3):
        s = Script(number)
        for n in range(10):
            s.now = 1_000_000 + 10_000 * n + (1 if number == 1 else 0) + \
                (5000 if number == 2 and n % 5 == 0 else 0)
            s.launch(us=3, after=5, lasts=6000, kernel=3)
        scripts.append(s)
    folder = make_records(line for s in scripts for line in s.text())
    [row] = arrivals(run_verb, folder)
    assert (row["rank"], row["last"], row["behind_ns"], row["count"]) == ("2", 2, 10_000 * US, 10)
    check_parts(run_verb, folder, 2)


def test_jobs_do_not_meet(run_verb, make_records):
    """The same kernels at the same time, in two jobs."""
    lines = []
    for number in range(4):
        s = Script(number)
        for begin in (0, 1000):
            s.now = 1_000_000 + begin + 100 * number
            s.launch(us=3, after=5, lasts=700, kernel=3)
        text = s.text()
        lines += [text[0], f"meta env.RANK={number % 2}", f"meta env.MASTER_PORT={number // 2}",
                  *text[1:]]
    folder = make_records(lines)
    rows = arrivals(run_verb, folder)
    assert [(row["job"], row["count"], row["ranks"], row["skew_total_ns"]) for row in rows] == \
        [(0, 2, 2, 200 * US), (1, 2, 2, 200 * US)]
    made = json.loads(run_verb("report", "--format=json", folder).stdout)
    waited = {row["place"] for row in made["idle"] if row["cause"] == "communication"}
    assert waited == {"rank 1 of job 0", "rank 1 of job 1"}
    assert {row["job"] for row in made["findings"]} <= {0, 1}


# ---- kernels that are missing --------------------------------------------------------------------

class Logged(Rank):
    """Keeps when each collective began, of those that have a kernel; `numbers`: calls have one."""

    def __init__(self, number, host, numbers=True):
        super().__init__(number, host)
        self.begun, self.numbers = {}, numbers

    def collective(self, communicator, sequence, call, begin, end, **more):
        if more["has_kernel"]:
            self.begun[sequence] = self.at(begin) + self.zero
        super().collective(communicator, sequence if self.numbers else 0, call, begin, end, **more)


def lossy(seed, hosts, lost, numbers=True, apart=40 * MS, count=200):
    """Six ranks on hosts whose clocks are right; kernels are missing at random."""
    ranks = [Logged(i, Host(i * hosts // 6), numbers) for i in range(6)]
    made = Job(random.Random(f"{seed} {hosts} {lost}"), ranks, lost=lost)
    made.communicator(1, range(6))
    for n in range(count):
        made.collective(1, BEGIN + SECOND + n * apart, straggler=n % 3 or None)
    made.mark(2 + count * apart // SECOND)
    lines = []
    for rank in ranks:
        first, *rest = rank.text(made.last // SECOND)
        lines += [first, f"meta env.RANK={rank.number}", *rest]
    return lines, [rank.begun for rank in ranks]


def meetings(begun):
    """How far apart ranks came to the collectives that all have a kernel of, and of how many some
    have none; a rank is there from its first one to its last."""
    apart, missed = [], 0
    for n in sorted(set().union(*begun)):
        there = [begins for begins in begun if min(begins) <= n <= max(begins)]
        at = [begins[n] for begins in there if n in begins]
        if len(at) < len(there):
            missed += 1
        elif len(at) > 1:
            apart.append(max(at) - min(at))
    return apart, missed


@pytest.mark.parametrize("lost, hosts, numbers", (
    (0, 3, True), (0.02, 3, True), (0.3, 1, True), (0, 3, False), (0.1, 1, False)))
def test_missing_kernels(lost, hosts, numbers, run_verb, make_records):
    """Those who meet after one are found again, by the number of the call or by the time."""
    lines, begun = lossy(1, hosts, lost, numbers)
    apart, missed = meetings(begun)
    folder = make_records(lines)
    words = ("--clock=wall", "--table=arrivals,ranks", folder)
    made = json.loads(run_verb("report", "--format=json", *words).stdout)
    [row] = made["arrivals"]
    assert (row["count"], row["skew_total_ns"], row["skew_max_ns"]) == \
        (len(apart), sum(apart), max(apart))
    assert made["arrivals_missed"] == {"kernel": missed * numbers, "number": missed * (not numbers),
                                       "time": 0, "piece": 0, "lost": 0}
    assert sum(rank["late_ns"] for rank in made["ranks"]) == sum(apart)
    assert sum(rank["late"] for rank in made["ranks"]) == len(apart)
    assert (missed > 0) == (lost > 0)
    text = run_verb("report", *words).stdout
    assert text.count("collectives not counted here: ") == \
        text.count(f" of {missed}\n") == 2 * (missed > 0)
    if hosts == 1:
        check_parts(run_verb, folder, 3)


def test_missing_kernels_on_hosts_without_numbers(run_verb, make_records):
    """Clocks may be apart: nothing is guessed, and what is not counted is said."""
    lines, begun = lossy(1, 3, 0.02, numbers=False)
    words = ("report", "--clock=wall", "--table=arrivals", make_records(lines))
    made = json.loads(run_verb(*words, "--format=json").stdout)
    count = sum(row["count"] for row in made["arrivals"])
    assert count < len(meetings(begun)[0])
    missed = made["arrivals_missed"]
    assert missed["number"] == sorted(map(len, begun))[-2] - count and not missed["kernel"]
    assert f"(run --libraries=on), of {missed['number']}\n" in run_verb(*words).stdout


# ---- parts ---------------------------------------------------------------------------------------

def check_parts(run_verb, folder, count):
    """Each rank's own, read by others, says the same as all in one place."""
    parts = make_parts(run_verb, folder, count)
    return check_equal(run_verb, folder, parts[::-1])


@pytest.mark.parametrize("seed, count", ((0, 1), (1, 2), (2, 3), (3, 7)))
def test_parts(seed, count, run_verb, make_records):
    scripts, begins = job(seed, ranks=5)
    whole = check_parts(run_verb, make_records(line for s in scripts for line in s.text()), count)
    assert sum(row["count"] for row in whole["arrivals"]) == len(begins)
    assert len(whole["ranks"]) == 5 and sum(row["waits_ns"] for row in whole["ranks"]) > 0
    assert all(row["where"] for row in whole["arrivals"])


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_anything(seed, run_verb, make_records):
    """Kernels that are gone, last longer, or begin elsewhere: who met is the same."""
    scripts, _ = job(seed, ranks=4, count=60)
    lines = [line for s in scripts for line in s.text()]
    check_parts(run_verb, make_records(damage(lines, random.Random(seed))), 3)


@pytest.mark.parametrize("kind", ("slurm", "again", "loop"))
def test_parts_of_jobs(kind, run_verb, recorded):
    """Which processes are of one job is known when all parts are there."""
    jobs = [[with_rank(process) for process in job] for job in SEVERAL[kind]]
    folder = recorded([process for job in jobs for process in job])
    parts = make_parts(run_verb, folder, 3)
    done = run_verb("report", "--combine", "--format=json", "--table=ranks", *parts)
    assert {row["job"] for row in json.loads(done.stdout)["ranks"]} == set(range(len(jobs)))
    [said] = [line for line in done.stderr.splitlines() if f"belong to {len(jobs)} jobs" in line]
    assert said.endswith("; select one with 'gpuprof report --job=N' of the recordings")
    run_verb("report", "--combine", "--job=0", *parts, status=2)
    check_equal(run_verb, folder, parts)


def test_parts_of_communicators(run_verb, tmp_path):
    folder = communicating(tmp_path)
    whole = check_parts(run_verb, folder, 2)
    assert [row["count"] for row in whole["arrivals"]] == [5, 5]


@pytest.mark.parametrize("seed", range(2))
def test_hostile_parts(seed, run_verb, run_collector, make_records, tmp_path):
    """Values that are anything, under a right checksum: a line, or a report; nothing else."""
    scripts, _ = job(seed, count=12)
    folder = make_records(line for s in scripts for line in s.text())
    make_parts(run_verb, folder, 2)
    dice, whole = random.Random(seed), (tmp_path / "part1").read_bytes()
    codes = set()
    for _ in range(40):
        content = bytearray(whole)
        for _ in range(dice.randint(1, 3)): # the kernels stand behind all else
            content[-dice.randrange(1, len(whole) // 2)] = dice.choice((0, 1, 2, 127, 255))
        (tmp_path / "part1").write_bytes(sealed(content))
        result = run_collector("report", "--combine", "--full", "part0", "part1")
        codes.add(result.returncode)
        assert result.returncode in (0, 2), result.stderr
        assert result.returncode != 2 or "is damaged" in result.stderr
    assert codes == {0, 2}
