# SPDX-License-Identifier: Apache-2.0
"""gpuprof export --format=csv and jsonl, a row an event: by Python's own csv and json, against the
SQLite export, the report, and what was put into the recording."""

import collections
import csv
import gzip
import io
import json
import random
import re
import sqlite3
import subprocess

import pytest

import csv_tables
from conftest import BUILD, ROOT, built
from made_ops import labelled_product

COLUMNS = ("kind name start_ns duration_ns job rank host pid tid device context stream "
           "correlation bytes calls error state step range operator library args").split()
TEXTS = {"kind", "name", "host", "error", "state", "range", "operator", "library"}
CALLS = {"launch", "alloc", "copy", "sync", "graph", "other"}
WORK = {"kernel": "KERNEL", "gpu_memcpy": "MEMCPY", "gpu_memset": "MEMSET",
        "gpu_graph": "GRAPH_TRACE"}


@pytest.fixture(name="events")
def fixture_events(run_verb):
    """The rows as JSON lines have them, after a look that csv has the same."""
    def made(*words):
        lines = [json.loads(line) for line in
                 run_verb("export", "--format=jsonl", "-o", "-", *words).stdout.splitlines()]
        table = list(csv.reader(io.StringIO(
            run_verb("export", "--format=csv", "-o", "-", *words).stdout), strict=True))
        assert table[0] == COLUMNS and len(table) == len(lines) + 1
        for row, line in zip(table[1:], lines):
            assert [column for column in COLUMNS if column in line] == list(line)
            for column, cell in zip(COLUMNS, row, strict=True):
                value = line.get(column)
                if column == "args":
                    assert (json.loads(cell) if cell else None) == value
                elif isinstance(value, str):
                    assert cell == "".join(" " if c < " " or c == "\x7f" else c for c in value)
                else:
                    assert cell == ("" if value is None else str(value))
                    assert value is None or column not in TEXTS or column == "error"
        return lines
    return made


def of(lines, *kinds):
    return [line for line in lines if line["kind"] in kinds]


def test_texts_of_any_kind(make_ranges, events):
    """Names, and domains, which are quoted twice in csv, of each length and at each place."""
    rng, letters = random.Random(5), ['"', "\\", ",", "\x01", "\x7f", "é", "😀", "{", "a", "b", "c"]
    texts = ["".join(rng.choices(letters, (4, 2, 1, 1, 1, 1, 1, 1, 9, 9, 9), k=length)) + "x"
             for length in range(48) for _ in range(4)]
    script = [f"domain {i + 1} {i + 1} {text}" for i, text in enumerate(texts)]
    script += [f"{word} {1000 + 2 * i + after} {i + 1} {texts[-i - 1] if not after else ''}"
               for i in range(len(texts)) for after, word in ((0, "push"), (1, "pop"))]
    ranges = of(events(make_ranges(script)), "range")
    assert [(e["name"], e["args"]["domain"]) for e in ranges] == list(zip(reversed(texts), texts))


def test_rows_are_those_of_sqlite(make_gpu, events, run_verb, tmp_path):
    folder = make_gpu("train", 2, 6)
    lines = events(folder)
    run_verb("export", folder, "-o", "x.sqlite")
    base = sqlite3.connect(tmp_path / "x.sqlite")
    assert sorted((e["name"], e["start_ns"], e["duration_ns"], e["pid"], e["tid"],
                   e["correlation"]) for e in of(lines, *CALLS)) == sorted(base.execute(
        """SELECT value, start, end - start, (globalTid >> 24) & 0xffffff, globalTid & 0xffffff,
        correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId"""))
    # Work is on its call's thread, in the step in which that began.
    for kind, table in WORK.items():
        bytes_of = "x.bytes" if "mem" in kind else "NULL"
        assert sorted((e["start_ns"], e["duration_ns"], e["device"], e["context"], e["stream"],
                       e["correlation"], e["tid"], e["step"], e.get("bytes"))
                      for e in of(lines, kind)) == sorted(base.execute(
            f"""SELECT x.start, x.end - x.start, deviceId, contextId, streamId, correlationId,
            r.globalTid & 0xffffff, s.number, {bytes_of} FROM CUPTI_ACTIVITY_KIND_{table} AS x
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) JOIN GPUPROF_STEPS AS s ON
            s.globalPid = x.globalPid AND r.start >= s.start AND r.start < s.end""")) != [], kind
    assert sorted((e["name"], *e["args"]["grid"], e["args"]["registers"],
                   e["args"]["dynamic_shared"]) for e in of(lines, "kernel")) == sorted(
        base.execute("""SELECT value, gridX, gridY, gridZ, registersPerThread, dynamicSharedMemory
        FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName"""))
    assert sorted((e["name"], e["start_ns"], e["duration_ns"]) for e in of(lines, "range")) == \
        sorted(base.execute("SELECT text, start, end - start FROM NVTX_EVENTS WHERE eventType IN "
                            "(59, 60)"))
    assert sorted((e["pid"], e["step"], e["start_ns"], e["duration_ns"], e.get("state"))
                  for e in of(lines, "step")) == sorted(base.execute(
        """SELECT (globalPid >> 24) & 0xffffff, number, start, end - start,
        iif(isPartial, 'partial', NULL) FROM GPUPROF_STEPS"""))
    for kind, table in (("cuda_sync", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
                        ("overhead", "GPUPROF_OVERHEAD"), ("memory",
                                                           "CUDA_GPU_MEMORY_USAGE_EVENTS")):
        assert sorted(e["start_ns"] for e in of(lines, kind)) == [
            start for start, in base.execute(f"SELECT start FROM {table} ORDER BY 1")] != []
    [epoch] = {e["args"]["epoch_ns"] for e in of(lines, "process")}
    assert (int(epoch),) == base.execute(
        "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    base.close()


def test_ranges_around_are_those_of_the_report(make_gpu, events, run_verb):
    """The innermost range of a call, and of the work that it made."""
    folder = make_gpu("train", 1, 6)
    lines = events(folder)
    ranges = sorted((e["start_ns"], e["start_ns"] + e["duration_ns"], e["tid"], e["name"])
                    for e in of(lines, "range") if e["args"]["by"] == "push")
    around = {}
    for e in of(lines, *CALLS):
        open_then = [r for r in ranges if r[0] <= e["start_ns"] < r[1] and r[2] == e["tid"]]
        around[e["correlation"]] = e.get("range")
        if open_then and e.get("range") != "request":  # one of start and end
            assert e["range"] == max(open_then)[3]
    work = of(lines, *WORK)
    assert work and all(e.get("range") == around[e["correlation"]] for e in work)
    assert len({e.get("range") for e in work}) > 1
    rows = csv_tables.tables(run_verb("report", "--format=csv", folder).stdout)
    told = {row["name"]: (int(row["instances"]), int(row["total_ns"]))
            for row in rows["cuda_gpu_kern_sum"]}
    sums = collections.defaultdict(lambda: (0, 0))
    for e in of(lines, "kernel"):
        count, ns = sums[e["name"]]
        sums[e["name"]] = count + 1, ns + e["duration_ns"]
    assert sums == told


PIECES = {
    "--kind=kernel,launch": lambda e: e["kind"] in ("kernel", "launch"),
    "--step=2:4": lambda e: e.get("step") in (2, 3),
    "--rank=1": lambda e: e["rank"] == 1,
    "--from=250us --to=450us": lambda e: 250000 <= e["start_ns"] < 450000,
    "--device=1": lambda e: e.get("device", 1) == 1,
    "--tid=1001": lambda e: e["tid"] == 1001,
    "--min-duration=4us": lambda e: e["duration_ns"] >= 4000,
    "--name=^cuda.*Async$|kernel_number": lambda e: re.search("^cuda.*Async$|kernel_number",
                                                              e["name"]),
}


@pytest.mark.parametrize("piece", [(), ("-j2",), ("--kind=range",), ("--to=0.3us", "-j2")])
def test_what_is_open_at_the_end(make_stacks, events, piece):
    """It lasts until the last event of its process, as `open` says."""
    folder = make_stacks("process 0", "push 1000 outer", "op 1100 5 0 inner",
                         "call cudaFree 2000 500 1 0 0",
                         "process 1", "push 1200 other", "call cudaFree 5000 500 1 0 0")
    rows = {e["name"]: e for e in of(events(folder, *piece), "range", "operator")}
    assert {name: (e["duration_ns"], e["state"]) for name, e in rows.items()} == {
        name: (ns, "open") for name, ns in (("outer", 1500), ("inner", 1400), ("other", 4300))
        if name in rows} and {"outer", "other"} <= set(rows)


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece(make_gpu, events, piece):
    """Its calls and work are those that a filter of the whole finds; the kind is that of --kind."""
    folder = make_gpu("train", 2, 6)

    def keys(lines):  # ids and pids have the process's number among those that are read
        return collections.Counter(json.dumps(
            {k: v for k, v in e.items() if k not in ("pid", "correlation")}, sort_keys=True)
            for e in lines)
    whole = of(events(folder), *CALLS, *WORK)
    part = of(events(*piece.split(" "), folder), *CALLS, *WORK)
    assert keys(part) == keys(filter(PIECES[piece], whole))
    assert 0 < len(part) < len(whole)


def made(tmp_path):
    r = labelled_product(b'bad \xff"\\\n,; =cmd()\x1b\xe2\x80\xae')
    return r.write(built(BUILD / "make_raw"), tmp_path / "data")


def test_operators_errors_and_hostile_names(tmp_path, events):
    lines = events(made(tmp_path))
    ops = [(e["name"], e["kind"], e["args"]["by"], e["args"].get("sequence"),
            e["args"].get("input_dims")) for e in lines if "by" in e.get("args", {})]
    assert sorted(ops) == [("MmBackward0", "operator", "backward", None, None),
                           ("aten::mm", "operator", "operator", 7, [[3, 4], [4, 5]]),
                           ("labelled", "range", "label", None, None)]
    kernels = of(lines, "kernel")
    assert [(e["name"], e["operator"]) for e in kernels][0] == ("void gemm<float>(float*)",
                                                               "aten::mm")
    assert kernels[1]["name"].startswith('bad \ufffd"\\\n,; =cmd()\x1b')
    assert kernels[1]["operator"] == "MmBackward0"
    [failed] = [e for e in lines if "error" in e]
    assert failed["name"] == "cudaFree" and failed["error"] == "cudaErrorInvalidValue"
    assert failed["args"] == {"ptr": "0x1"}


def test_losses_and_calls_that_did_not_return(run_collector):
    done = run_collector("export", "--format=jsonl", "-o", "-", "--keep-live",
                         ROOT / "test/corpus/live-good.gpuprof")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["state"] for e in of(lines, *CALLS) if "state" in e] == ["open"]
    assert {e["name"]: e["args"]["value"] for e in of(lines, "note")}["open_calls"] == 1


@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz", "jsonl.gz", "csv.zst"])
def test_names_of_files(make_gpu, run_verb, tmp_path, ending):
    folder = make_gpu("train", 1, 3)
    plain = run_verb("export", f"--format={ending.partition('.')[0]}", "-o", "-", folder).stdout
    assert run_verb("export", folder, "-o", f"x.{ending}").stdout == ""
    data = (tmp_path / f"x.{ending}").read_bytes()
    if ending.endswith("gz"):
        data = gzip.decompress(data)
    elif ending.endswith("zst"):
        data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    assert data.decode() == plain != ""


def test_full_disk(make_gpu, run_collector):
    done = run_collector("export", "--format=csv", "-o", "/dev/full", make_gpu("bench", 20000))
    assert done.returncode == 1 and "No space left" in done.stderr and \
        done.stderr.count("\n") == 1


def test_help_has_all_columns(run_collector):
    told = run_collector("help", "events").stdout
    assert re.findall(r"^  (\w+) +\w", told, re.MULTILINE) == COLUMNS


def test_work_ahead_of_its_call_in_a_crowd(make_stacks, run_verb):
    """Each process has its own look ahead, whether its events are read alone or among others."""
    lines = []
    for process in range(3):
        lines += [f"process {process}", "name 1 k", "kernel 1 900 50 77"]
        lines += [f"call cudaMalloc {1000 + 100 * i} 50 0 0 0" for i in range(300)]
        lines += ["call cudaLaunchKernel 99000 500 77 0 0"]
    folder = make_stacks(*lines)
    for verb in ("report --format=json", "merge -o -", "export --format=csv -o -"):
        assert "that are not recorded" not in run_verb(*verb.split(), folder).stderr, verb
