# SPDX-License-Identifier: Apache-2.0
"""A trace for each rank, and an archive of them: what HTA, TensorBoard and Perfetto need."""

import contextlib
import gzip
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import zipfile

import pytest
from conftest import BUILD, Program, built
from made_ops import TYPES
from merged_trace import check_rows, names, of_category


def check_rank_file(trace, text, rank):
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == str(rank)
    assert {e["args"]["device"] for e in of_category(trace, "kernel")} == {rank}
    assert {e["pid"] for e in of_category(trace, "kernel")} == {rank}
    process, = trace["otherData"]["processes"]
    assert process["rank"] == str(rank)
    assert {p for p, _ in names(trace, "process_name")} == {rank, 1001 - rank}
    check_rows(trace)


def test_per_rank(run_collector, make_gpu, tmp_path):
    folder = make_gpu("train", 2, 2)
    result = run_collector("merge", "--per-rank", "-o", "traces", folder)
    assert result.returncode == 0 and result.stderr == ""
    files = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert files == ["rank_0.pt.trace.json.gz", "rank_1.pt.trace.json.gz"]
    bases = set()
    for rank, name in enumerate(files):
        text = gzip.decompress((tmp_path / "traces" / name).read_bytes()).decode()
        trace = json.loads(text)
        check_rank_file(trace, text, rank)
        assert trace["traceName"] == name
        bases.add(trace["baseTimeNanoseconds"])
    assert len(bases) == 1
    again = run_collector("merge", "--per-rank", "-o", "traces", folder)
    assert again.returncode == 0 and len(list((tmp_path / "traces").iterdir())) == 2
    (tmp_path / "file").write_text("here before")
    refused = run_collector("merge", "--per-rank", "-o", "file", folder)
    assert refused.returncode == 1 and (tmp_path / "file").read_text() == "here before"
    assert refused.stderr == \
        "gpuprof: file/rank_0.pt.trace.json.gz: Not a directory; name one in an existing folder\n"


def test_archive(run_collector, make_gpu, tmp_path):
    folder = make_gpu("train", 2, 2)
    result = run_collector("merge", "-o", "all.ZIP", folder)
    assert result.returncode == 0 and result.stderr == ""
    with zipfile.ZipFile(tmp_path / "all.ZIP") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["perfetto_manifest.json", "rank_0.pt.trace.json",
                                      "rank_1.pt.trace.json"]
        manifest = json.loads(archive.read("perfetto_manifest.json"))["perfetto_manifest"]
        assert manifest["version"] == 1
        assert [f["path"] for f in manifest["files"]] == archive.namelist()[1:]
        assert len({f["machine"]["name"] for f in manifest["files"]}) == 2
        for rank in range(2):
            text = archive.read(f"rank_{rank}.pt.trace.json").decode()
            check_rank_file(json.loads(text), text, rank)
    first = (tmp_path / "all.ZIP").read_bytes()
    assert run_collector("merge", "-o", "all.ZIP", folder).returncode == 0
    assert (tmp_path / "all.ZIP").read_bytes() == first


def test_archive_of_ranks_with_one_device_each(run_collector, make_stacks, tmp_path):
    """Each calls it device 0. Perfetto takes the members for one trace, in which a pid is one
    process: of its versions not all know machines (test/consumers)."""
    data = make_stacks(*(line for rank in range(3) for line in (
        f"process {rank}", f"meta env.RANK={rank}",
        f"call cudaLaunchKernel {1000 + rank} 500 1 0 0", f"kernel 1 {2000 + rank} 5000 1")))
    run_collector("merge", data, "-o", tmp_path / "all.zip")
    run_collector("merge", "--per-rank", data, "-o", tmp_path / "ranks")
    pids = []
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        for rank in range(3):
            name = f"rank_{rank}.pt.trace.json"
            its, alone = (sorted({e["pid"] for e in json.loads(text)["traceEvents"]
                                  if e.get("cat") == "kernel"})
                          for text in (archive.read(name), gzip.decompress(
                              (tmp_path / "ranks" / f"{name}.gz").read_bytes())))
            assert len(its) == 1 and alone == [0]
            pids += its
    assert len(set(pids)) == 3 and pids[0] == 0


def test_processes_beside_the_ranks(run_collector, make_gpu, tmp_path):
    """A process without GPU work that has the rank of another: a loader that the other started."""
    folder = make_gpu("train", 1, 1)
    subprocess.run([built(BUILD / "make_stream"), folder, "100", "2"], check=True, timeout=60)
    (folder / "p0.gpuprof").unlink()  # it has the process id of the rank
    result = run_collector("merge", "--per-rank", "-o", "traces", folder)
    assert result.returncode == 0, result.stderr
    files = sorted(str(p.relative_to(tmp_path / "traces"))
                   for p in (tmp_path / "traces").rglob("*.gz"))
    assert files == ["others/process_1001.pt.trace.json.gz", "rank_0.pt.trace.json.gz"]


def test_calls_and_ranges_of_no_thread(run_verb, make_records, tmp_path):
    """Thread 0, which is a process's own and calls nothing: in no recording but one that is made
    so. It is of its own process, and of no thread of another."""
    for kind, what in (("call", 9), ("push", 0), ("op_begin", 0), ("library_begin", 0)):
        lines = [line for rank in range(2) for line in (
            f"process {rank}", f"{TYPES['call']} 1 1000 10 0 0 cudaMalloc 0 64 ",
            *(f"{TYPES[kind]} 0 {2000 + i} 10 0 0 {what} 0 1,0,0,0,0,0 name" for i in range(9)))]
        folder = make_records(lines, name=kind)
        run_verb("merge", "--per-rank", "-o", kind + "-traces", folder)
        assert len(list((tmp_path / f"{kind}-traces").rglob("*.gz"))) == 2
        for verb in (("merge", "-o", "-"), ("report", "--format=json"), ("flame",)):
            run_verb(*verb, folder)


def test_a_process_without_threads(run_verb, tmp_path):
    """A range of its thread 0 is around no call of the process that comes next."""
    (tmp_path / "data").mkdir()
    records = [f"0 {TYPES['push']} 0 0 1000 0 0 0 0,0,0,0,0,0 {b'open'.hex()}",
               "1 cudaMalloc 0 0 2000 10 0 0 1,64 -"]
    for rank, record in enumerate(records):
        subprocess.run([built(BUILD / "make_raw"), tmp_path / f"data/{rank}.gpuprof", str(rank)],
                       input=f"meta env.RANK={rank}\n{record}\n", text=True, check=True)
    rows = [json.loads(line) for line in
            run_verb("export", "--format=jsonl", "-o", "-", "data").stdout.splitlines()]
    assert [(row["kind"], row["rank"], row["name"], row.get("range")) for row in rows[:2]] == [
        ("alloc", 1, "cudaMalloc", None), ("range", 0, "open", None)]
    assert "2 processes (2 ranks), 1 thread, 1 call" in run_verb("report", "data").stdout


@pytest.mark.parametrize("arguments,text", [
    (["--per-rank", "x"], "--per-rank writes several files; name a folder"),
    (["--per-rank", "-o", "-", "x"], "--per-rank writes several files; name a folder"),
    (["--per-rank", "-o", "a.zip", "x"], "an archive always has one file per rank"),
    (["--step-range", "x", "--step-by", "graph", "x"], "--step-by=graph cannot be combined"),
    (["--step-range"], "--step-range needs a value: PATTERN"),
])
def test_wrong_usage(run_collector, arguments, text):
    result = run_collector("merge", *arguments)
    assert result.returncode == 2 and text in result.stderr and result.stderr.count("\n") == 1


def test_full_disk(run_collector, make_gpu, tmp_path):
    folder = make_gpu("train", 1, 1)
    (tmp_path / "traces").write_text("a file")
    result = run_collector("merge", "--per-rank", "-o", "traces", folder)
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    result = run_collector("merge", "-o", "not/there.zip", folder)
    assert result.returncode == 1 and "name one in an existing folder" in result.stderr


@pytest.mark.long
def test_a_rank_costs_the_same_among_many(run_collector, make_gpu):
    """A trace of one process does not look at all others: 4 times the ranks, 4 times the work."""
    seconds = {}
    for ranks in (500, 2000):
        folder = make_gpu("train", ranks, 1, name=f"ranks{ranks}")
        tries = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = run_collector("merge", "--per-rank", "-o", f"traces{ranks}", folder)
            assert done.returncode == 0, done.stderr
            tries.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        seconds[ranks] = min(tries)
    assert seconds[2000] < 6 * seconds[500], seconds


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_file_is_left_by_a_signal(collector, make_gpu, tmp_path, jobs, number):
    """As Ctrl-C does, in the middle."""
    data, folder = make_gpu("bench", 300_000, 2), tmp_path / "traces"
    words = [collector, "merge", f"-j{jobs}", "--per-rank", "-o", folder, data]
    with Program(words, stderr=subprocess.PIPE) as merge:
        while not (folder.exists() and is_writing(merge.pid, folder)):
            assert merge.poll() is None
            time.sleep(0.001)
        merge.send_signal(number)
        assert merge.wait() == -number
    assert not list(folder.iterdir())


def is_writing(pid, folder):
    """Has the process, or a child of it, a file in the folder open?"""
    def files(number):
        with contextlib.suppress(OSError):
            for link in pathlib.Path(f"/proc/{number}/fd").iterdir():
                with contextlib.suppress(OSError):
                    yield os.readlink(link)
    with contextlib.suppress(OSError):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(name.startswith(f"{folder}/") for number in (pid, *children)
                   for name in files(number))
    return False
