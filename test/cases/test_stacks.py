# SPDX-License-Identifier: Apache-2.0
"""Stacks in the collector: in traces and dumps, deep ones and hostile ones, and those of a program
that was recorded."""

import json
import re
import subprocess
import xml.etree.ElementTree
import zipfile

import csv_tables
import toolchain
from made_stacks import (BORROWED, CUT, FIRST, FOURTH, SECOND, STEP, THIRD, TRAIN,
                         check_speedscope, folded, rectangles, rows_of, stack_by_frames, trace_of)


def test_trace(run_verb, make_stacks, tmp_path):
    run_verb("merge", make_stacks(*TRAIN), "-o", "trace.json")
    trace = trace_of(tmp_path, "trace.json")
    calls = {event["args"]["correlation"]: event for event in trace["traceEvents"]
             if event.get("cat") == "cuda_runtime"}
    for number, stack in ((11, FIRST), (16, FIRST), (12, SECOND), (13, THIRD), (14, FOURTH)):
        outwards = list(stack[-2::-1])
        assert stack_by_frames(trace, calls[number]) == outwards
        assert calls[number]["args"]["stack"] == outwards
    assert "sf" not in calls[15] and "stack" not in calls[15]["args"]
    assert calls[11]["sf"] == calls[16]["sf"]
    categories = {frame["name"]: frame["category"] for frame in trace["stackFrames"].values()}
    assert categories[STEP] == "/home/me/train.py"
    assert categories["libtrain.so+0x100"] == "/nowhere/libtrain.so"
    assert not any("sf" in event for event in trace["traceEvents"] if event.get("cat") == "kernel")


def test_trace_without_gpu_work(run_verb, make_stacks, tmp_path):
    """The trace is that of a recording without stacks, with the stacks."""
    host = [line for line in TRAIN if not line.startswith(("kernel", "name"))]
    run_verb("merge", make_stacks(*host), "-o", "a.json")
    without = [line for line in host if not line.startswith(("stack", "module", "python"))]
    run_verb("merge", make_stacks(*without, name="without"), "-o", "b.json")
    with_stacks, plain = trace_of(tmp_path, "a.json"), trace_of(tmp_path, "b.json")
    assert with_stacks.pop("stackFrames") and "stackFrames" not in plain
    for event in with_stacks["traceEvents"]:
        event.pop("sf", None)
        event.get("args", {}).pop("stack", None)
    assert with_stacks["traceEvents"] == plain["traceEvents"]


def test_traces_of_ranks(run_verb, make_stacks, tmp_path):
    lines = [*TRAIN, "process 1", "meta stacks=x", "python 1 3 other.py\tmain", "stack 1 0 p1",
             "call cudaMalloc 1000 500 11 1 64"]
    folder = make_stacks(*lines)
    run_verb("merge", folder, "-o", "traces.zip")
    with zipfile.ZipFile(tmp_path / "traces.zip") as archive:
        traces = {name: json.loads(archive.read(name)) for name in archive.namelist()
                  if name.startswith("rank_")}
    assert len(traces) == 2
    for name, trace in traces.items():
        names = {frame["name"] for frame in trace["stackFrames"].values()}
        assert ("main (other.py:3)" in names) == name.startswith("rank_1")
        assert (STEP in names) == name.startswith("rank_0")
        assert all(stack_by_frames(trace, event) for event in trace["traceEvents"]
                   if "sf" in event)


def test_dump(run_verb, make_stacks):
    made = run_verb("dump", make_stacks(*TRAIN)).stdout.splitlines()
    lines = [line for line in made if line.split()[0] in ("module", "python", "stack")]
    assert lines[0] == ('module begin=200 module=1 bias=0x7f0000000000 low=0x7f0000000000 '
                        'high=0x7f0000100000 text="- /nowhere/libtrain.so" thread=1 tid=1000')
    assert lines[2] == ('python begin=200 location=2 line=12 '
                        'text="/home/me/train.py\\u0000Trainer.step" thread=1 tid=1000')
    assert lines[-1] == "stack begin=300 stack=4 flags=1 frames=1+0x400,0xdead thread=1 tid=1000"
    assert any(line.startswith("call cudaMalloc ") and line.endswith(" stack=2") for line in made)


HOSTILE = ('a;b"c\\d<e>&\'f\\ng|</title><script>alert(1)</script>]]>\ufffe\udcff\x01 {}'
           '\u202e\u2067\x9b2J\x85')


def test_hostile_names(run_verb, make_stacks, tmp_path):
    """No name breaks a line, a JSON document or an SVG."""
    long = "x" * 3000 + "é" * 2000
    folder = make_stacks(
        "process 0", "meta stacks=x", "meta python=3.11", f"module 1 - /nowhere/{HOSTILE}",
        f"python 1 5 {HOSTILE}\t{HOSTILE}", f"python 2 0 f\t{long}", "stack 1 0 1+1 p1 p2",
        "stack 2 0 1+1", f"push 500 {HOSTILE}", "call cudaLaunchKernel 1000 500 1 1 0",
        "call cudaLaunchKernel 2000 500 2 2 0", "pop 3000", f"name 1 {HOSTILE}",
        "kernel 1 3000 10 1")
    for weight in ("host", "gpu"):
        text = run_verb("flame", folder, "--weight", weight).stdout
        assert all(re.fullmatch(r"[^\x00-\x1f]+ [0-9]+", line) for line in text.splitlines())
        lines = text.splitlines()
        assert len(lines) == (2 if weight == "host" else 1)
        assert {line.count(";") for line in lines} <= {3, 4, 5}
        run_verb("flame", folder, "--weight", weight, "-o", "x.json")
        check_speedscope(json.loads((tmp_path / "x.json").read_text()))
        run_verb("flame", folder, "--weight", weight, "-o", "x.svg")
        root = xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot()
        assert sum(element.tag.endswith("}script") for element in root.iter()) == 1
    run_verb("merge", folder, "-o", "t.json")
    trace = trace_of(tmp_path, "t.json")
    names = {frame["name"] for frame in trace["stackFrames"].values()}
    assert any(name.startswith("a;b\"c\\d<e>&'f g|") for name in names)
    assert any(name.startswith("xxx") and name.endswith("...") and len(name) < 520
               for name in names)
    for by in ("stack", "python-line"):
        rows_of(run_verb, folder, by)
        text = run_verb("report", f"--by={by}", folder).stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
        table = run_verb("report", f"--by={by}", "--format=csv", folder).stdout
        csv_tables.tables(table)


def test_records_that_mean_nothing(run_verb, make_stacks, tmp_path):
    """They are counted, and what they would have said is shown as unknown."""
    folder = make_stacks(
        "process 0", "meta stacks=x",
        "module 0 - /zero", "module 3 xyz /strange", "python 0 1 f\tg", "python 7 1 without a zero",
        "stack 0 0 p1", "stack 8 0",
        "stack 1 255 p1 3+10 9+5 w3000000000000001 wffffffffffffffff a0",
        "call cudaMalloc 1000 500 1 1 64", "call cudaMalloc 2000 500 2 99 64")
    result = run_verb("flame", folder)
    for verb in (["flame"], ["report"], ["report", "--by=stack"], ["dump"],
                 ["merge", "-o", "t.json"]):
        said = run_verb(*verb, folder).stderr
        assert said.count("unusable records of stacks: 5") == 1, verb
    assert list(folded(result.stdout)) == [
        ";".join([CUT, "0x0", "0xfffffffffffffff", "0x1", "unknown module+0x5",
                  "strange+0x10", "[unknown place in Python code]", BORROWED, "cudaMalloc"]),
        "[no stack]"]
    run_verb("flame", folder, "--strict", status=3)
    json.loads((tmp_path / "t.json").read_text())


def test_more_frames_than_are_kept(run_verb, make_stacks):
    """What is beyond the limit is said, and the numbers still add up."""
    places, depth = 2**19 + 5000, 1000
    stacks = range(places // depth)
    folder = make_stacks(
        "process 0", "meta stacks=x",
        *(f"python {i} {i} f.py\tf" for i in range(1, places)),
        *(f"stack {k + 1} 0 " + " ".join(f"p{k * depth + i + 1:x}" for i in range(depth))
          for k in stacks),
        *(f"call cudaMalloc {1000 + 10 * k} 5 {k + 1} {k + 1} 64" for k in stacks))
    result = run_verb("flame", folder)
    assert re.search(r"stacks: too many to keep: 0 stacks and modules, \d+ frames and 0 names "
                     "are left out", result.stderr)
    assert sum(folded(result.stdout).values()) == 5 * len(stacks)


def test_deep_stack(run_verb, make_stacks, tmp_path):
    """The deepest stack that a record can hold."""
    frames = " ".join(f"p{1 + i % 7}" for i in range(1024))
    folder = make_stacks("process 0", "meta stacks=x",
                         *(f"python {i} {i} f.py\tfunction_{i}" for i in range(1, 8)),
                         f"stack 1 0 {frames}", "call cudaMalloc 1000 500 1 1 64")
    stack, = folded(run_verb("flame", folder).stdout)
    assert stack.count(";") == 1024
    run_verb("flame", folder, "-o", "x.svg")
    assert sum(map(len, rectangles(tmp_path / "x.svg").values())) == 1024 + 3
    run_verb("merge", folder, "-o", "t.json")
    trace = trace_of(tmp_path, "t.json")
    event = next(event for event in trace["traceEvents"] if "sf" in event)
    assert len(stack_by_frames(trace, event)) == 1024
    shown = event["args"]["stack"]
    assert len(json.dumps(shown, separators=(",", ":"))) <= 4096 and shown[-1] == "..."
    assert len(shown) > 100 and shown[:-1] == stack_by_frames(trace, event)[:len(shown) - 1]


def test_recorded_program(library, program, run_verb, tmp_path):
    """From the program's source, through the library, to the flame graph."""
    demo = program("demo")
    lines = (toolchain.HERE.parent / "programs" / "demo.c").read_text().splitlines()
    environment = toolchain.environment(tmp_path / "data", library, GPUPROF_BACKTRACE_THRESHOLD=0)
    subprocess.run([demo], env=environment, check=True, capture_output=True, timeout=120)
    found = run_verb("flame", "--weight=calls", "data").stdout.splitlines()
    assert len(found) > 20 and not any("[no stack]" in line for line in found)
    for line in found:
        frames = line.rpartition(" ")[0].split(";")
        call, caller = frames[-1], frames[-2]
        place = re.fullmatch(r"\w+ \(demo\.c:([0-9]+)\)", caller)
        if place and call != "cudaLaunchKernel":
            assert f"{call}(" in lines[int(place[1]) - 1], line
    places = "".join(rf";{name} \(demo\.c:\d+\)" for name in ("main", "train", "trainer_init"))
    assert any(re.search(rf"{places};cudaMalloc \d+$", line) for line in found)
    run_verb("merge", "data", "-o", "trace.json")
    trace = trace_of(tmp_path, "trace.json")
    stacks = [event["args"]["stack"] for event in trace["traceEvents"] if "sf" in event]
    assert len(stacks) > 100 and any(
        frame.startswith("trainer_init (demo.c:") for stack in stacks for frame in stack)
