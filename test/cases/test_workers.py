# SPDX-License-Identifier: Apache-2.0
"""-j where there are several recordings: processes of ours share them. What comes out, and what is
said, is what one process makes, and one that fails leaves a line and nothing else."""

import csv
import io
import os
import random
import re
import resource
import signal
import subprocess
import time

import conftest
import csv_tables
import pytest
import stream_reader
from made_libraries import Libraries
from made_ops import Recording
from test_collectives import World
from test_memory_trouble import too_large
from test_partial import job_lines, random_lines, write_libraries

TYPES = stream_reader.TYPE_NUMBERS
VERBS = {"csv": ("export", "--format=csv", "-o", "-"),
         "jsonl": ("export", "--format=jsonl", "-o", "-"),
         "piece": ("export", "--format=csv", "--step=1:3", "-o", "-"),
         "kernels": ("export", "--format=csv", "--kind=kernel", "--rank=1,2", "-o", "-"),
         "tables": ("report", "--format=csv", "--table=functions,failures,cuda_gpu_kern_sum,"
                    "nvtx_sum,nvtx_gpu_proj_sum,gpu_time_util,gpu_memory_peak,ranks,arrivals"),
         "text": ("report", "--table=cuda_gpu_kern_sum,cuda_kern_exec_sum"),
         "strict": ("report", "--strict", "--no-group", "--table=host_kernel_sum,nvtx_sum"),
         "grouped": ("report", "--table=nvtx_sum"), "report": ("report", "--format=csv"),
         "screen": ("report",), "full": ("report", "--full"), "json": ("report", "--format=json"),
         "json of one": ("report", "--format=json", "--table=functions"),
         "idle": ("report", "--table=findings,gpu_time,idle,ops"),
         "stats": ("stats", "cuda_gpu_kern_sum"), "events": ("stats", "cuda_gpu_trace"),
         "sqlite": ("export", "-o", "all.sqlite"), "chrome": ("merge", "-o", "-"),
         "ranks": ("merge", "--per-rank", "-o", "traces"),
         "perfetto": ("merge", "--per-rank", "--format=perfetto", "-o", "traces"),
         "thinned": ("merge", "--per-rank", "--max-size=400K", "-o", "traces")}
# In a worker, whose first call that is. The second one is late: then others wait for it.
KILLED = """
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int prctl(int option, ...)
{
    if (open(getenv("FIRST"), O_CREAT | O_EXCL, 0600) < 0)
        raise(SIGKILL);
    return option;
}
"""
COUNTED = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int prctl(int option, ...)
{
    write(open(getenv("FIRST"), O_CREAT | O_WRONLY | O_APPEND, 0600), "x", 1);
    return option;
}
"""
NONE = """
#include <errno.h>
int fork(void) { errno = EAGAIN; return -1; }
"""


def everything(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*"))
            if file.is_file()}


@pytest.fixture(name="run")
def fixture_run(collector, tmp_path):
    """Its exit code, what it says, and all that it writes."""
    def run(jobs, arguments, recordings, **options):
        place = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        place.mkdir()
        done = subprocess.run([collector, *arguments, jobs, "--keep-live", *recordings], cwd=place,
                              capture_output=True, check=False, timeout=180, **options)
        return done.returncode, done.stderr, done.stdout, everything(place)
    return run


def shim(tmp_path, source, **environment):
    (tmp_path / "shim.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"],
                   check=True)
    return {**os.environ, "LD_PRELOAD": str(tmp_path / "shim.so"), **environment}


def damage(folder, seed):
    """Cuts one file short, and changes bytes in the middle of two."""
    files, rng = sorted(folder.glob("*.gpuprof")), random.Random(seed)
    files[0].write_bytes(files[0].read_bytes()[:-rng.randint(30, 200)])
    for path in files[1:3]:
        data = bytearray(path.read_bytes())
        for _ in range(3):
            data[rng.randrange(len(data) // 2, len(data))] ^= 0x55
        path.write_bytes(data)


def add_left(folder):
    """Three processes more, of which calls of libraries and operators are open at the end."""
    for rank in range(3):
        recording = Libraries()
        recording.gemm(5, 6, 7 + rank)
        recording.op(f"aten::outer{rank}").__enter__()
        recording.begin("cublasSgemm_v2", m=rank)
        recording.lines[0] = f"meta env.RANK={10 + rank}"
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / f"{rank}.gpuprof",
                        str(20 + rank)], input="\n".join(recording.lines) + "\n", text=True,
                       check=True, timeout=60)
    return folder


def write_hung(folder):
    """Three ranks, one of which does not come to the second collective."""
    world = World(3)
    for i, sequence in ((0, 1), (1, 1), (2, 1), (0, 2), (2, 2)):
        world.counted(i, "ncclAllReduce", sequence)
    return world.write(folder)


@pytest.fixture(name="recordings",
                params=["3", "damaged", "left", "corpus", "waits", "damaged waits", "hung",
                        *(pytest.param(kind, marks=pytest.mark.long)
                          for kind in ("1", "9", "jobs", "operators", "libraries"))])
def fixture_recordings(request, make_gpu, make_ops, make_stacks, tmp_path):
    kind = request.param
    if kind == "operators":
        return [make_ops(3, 700, 1)]
    if kind == "libraries":
        return [write_libraries(tmp_path / "libraries", (0, 0, 0, 0))]
    if kind == "hung":
        return [write_hung(tmp_path / "hung")]
    if kind.endswith("waits"):
        folder = make_stacks(*job_lines(3, 4))
        if kind != "waits":
            damage(folder, 3)
        return [folder]
    if kind == "left":
        return [add_left(make_stacks(*random_lines(3, 4)))]
    if kind == "corpus":
        (tmp_path / "corpus").mkdir()
        subprocess.run([conftest.BUILD / "make_corpus", tmp_path / "corpus"], check=True,
                       timeout=60)
        return [tmp_path / "corpus"]
    folder = make_gpu("train", int(kind) if kind.isdigit() else 4, 4)
    if kind == "damaged":
        damage(folder, 1)
    if kind == "jobs":
        return [folder, make_gpu("bench", 3000, 3, name="later")]
    return [folder]


def test_any_number_makes_the_same(recordings, run, request):
    made = 0
    for verb, arguments in VERBS.items():
        one = run("-j1", arguments, recordings)
        for jobs in ("-j2", "-j5"):
            assert run(jobs, arguments, recordings) == one, (verb, jobs)
        made += len(one[2]) + sum(map(len, one[3].values()))
    assert made > 10000, request.node.name


def test_steps_that_others_find(make_stacks, run):
    """Workers get the steps that were found before; the last one ends when the longest kernel does,
    of which only the block says when that is."""
    lines = []
    for rank in range(3):
        lines += [f"process {rank}", "name 1 k"]
        for i in range(40):
            at = 1000 * (i + 1)
            lines += [f"step {at} {i}", f"call cudaLaunchKernel {at + 10} 5 {i + 1} 0 0"]
        for i in range(40):  # in one block
            lines += [f"kernel 1 {1000 * i + 1020} {30000 + rank if i == 38 else 7} {i + 1}"]
    folder = make_stacks(*lines)
    code, said, text, _ = made = run("-j1", VERBS["csv"], [folder])
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    steps = [row for row in rows if row["kind"] == "step"]
    assert code == 0 and not said
    assert [int(row["duration_ns"]) for row in steps[39::40]] == [29020, 29021, 29022]
    kernels = [row["step"] for row in rows if row["kind"] == "kernel"]
    assert kernels[::3] == list(map(str, range(40)))
    for jobs, *more in (("-j2",), ("-j3",), ("-j1", "--step-by=range"), ("-j3", "--step-by=range")):
        assert run(jobs, (*VERBS["csv"], *more), [folder]) == made, (jobs, more)


@pytest.mark.parametrize("verb", ["csv", "ranks"])
def test_a_piece_in_a_long_wait(make_gpu, run, verb):
    """Nothing begins in it: each worker knows of its ranks what began before."""
    recordings = [make_gpu("late", 4, 3)]
    arguments = (*VERBS[verb], "--from=0.03", "--to=0.031", "--kind=work,sync")
    one = run("-j1", arguments, recordings)
    assert one[0] == 2 and b"; work of 3 GPUs and 3 threads began earlier" in one[1]
    assert run("-j3", arguments, recordings) == one


def test_a_device_that_nobody_names(make_stacks, run, run_verb):
    """The block that names the device's thread is damaged: its work tells of it, also where no
    other process of the share has any."""
    lines = []
    for rank in range(2):
        lines += [f"process {rank}", "name 1 k", "call cudaLaunchKernel 1000 50 1 0 0",
                  f"kernel 1 2000 {700 + rank} 1", "call cudaLaunchKernel 5000 50 2 0 0",
                  f"kernel 1 6000 {900 + rank} 2"]
    folder = make_stacks(*lines)
    path = folder / "rank1.gpuprof"
    first, = re.findall(r"^block at=(\d+) .* thread=2 .* position=0\.\.",
                        run_verb("dump", "--blocks", path).stdout, re.MULTILINE)
    data = bytearray(path.read_bytes())
    data[100 + int(first)] ^= 0x55
    path.write_bytes(data)
    one, alone = (run("-j1", VERBS["report"], [x]) for x in (folder, path))
    assert one[0] == alone[0] == 3
    both, its = (csv_tables.tables(done[2].decode()) for done in (one, alone))
    for tables, instances, ns in (both, "4", "3202"), (its, "2", "1602"):
        [row] = tables["cuda_gpu_kern_sum"]
        assert (row["name"], row["instances"], row["total_ns"]) == ("k", instances, ns)
    assert [row["rank"] for row in its["gpu_time"]] == ["1"]
    assert run("-j2", VERBS["report"], [folder]) == one


def test_what_a_walk_has_put_aside(make_gpu, run):
    """More calls than memory has room for: workers share the file that they lie in, and mark in it
    which calls have made work."""
    recordings = [make_gpu("bench", 34000, 4)]
    packed = ("export", "-o", "all.csv.gz")  # of which the text comes in other portions
    assert run("-j3", packed, recordings) == run("-j1", packed, recordings)
    one = run("-j1", VERBS["csv"], recordings)
    assert run("-j3", VERBS["csv"], recordings) == one
    assert one[2].count(b"\nkernel,") == 4 * 34000 and b"\nloss," not in one[2]


def test_a_name_that_comes_late(make_stacks, run):
    """What is a collective is known behind it, and its process is walked through once more: of the
    work of another one, whose call comes behind it, that walk finds out no more than the first."""
    lines = ["process 0", "name 1 ncclDevKernel_AllReduce_Sum_f32", "kernel 1 100 50 1",
             "call cudaLaunchKernel 50 20 1 0 0", "process 1", "name 1 k"]
    for i in range(20):
        at = 10000 + 9000 * i
        lines += [f"call cudaLaunchKernel {at} 3000 {i + 1} 0 0",
                  f"call cudaFree {at + 3500} 400 0 0 0"]
    lines += [f"kernel 1 {10000 + 9000 * i - 700 * (i % 3)} 800 {i + 1}" for i in range(20)]
    recordings, tables = [make_stacks(*lines)], ("report", "--table=idle,gpu_time", "--format=csv")
    one = run("-j1", tables, recordings)
    assert len(csv_tables.tables(one[2].decode())["idle"]) > 3
    assert b"ncclDevKernel" not in one[2] and not one[0]
    assert run("-j2", tables, recordings) == one


def test_stacks_that_ranks_meet_in_another_order(make_stacks, run):
    """A rank's trace numbers its frames as it comes to them, whoever wrote another rank's."""
    lines = []
    for rank in range(3):
        lines += [f"process {rank}", "meta stacks=native"]
        lines += [f"python {n} {n} /a.py\tf{n}" for n in range(1, 5)]
        lines += [f"stack {n} 0 p{n} p{n % 4 + 1}" for n in range(1, 5)]
        lines += [f"call cudaFree {1000 * i + 1000} 9 {i + 1} {(rank + i) % 4 + 1} 0"
                  for i in range(4 - rank)]
    recordings = [make_stacks(*lines)]
    one = run("-j1", VERBS["ranks"], recordings)
    assert len(one[3]) == 3 and not one[0]
    assert run("-j3", VERBS["ranks"], recordings) == one


@pytest.mark.parametrize("has_oom", (False, True))
def test_trouble_with_memory(make_gpu, run, has_oom):
    """It is in no part: what is said of it comes out of all recordings, what else out of parts."""
    folder = make_gpu("train", 4, 150)
    if has_oom:
        process = too_large()[0]
        process.rank, process.lines[0] = 9, "meta env.RANK=9"
        process.write(conftest.built(conftest.BUILD / "make_raw"), folder)
    for verb in ("screen", "full", "json", "report"):
        one = run("-j1", VERBS[verb], [folder])
        assert b"memory-leak" in one[2] or b"memory grows" in one[2], verb
        assert (b"smaller batches" in one[2]) == (has_oom and verb != "report"), verb
        for jobs in ("-j2", "-j5"):
            assert run(jobs, VERBS[verb], [folder]) == one, (verb, jobs)
    one = run("-j1", VERBS["json of one"], [folder])
    assert b'"overview": {' in one[2] and run("-j3", VERBS["json of one"], [folder]) == one


def test_kinds_that_nobody_knows(make_records, run):
    """They have one row: a later CUDA may number more of them."""
    lines = []
    for rank in range(2):
        lines += [f"process {rank}"]
        lines += [f"{TYPES[name]} 2 {at} 5 0 0 0 0 {kind},1,7,0"
                  for at, kind in ((10, 77), (20, 78), (30, 1)) for name in ("sync", "overhead")]
    words = ("report", "--format=csv", "--table=cuda_sync_sum,overhead_sum")
    recordings = [make_records(lines)]
    one = run("-j1", words, recordings)
    assert {name: [(row["name"], row["instances"]) for row in rows]
            for name, rows in csv_tables.tables(one[2].decode()).items()} == {
        "cuda_sync_sum": [("Sync", "4"), ("Event Sync", "2")],
        "overhead_sum": [("Overhead", "4"), ("Driver Compiler", "2")]}
    assert run("-j2", words, recordings) == one


@pytest.mark.parametrize("verb, count", [("csv", 3), ("ranks", 3), ("tables", 3), ("text", 3),
                                         ("stats", 3), ("events", 3), ("strict", 3),
                                         ("grouped", 3), ("report", 3), ("screen", 3), ("json", 3),
                                         ("chrome", 0)])
def test_who_has_workers(make_gpu, run, tmp_path, verb, count):
    assert workers_of(run, tmp_path, VERBS[verb], make_gpu("train", 4, 2)) == count


def workers_of(run, tmp_path, arguments, recording):
    first = tmp_path / "first"
    done = run("-j3", arguments, [recording], env=shim(tmp_path, COUNTED, FIRST=str(first)))
    assert done[0] == 0
    return first.stat().st_size if first.exists() else 0


@pytest.mark.parametrize("verb", ["tables", "screen"])
def test_report_without_them(make_gpu, run, tmp_path, verb):
    """Where one is killed the report is made all the same."""
    recordings = [make_gpu("train", 6, 4)]
    environment = shim(tmp_path, KILLED, FIRST=str(tmp_path / "first"))
    assert run("-j3", VERBS[verb], recordings, env=environment) == \
        run("-j1", VERBS[verb], recordings)


@pytest.mark.parametrize("verb", ["csv", "ranks"])
def test_killed(make_gpu, run, tmp_path, verb):
    recordings = [make_gpu("train", 6, 50)]
    environment = shim(tmp_path, KILLED, FIRST=str(tmp_path / "first"))
    code, said, out, files = run("-j3", VERBS[verb], recordings, env=environment)
    assert code == 1 and said.count(b"\n") == 1, said
    assert b"was killed (Killed)" in said and b"lower -j" in said
    assert all(name.endswith(".json.gz") for name in files), files


@pytest.mark.parametrize("verb", ["csv", "ranks"])
def test_none_can_be_had(make_gpu, run, tmp_path, verb):
    recordings = [make_gpu("train", 3, 3)]
    assert run("-j3", VERBS[verb], recordings, env=shim(tmp_path, NONE)) == \
        run("-j1", VERBS[verb], recordings)


@pytest.mark.parametrize("verb", ["csv", "ranks", "perfetto"])
@pytest.mark.parametrize("jobs", ["-j1", "-j4"])
def test_no_room(make_gpu, run, verb, jobs):
    """All workers meet it, and one line says it."""
    recordings = [make_gpu("bench", 5000, 4)]
    arguments = [*VERBS[verb][:-1], "there"]

    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    code, said, out, files = run(jobs, arguments, recordings, preexec_fn=little)
    assert code == 1 and said.count(b"\n") == 1, said
    assert b": File too large; only complete files were kept: raise ulimit -f" in said
    assert not out and not files


def test_what_is_there_twice(make_gpu, run):
    """Of many files some are named, the rest is counted."""
    one, two = make_gpu("bench", 10, 20), make_gpu("bench", 10, 20, name="copy")
    said = run("-j1", VERBS["report"], [one, two])[1].decode().splitlines()
    assert len(said) == 17 and said[16] == \
        "gpuprof: ... and 4 more files left out for the same reason"
    again = re.fullmatch(r"gpuprof: \S+/copy/(\S+): left out: it repeats pid \d+ of testhost, "
                         r"which is read from \S+/data/(\S+)", said[0])
    assert again and again[1] == again[2]


@pytest.mark.parametrize("jobs", ["-j1", "-j4"])
def test_what_is_whole_is_kept(make_gpu, run, jobs):
    """Of ranks one of which is too large those before it, at least."""
    recordings = [make_gpu("train", 4, 3)]
    *_, files = run("-j1", VERBS["ranks"], recordings)
    sizes = {name: len(data) for name, data in files.items()}
    large = max(sizes, key=sizes.get)

    def little():
        resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[large] - 1,) * 2)
    code, said, _, kept = run(jobs, VERBS["ranks"], recordings, preexec_fn=little)
    assert code == 1 and large.encode() in said
    assert b"only complete files were kept" in said
    before = {name for name in files if name < large}
    assert before and before <= set(kept) <= set(files) - {large}
    assert all(files[name] == data for name, data in kept.items())


@pytest.mark.parametrize("large", range(5))
def test_a_rank_with_too_much(run, tmp_path, large):
    """Of calls that failed, which --max-size keeps: what is there before it is kept, with as many
    processes as ranks and with two."""
    folder = tmp_path / "data"
    folder.mkdir()
    for rank in range(5):
        recording = Recording()
        recording.lines[0] = f"meta env.RANK={rank}"
        for _ in range(1000 if rank == large else 5):
            recording.call("cudaFree", [1], result=1)
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / f"{rank}.gpuprof",
                        str(rank)], input="\n".join(recording.lines) + "\n", text=True,
                       check=True, timeout=60)
    arguments = (*VERBS["thinned"][:2], "--max-size=20K", *VERBS["thinned"][3:])
    wanted = run("-j1", arguments, [folder])
    assert wanted[0] == 2 and wanted[1].count(b"too small") == 1 and len(wanted[3]) == large
    for jobs in ("-j2", "-j5"):
        done = run(jobs, arguments, [folder])
        assert done[:3] == wanted[:3] and wanted[3].items() <= done[3].items(), jobs


@pytest.mark.parametrize("verb", ["csv", "ranks", "perfetto"])
def test_no_room_for_words(make_gpu, run, verb):
    """What a worker says is kept in a file, too."""
    arguments = [*VERBS[verb][:-1], "there"]
    code, said, out, files = run("-j3", arguments, [make_gpu("train", 3, 3)],
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                       (0, 0)))
    assert code == 1 and said.count(b"\n") == 1 and b"ulimit -f" in said, said
    assert not out and not files


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_parent_ends(make_gpu, collector, tmp_path, number):
    """Workers go with it, whatever it dies of, and nothing is left."""
    folder, place = make_gpu("bench", 300000, 4), tmp_path / "place"
    place.mkdir()
    with conftest.Program([collector, "export", "-j3", folder, "-o", "all.csv"],
                          cwd=place) as program:
        workers = until(lambda: children(program.pid))
        os.kill(program.pid, number)
        assert program.wait(30) == -number
        until(lambda: not any(map(lives, workers)))
    assert not everything(place)


def until(happens):
    end = time.monotonic() + 30
    while not (seen := happens()):
        assert time.monotonic() < end, "not within the time"
        time.sleep(0.005)
    return seen


def lives(pid):
    """Who has ended is there until somebody has asked for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


@pytest.mark.parametrize("words, begin", [
    (("export", "-j3", "--format=csv"), b"kind,"), (("merge", "-j2"), b"{")],
    ids=("lanes", "thread"))
def test_reader_ends(make_gpu, collector, words, begin):
    """As `head` does."""
    with subprocess.Popen([collector, *words, "-o", "-", make_gpu("bench", 40000, 3)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout.readline().startswith(begin)
        program.stdout.close()
        assert program.wait(60) == -signal.SIGPIPE
        assert not program.stderr.read()
