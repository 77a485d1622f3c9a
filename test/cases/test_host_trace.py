# SPDX-License-Identifier: Apache-2.0
"""merge: samples, waits and what the interpreter did, from a recording whose times are known."""

import json

import pytest

from made_host import (FORWARD, FRAMES, HOST, MAIN, MS, NATIVE, TOKENIZE, WILD, sample)
from made_stacks import stack_by_frames

BEGIN = 4 * MS  # of the first event


@pytest.fixture(name="trace")
def fixture_trace(make_stacks, run_verb, tmp_path):
    def make(lines, *options):
        run_verb("merge", make_stacks(*lines), *options, "-o", tmp_path / "trace.json")
        return json.loads((tmp_path / "trace.json").read_text())
    return make


def of(trace, category):
    return [e for e in trace["traceEvents"] if e.get("cat") == category]


def rows(trace):
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"] == "thread_name"}


def place(e):
    return round(e["ts"] * 1000) + BEGIN, round(e["dur"] * 1000)


def test_samples(trace):
    found = trace(HOST)
    samples = [(e["tid"], round(e["ts"] * 1000) + BEGIN, e["args"]["time (us)"] / 1000, e["name"],
                tuple(stack_by_frames(found, e)[::-1])) for e in of(found, "cpu_sample")]
    assert samples == [
        (1000, 10 * MS, 10, "tokenize (data.py:81)", FRAMES[TOKENIZE]),
        (1000, 20 * MS, 10, "tokenize (data.py:81)", FRAMES[TOKENIZE]),
        (1000, 40 * MS, 20, "libtrain.so+0x100", FRAMES[NATIVE]),
        (1000, 50 * MS, 10, "in gpuprof", ()),
        (1003, 97 * MS, 10, "forward (model.py:7)", FRAMES[FORWARD])]
    assert all(e["ph"] == "i" and e["s"] == "t" for e in of(found, "cpu_sample"))
    assert [e["args"].get("periods", 1) for e in of(found, "cpu_sample")] == [1, 1, 2, 1, 1]
    assert [e["args"].get("stack", []) for e in of(found, "cpu_sample")] == \
        [list(stack)[::-1] for *_, stack in samples]


def test_looks_at_a_waiting_thread(trace):
    """On the row of the thread that was looked at, not of who looked."""
    found = of(trace(HOST), "gap_sample")
    assert [(e["tid"], e["args"]["state"], e["args"]["time (us)"]) for e in found] == \
        [(1000, "S", 5000), (1000, "S", 3000), (1000, "R", 1000)]
    assert found[0]["args"]["system call"] == 0 and "system call" not in found[1]["args"]
    assert found[1]["args"]["GIL held by tid"] == 1003
    assert found[1]["args"]["holder"] == list(FRAMES[TOKENIZE][::-1])


def test_waits(trace):
    found = trace(HOST)
    read, lock, sleep = of(found, "os")
    assert (read["name"], place(read), read["tid"]) == ("read", (60 * MS, 5 * MS), 1000)
    assert read["args"] == {"fd": 5, "file": '/data/tr"ain.bin', "bytes": 4096, "result": 4096,
                            "stack": list(FRAMES[TOKENIZE][::-1])}
    assert (sleep["name"], place(sleep), sleep["tid"]) == ("clock_nanosleep",
                                                           (80 * MS, 10 * MS), 1000)
    assert sleep["args"] == {"result": -1, "errno": 4}
    [wait] = [e for e in of(found, "gil") if e["name"] == "wait for the GIL"]
    assert (place(wait), wait["tid"]) == ((96 * MS, 3 * MS), 1000)
    assert wait["args"]["held before by tid"] == 1003 and wait["args"]["asked again"] == 2
    [gc] = of(found, "gc")
    assert (place(gc), gc["tid"]) == ((100 * MS, 20 * MS), 1000)
    assert gc["args"] == {"generation": 2, "collected": 1234, "uncollectable": 0}
    assert lock["name"] == "pthread_mutex_lock" and place(lock) == (71 * MS, 4 * MS)


def test_what_crosses_stands_beside(trace):
    """A lock that reaches out of the call around it; who holds the interpreter's, always."""
    found = trace(HOST)
    lock = of(found, "os")[1]
    holds = [e for e in of(found, "gil") if e["name"] != "wait for the GIL"]
    assert rows(found)[lock["pid"], lock["tid"]] == "host, thread 1000"
    assert [(e["name"], place(e)) for e in holds] == [
        ("python (tid 1000)", (4 * MS, 92 * MS)),
        ("loader (tid 1003)", (96 * MS + 1, 3 * MS - 2))]
    assert {rows(found)[e["pid"], e["tid"]] for e in holds} == {"GIL: who holds it"}
    slices = [e for e in found["traceEvents"] if e["ph"] == "X"]
    for row in {(e["pid"], e["tid"]) for e in slices}:
        ends = []
        for begin, length in sorted((place(e) for e in slices if (e["pid"], e["tid"]) == row),
                                    key=lambda span: (span[0], -span[1])):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin + length <= ends[-1]
            ends.append(begin + length)
    assert max(tid for _, tid in rows(found)) < 1 << 31


@pytest.mark.parametrize("options, counts", [
    (("--kind=sample",), {"cpu_sample": 5, "gap_sample": 3}),
    (("--kind=os,gc",), {"os": 3, "gc": 1}),
    (("--kind=gil", "--tid=1003"), {"gil": 1}),
    (("--kind=sample", "--tid=1000"), {"cpu_sample": 4, "gap_sample": 3}),
    (("--name=^clock_",), {"os": 1}),
    (("--from=0.055", "--to=0.060"), {"os": 1, "gap_sample": 1}),
])
def test_pieces(trace, options, counts):
    found = trace(HOST, *options)
    kinds = ("cpu_sample", "gap_sample", "os", "gil", "gc")
    assert {kind: len(of(found, kind)) for kind in kinds if of(found, kind)} == counts


def test_the_shortest_are_left_out_first(trace):
    """Samples have no length: a trace that is bounded keeps the waits."""
    many = (*HOST, f"on {MAIN}",
            *(sample((200 + n) * MS + 7, (TOKENIZE, FORWARD, NATIVE)[n % 3]) for n in range(1000)))
    found = trace(many, "--max-size=40K", "--no-counters")
    assert len(of(found, "os")) == 3 and len(of(found, "cpu_sample")) < 900
    left_out = found["otherData"]["left_out"]["host"]
    assert left_out["count"] + len(of(found, "cpu_sample")) + len(of(found, "gap_sample")) == 1008


def test_records_that_say_anything(trace):
    """Numbers, threads, functions and texts that mean nothing."""
    found = trace(WILD)
    assert {e["name"] for e in of(found, "os")} >= {"os_function_65535", "os_function_0"}
