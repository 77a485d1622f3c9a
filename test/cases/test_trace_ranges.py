# SPDX-License-Identifier: Apache-2.0
"""Ranges, operators and steps in traces with GPU work, on the host and on the device."""

import collections
import gzip
import json

import pytest
from merged_trace import GPU_CATEGORIES, at, check_rows, merged, names, of_category


def test_ranges(merged):
    trace = merged("train", 1, 2)
    ranges = [e for e in of_category(trace, "user_annotation")
              if not e["name"].startswith("ProfilerStep#")]
    by_name = collections.defaultdict(list)
    for e in ranges:
        by_name[e["name"]].append(e)
    assert {name: len(found) for name, found in by_name.items()} == \
        {"step": 2, "forward": 2, "backward": 2, "epoch": 1}
    for step in range(2):
        forward = by_name["forward"][step]
        assert (forward["ts"], forward["dur"]) == (at(step, 0.02), 7.98)
        assert (forward["pid"], forward["tid"]) == (1000, 1000)
        assert forward["args"]["category"] == "passes"
        assert forward["args"]["color"] == "0xff00ff00"
        assert by_name["step"][step]["args"]["payload"] == step
        # its text is a registered string
        assert by_name["backward"][step]["args"]["domain"] == "lib"
    epoch, = by_name["epoch"]  # ended by another thread
    assert names(trace)[epoch["pid"], epoch["tid"]] == "ranges of threads"
    assert (epoch["ts"], epoch["dur"]) == (0.1, 299.7)
    marks = [e for e in trace["traceEvents"] if e["ph"] == "i" and e["name"] == "checkpoint"]
    assert [e["ts"] for e in marks] == [at(0, 60.5), at(1, 60.5)]
    assert any(e["name"] == "recording stopped" for e in trace["traceEvents"])
    assert names(trace)[1000, 1000] == "trainer 1000"


def test_ranges_on_the_device(merged):
    trace = merged("train", 1, 2)
    found = collections.defaultdict(list)
    for e in of_category(trace, "gpu_user_annotation"):
        assert "stream" not in e["args"] and not e["name"].startswith("ProfilerStep#")
        found[names(trace)[e["pid"], e["tid"]], e["name"]].append(e)
    rows = {row for row, _ in found}
    assert rows == {"ranges on stream 7", "ranges on stream 13"}
    for step in range(2):
        forward = found["ranges on stream 7", "forward"][step]
        # From the copy to the third kernel; an inner range begins some ns behind the outer ones.
        assert abs(forward["ts"] - at(step, 5)) < 0.01
        assert round(forward["ts"] + forward["dur"], 3) == at(step, 25)
        nccl = found["ranges on stream 13", "backward"][step]
        assert abs(nccl["ts"] - at(step, 26)) < 0.01
        assert round(nccl["ts"] + nccl["dur"], 3) == at(step, 46)
    assert len(found["ranges on stream 7", "epoch"]) == 1


def test_ranges_of_threads_that_share_a_stream(merged):
    """Each is whole, from its first to its last work, in a row of its thread."""
    trace = merged("shared", 1, 1)
    rows = names(trace)
    found = {e["name"]: (rows[e["pid"], e["tid"]], round(e["ts"] - 19.8, 3), e["dur"])
             for e in of_category(trace, "gpu_user_annotation")}
    assert len(of_category(trace, "gpu_user_annotation")) == 3
    assert found == {"step": ("ranges on stream 7", 0, 13),
                     "inner": ("ranges on stream 7", 0.001, 8.999),
                     "backward": ("ranges on stream 7, thread 1600", 2, 9)}
    check_rows(trace)


def test_operators(run_collector, make_gpu, tmp_path):
    """TensorBoard's operator view: kernel, call and range have one External id."""
    folder = make_gpu("train", 1, 2)
    whole = json.loads(run_collector("merge", folder).stdout)
    assert not of_category(whole, "cpu_op")  # a viewer would show ranges twice
    assert run_collector("merge", "--per-rank", "-o", "traces", folder).returncode == 0
    [file] = (tmp_path / "traces").glob("*.gz")
    trace = json.loads(gzip.decompress(file.read_bytes()))
    operators = {e["args"]["External id"]: e for e in of_category(trace, "cpu_op")}
    assert len(operators) == len(of_category(trace, "cpu_op"))
    for e in of_category(trace, "kernel"):
        operator = operators[e["args"]["External id"]]
        name = "forward" if e["args"]["correlation"] % 100 in (2, 3, 4) else "backward"
        assert operator["name"] == name
        calls = of_category(trace, "cuda_runtime") + of_category(trace, "cuda_driver")
        call = next(c for c in calls if c["args"]["correlation"] == e["args"]["correlation"])
        assert call["args"]["External id"] == e["args"]["External id"]
        assert operator["ts"] < call["ts"] < operator["ts"] + operator["dur"]


def steps_of(trace):
    return [(e["name"], e["ts"], e["dur"]) for e in of_category(trace, "user_annotation")
            if e["name"].startswith("ProfilerStep#")]


def test_steps(merged):
    steps = steps_of(merged("train", 1, 3))
    assert [name for name, _, _ in steps] == [f"ProfilerStep#{k}" for k in range(3)]
    assert steps[0][1:] == (at(0, 0), 99.999) and steps[1][1:] == (at(1, 0), 99.999)


def test_steps_of_a_range(merged):
    steps = steps_of(merged("train", 1, 3, "--step-range", "step"))
    assert [name for name, _, _ in steps] == [f"ProfilerStep#{k}" for k in range(3)]
    assert steps[1][1:] == (at(1, 0.01), 59.99)


def test_one_step_where_none_is_named(merged, run_collector, make_gpu, tmp_path):
    folder = make_gpu("train", 1, 1, name="other")
    target = tmp_path / "none.json"
    for name, said in (("no such range", "gpuprof: merge: --step-range: no range or label is "
                        "named 'no such range'; 'gpuprof report --table=nvtx_sum' lists "
                        "the names\n"), ("s*p", ""), ("step", "")):
        done = run_collector("merge", "--step-range", name, "-o", target, folder)
        assert (done.stderr, done.returncode) == (said, 2 if said else 0)
        assert target.exists() == (not said)
    trace = merged("shared", 1, 1)
    (name, begin, duration), = steps_of(trace)
    assert name == "ProfilerStep#0" and begin == min(
        e["ts"] for e in trace["traceEvents"] if e["ph"] == "X" and e["ts"])
    assert begin + duration >= max(e["ts"] + e["dur"] for c in GPU_CATEGORIES
                                   for e in of_category(trace, c))


@pytest.mark.parametrize("piece, begin, end", [
    ("--from=5us --to=6us", 5, 6.3),  # a call of it lasts longer
    ("--from=4.5us --to=5us --kind=range", 4.5, 5),
    ("--range=inner", 0.9, 30.8),  # until the work that was launched in it is done
    ("--kind=kernel", 19.8, 40.8)])
def test_a_piece_is_one_step_where_none_is_named(piece, begin, end, merged):
    """No longer than it, though ranges reach into it."""
    trace = merged("shared", 1, 1, *piece.split())
    step, = (e for e in trace["traceEvents"] if e["name"] == "ProfilerStep#0")
    assert (step["ts"], round(step["ts"] + step["dur"], 3)) == (begin, end)
    assert step["args"]["made of"] == "the whole piece"
    longest = [e for e in of_category(trace, "user_annotation") if e["name"] == "step"]
    assert [(e["ts"], e["dur"]) for e in longest] == [(0.8, 8)] * (piece != "--kind=kernel")
