# SPDX-License-Identifier: Apache-2.0
"""One question, one answer: the report, SQL on the database, the JSON trace and Perfetto's format,
each read by a reader of its own, say what the maker of the recording knows; of the whole and of
pieces. (`make check-consumers` asks Perfetto's own SQL.)"""

import collections
import json
import random
import sqlite3

import perfetto_reader
import pytest
import stream_reader
from trace_answers import answers, slices_of

TYPES = stream_reader.TYPE_NUMBERS
RANKS, STEPS, STEP_NS, LAUNCHES = 3, 8, 1000000, 40
NAMES = ("gemm", "relu", "softmax(float*)")
COPIES = {1: ("HtoD", "Host-to-Device", 2, 3), 2: ("DtoH", "Device-to-Host", 3, 1),
          8: ("DtoD", "Device-to-Device", 3, 3)}  # by CUPTI's kind: names, memories
KERNELS = """SELECT p.rank, s.value, count(*), sum(k.end - k.start) FROM
    CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON k.demangledName = s.id
    JOIN GPUPROF_PROCESSES AS p USING (globalPid) GROUP BY 1, 2"""
CALLS = """SELECT s.value, count(*), sum(r.end - r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
    JOIN StringIds AS s ON r.nameId = s.id GROUP BY 1"""
BYTES = """SELECT o.label, count(*), sum(m.bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m
    JOIN ENUM_CUDA_MEMCPY_OPER AS o ON m.copyKind = o.id GROUP BY 1"""


class Rank:
    """One with the device of its number: calls, and what they made, of which much runs when the
    next step has begun."""

    def __init__(self, rank):
        dice = random.Random(rank)
        self.rank, self.calls, self.works = rank, [], []
        self.lines = [f"process {rank}"]
        self.add("device", 2, 1, args=(rank, 9, 0), text="Made GPU")
        free = 0
        for number, name in enumerate(NAMES, 1):
            self.add("kernel_name", 2, 2, args=(number,), text=name)
        for step in range(STEPS):
            now = (step + 1) * STEP_NS
            self.add("step", 1, now, args=(step,))
            for _ in range(LAUNCHES):
                now += 1000 + dice.randrange(15000)
                begin, ns = max(now + 3000, free + 2), 200 + dice.randrange(30000)
                self.launch(dice, now, begin, ns, step)
                free = begin + ns

    def add(self, kind, thread, begin, ns=0, call=0, code=0, args=(), text=""):
        self.lines.append(f"{TYPES[kind]} {thread} {begin} {ns} {call} 0 {code} 0 "
                          f"{','.join(map(str, args)) or '-'} {text}")

    def launch(self, dice, now, begin, ns, step):
        call, host_ns = len(self.calls) + 1, 300 + dice.randrange(600)
        kind = dice.choice((None, None, *COPIES))
        function = "cudaMemcpyAsync" if kind else "cudaLaunchKernel"
        self.add("call", 1, now, host_ns, call, function)
        self.calls.append((function, now, host_ns, step))
        if kind:
            memories, size = COPIES[kind][2:], dice.randrange(1, 1 << 24)
            self.add("copy", 2, begin, ns, call, args=(self.rank, 1, 7, kind, *memories, size, 1))
            self.works.append((COPIES[kind][0], begin, size, step))
        else:
            name = dice.randrange(len(NAMES))
            self.add("kernel", 2, begin, ns, call, args=(self.rank, 1, 7, name + 1, 1, 1))
            self.works.append((NAMES[name], begin, ns, step))


def known(ranks, step=range(STEPS), time=range(10**12), rank=range(RANKS)):
    """What is in that piece: a call where it begins; work so by time, by step as its call."""
    sums = {table: collections.defaultdict(lambda: (0, 0))
            for table in ("kernels", "copies", "calls")}
    devices = collections.Counter()
    for r in ranks[rank.start:rank.stop]:
        for what, rows in (("calls", r.calls), (None, r.works)):
            for name, begin, value, its in rows:
                if its not in step or begin - STEP_NS not in time:
                    continue
                table = sums[what or ("kernels" if name in NAMES else "copies")]
                table[name] = table[name][0] + 1, table[name][1] + value
                if name in NAMES and not what:
                    devices[r.rank] += value
    return {**{what: dict(table) for what, table in sums.items()}, "devices": dict(devices)}


def of_report(run_verb, folder, wanted, ranks):
    def tables(*more):
        piece = [option for option in wanted if not more or not option.startswith("--rank")]
        return json.loads(run_verb("report", "--format=json", *piece, *more, folder).stdout)

    def sums(rows, name, count, value):
        return {row[name]: (row[count], row[value]) for row in rows}
    names = {f"[CUDA memcpy {long}]": short for short, long, _, _ in COPIES.values()}
    whole = tables()
    copies = sums(whole["cuda_gpu_mem_size_sum"], "name", "instances", "total_bytes")
    return {"kernels": sums(whole["cuda_gpu_kern_sum"], "name", "instances", "total_ns"),
            "copies": {names[name]: value for name, value in copies.items()},
            "calls": sums(whole["functions"], "function", "calls", "total_ns"),
            "devices": {rank: sum(row["total_ns"] for row in tables(f"--rank={rank}")
                                ["cuda_gpu_kern_sum"]) for rank in ranks}}


def of_database(path):
    base = sqlite3.connect(path)
    kernels, devices = collections.defaultdict(lambda: (0, 0)), collections.Counter()
    for rank, name, count, ns in base.execute(KERNELS):
        kernels[name] = kernels[name][0] + count, kernels[name][1] + ns
        devices[rank] += ns
    names = {long: short for short, long, _, _ in COPIES.values()}
    found = {"kernels": dict(kernels), "devices": dict(devices),
             "copies": {names[label]: (n, size) for label, n, size in base.execute(BYTES)},
             "calls": {name: (n, ns) for name, n, ns in base.execute(CALLS)}}
    base.close()
    return found


@pytest.mark.parametrize("piece, of", [
    ((), {}), (("--step=2:5",), {"step": range(2, 5)}), (("--rank=1",), {"rank": range(1, 2)}),
    (("--from=1500us", "--to=4200us"), {"time": range(1500000, 4200000)}),
    (("--step=3:", "--rank=0-1"), {"step": range(3, STEPS), "rank": range(2)})])
def test_all_say_the_same(piece, of, make_records, run_verb, tmp_path):
    made = [Rank(rank) for rank in range(RANKS)]
    folder = make_records([line for r in made for line in r.lines])
    truth = known(made, **of)
    assert all(truth.values()) and len(truth["kernels"]) == len(NAMES)
    for name in ("x.sqlite", "x.json", "x.pftrace"):
        run_verb("export" if name == "x.sqlite" else "merge", *piece, folder, "-o", tmp_path / name)
    trace = json.loads((tmp_path / "x.json").read_text())
    own = perfetto_reader.Trace((tmp_path / "x.pftrace").read_bytes())
    assert of_report(run_verb, folder, piece, truth["devices"]) == truth
    assert of_database(tmp_path / "x.sqlite") == truth
    assert answers(slices_of(trace)) == answers(own.slices) == truth


def test_work_behind_its_window(make_records, run_verb):
    """Of a call inside another, or of one of several works of a call, it is certain only at the end
    that it is the work's: it counts all the same, and work of no call does not."""
    lines = ["process 0", f"{TYPES['kernel_name']} 2 5 0 0 0 0 0 1 k"]

    def add(kind, thread, begin, ns=0, call=0, flags=0, code=0, args=(0,)):
        lines.append(f"{TYPES[kind]} {thread} {begin} {ns} {call} {flags} {code} 0 "
                     f"{','.join(map(str, args))} ")
    add("window", 1, 50, args=(1, 1, 0, 0))
    add("call", 1, 100, 50, 1, code="cudaLaunchKernel")
    add("link", 1, 120, call=1, args=(2,))
    add("call", 1, 200, 50, 3, flags=stream_reader.NESTED, code="cuLaunchKernel")
    add("window", 1, 400, args=(1, 0, 0, 0))
    add("call", 1, 950, 50, 5, code="cudaLaunchKernel")
    for call, begin in ((1, 500), (2, 600), (3, 700), (4, 800), (5, 900)):
        add("kernel", 2, begin, 20, call, args=(0, 1, 7, 1, 1, 1))
    folder = make_records(lines)
    table = json.loads(run_verb("report", "--format=json", folder).stdout)["cuda_gpu_kern_sum"]
    rows = run_verb("export", "--format=jsonl", "-o", "-", folder).stdout.splitlines()
    begins = [row["start_ns"] for row in map(json.loads, rows) if row["kind"] == "kernel"]
    assert [row["instances"] for row in table] == [3] and begins == [450, 550, 650]
