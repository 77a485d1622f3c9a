# SPDX-License-Identifier: Apache-2.0
"""A merged trace opens in a real viewer, and the viewer finds in it what is in it."""

import collections
import json
import os
import subprocess

import pytest

import trace_viewer

needs_viewer = pytest.mark.skipif(
    not (trace_viewer.find_static() and trace_viewer.find_chromium()),
    reason="not run: no chromium or no golang-1.19-src; ./scripts/check installs them")

HAND_MADE = {
    "displayTimeUnit": "ns",
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "demo \u00e9<&>"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
        {"ph": "X", "name": "cudaMalloc", "cat": "cuda_runtime", "pid": 1, "tid": 2, "ts": 0.001,
         "dur": 10.25, "args": {"bytes": 4096, "result": "cudaSuccess"}},
        {"ph": "X", "name": "cuMemAlloc_v2", "cat": "cuda_driver", "pid": 1, "tid": 2, "ts": 1,
         "dur": 5},
        {"ph": "X", "name": "cudaFree", "cat": "cuda_runtime", "pid": 3, "tid": 3, "ts": 12.125,
         "dur": 0.001},
    ],
}


def check(trace):
    """`trace` (bytes) in the viewer; returns what the viewer found."""
    events = json.loads(trace)["traceEvents"]
    # The viewer counts an instant of a thread as a slice without a length.
    complete = [event for event in events
                if event["ph"] == "X" or (event["ph"] == "i" and event["s"] == "t")]
    found = trace_viewer.open_trace(trace)
    assert found["errors"] == [] and found["warnings"] == []
    assert found["slices"] == len(complete) > 0
    assert found["categories"] == collections.Counter(event["cat"] for event in complete)
    assert found["processes"] == len({event["pid"] for event in complete})
    assert found["threads"] == len({(event["pid"], event["tid"]) for event in complete})
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names <= set(found["process_names"])
    return found


@needs_viewer
def test_hand_made_trace():
    found = check(json.dumps(HAND_MADE).encode())
    assert found["deepest"] == 2
    assert found["duration_ms"] == pytest.approx(0.012125)


@needs_viewer
def test_page_tells_of_a_broken_trace():
    found = trace_viewer.open_trace(b'{"traceEvents": [{"ph": "X", "name": ')
    assert found["errors"] or found["warnings"] or not found["slices"]
    overlap = json.loads(json.dumps(HAND_MADE))
    overlap["traceEvents"][3]["dur"] = 50
    assert trace_viewer.open_trace(json.dumps(overlap).encode())["deepest"] == 1


@needs_viewer
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_demo_trace(collector, library, program, build, tmp_path, name):
    assert library
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "sim")}
    subprocess.run([collector, "run", "--quiet", "-o", "data", program("demo")], cwd=tmp_path,
                   env=environment, check=True, timeout=60, stdout=subprocess.DEVNULL)
    subprocess.run([collector, "merge", "data", "-o", name], cwd=tmp_path, check=True, timeout=60)
    trace = trace_viewer.read_trace(tmp_path / name)
    found = check(trace)
    assert found["processes"] >= 2 and found["threads"] >= 3
    picture = build / "viewer" / f"{name}.png"
    picture.parent.mkdir(exist_ok=True)
    trace_viewer.take_picture(trace, picture)
    assert picture.stat().st_size > 10000
