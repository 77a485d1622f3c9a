# SPDX-License-Identifier: Apache-2.0
"""`gpuprof flame`: what its outputs show of a recording whose stacks are known."""

import collections
import gzip
import json
import os
import signal
import time
import xml.etree.ElementTree

import conftest
import pytest

from made_stacks import (BORROWED, CUT, FIRST, FORWARD, MODULE, SECOND, STEP, THIRD, TRAIN, WEIGHTS,
                         build_frames, build_id, check_speedscope, folded, offsets_of, rectangles)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_folded(run_verb, make_stacks, weight):
    result = run_verb("flame", make_stacks(*TRAIN), "--weight", weight)
    assert folded(result.stdout) == {";".join(stack): value
                                     for stack, value in WEIGHTS[weight].items()}
    assert all(line.startswith("rank 0: python train.py (testhost, pid 1000);")
               for line in result.stdout.splitlines())
    left_out = {"gpu": "100 ns of the time of launched work", "host": "300 ns of the time of calls",
                "calls": "1 of the calls (16.7%): "}.get(weight)
    assert f"[no stack]: {left_out}" in result.stderr if left_out else \
        "[no stack]" not in result.stderr


def test_svg_of_a_hostile_program(run_verb, make_stacks, tmp_path):
    """It is well-formed whatever bytes the program's name has."""
    command = f"meta cmdline=/bin/\x1b[31m\udcff<&\udce2\udc82 {'x' * 300}\udcc3"
    run_verb("flame", make_stacks(TRAIN[0], command, *TRAIN[1:]), "-o", tmp_path / "a.svg")
    title = xml.etree.ElementTree.parse(tmp_path / "a.svg").getroot()[0].text
    assert title.startswith("/bin/\ufffd[31m\ufffd<&\ufffd"), title


def test_folded_by_thread_and_process(run_verb, make_stacks):
    lines = list(TRAIN) + ["process 1", "meta stacks=x", *TRAIN[3:]]
    result = run_verb("flame", make_stacks(*lines), "--threads", "--format=folded")
    roots = collections.Counter(";".join(line.rpartition(" ")[0].split(";")[:2])
                                for line in result.stdout.splitlines())
    assert roots == {f"rank {rank}: python train.py (testhost, pid {pid});{child}": count
                     for rank, pid in ((0, 1000), (1, 1001))
                     for child, count in ((f"python (thread {pid})", 4), ("[no stack]", 1))}
    assert result.stdout.count("[range forward]") == 1  # the other is no process of Python


NATIVE = ("module 2 - /home/me/build/libmine.so", "module 3 - /usr/lib/libc.so.6",
          "module 4 - /usr/bin/python3.11", "module 5 - /home/me/solver",
          "python 4 9 /usr/lib/python3.11/threading.py\tThread.run",
          "stack 5 0 3+10 2+20 adead p2 p4 4+30 p1 5+40",
          "call cudaMalloc 600000 1000 20 5 64")


def test_own_frames_only(run_verb, make_stacks):
    """Those of libraries and marks are folded into who called them, and sums stay."""
    folder = make_stacks(*TRAIN, *NATIVE)
    assert folded(run_verb("flame", folder, "--mine").stdout) == {
        ";".join(FIRST): 800, ";".join(SECOND): 100000, "[no stack]": 300,
        ";".join(frame for frame in THIRD if frame != BORROWED): 700,
        "[range forward];libtrain.so+0x400;cudaLaunchKernel": 900,
        f"solver+0x40;{MODULE};{STEP};libmine.so+0x20;cudaMalloc": 1000}


def test_python_has_one_root(run_verb, make_stacks):
    """Stacks that are borrowed, or an operator's, have frames of Python alone: in all others what
    runs the interpreter is left out below the outermost of them, but for a program's own."""
    folder = make_stacks(
        *TRAIN[:7], "module 2 - /usr/lib/libc.so.6", "module 3 - /usr/bin/python3.11",
        "module 4 - /home/me/solver", "stack 1 0 p2 3+30 p1 3+20 2+10", "stack 2 2 p2 p1",
        "stack 3 0 p2 p1 3+20 4+40 2+10", "stack 4 0 3+50 2+10", "stack 5 0 p1",
        "op 5000 7 5 aten::linear", *(f"call cudaMalloc {1000 * i} {i} {i} {i % 5} 64"
                                      for i in range(1, 6)), "op_end 6000 7")
    assert folded(run_verb("flame", folder).stdout) == {
        f"{MODULE};python3.11+0x30;{STEP};cudaMalloc": 1,
        f"{MODULE};{STEP};{BORROWED};cudaMalloc": 2, f"solver+0x40;{MODULE};{STEP};cudaMalloc": 3,
        "libc.so.6+0x10;python3.11+0x50;cudaMalloc": 4, f"{MODULE};cudaMalloc": 5}


def test_frames_without_a_name_are_folded(run_verb, make_stacks):
    frames = build_frames()
    module = f"module 6 {build_id(frames)} {frames}"
    stack = f"stack 6 0 adead 6+{offsets_of(frames)['plain']} 2+20 p1"
    folder = make_stacks(*TRAIN, *NATIVE, module, stack, "call cudaFree 700000 77 21 6 0")
    found = folded(run_verb("flame", folder, "--fold-unnamed").stdout)
    named, = (stack for stack in found if stack.endswith(";cudaFree"))
    assert named.split(";")[:-2] == [MODULE] and "(frames.c:" in named.split(";")[-2]
    assert found == {
        named: 77, "[no stack]": 300, f"{MODULE};{STEP};{FORWARD};cudaLaunchKernel": 800,
        f"{MODULE};{STEP};cudaMalloc": 100000,
        f"{MODULE};Thread.run (threading.py:9);{STEP};cudaMalloc": 1000,
        f"{MODULE};{STEP};{FORWARD};{BORROWED};cudaLaunchKernel": 700,
        f"{CUT};[range forward];cudaLaunchKernel": 900}


def test_ranks_over_one_another(run_verb, make_stacks, tmp_path):
    """A frame is as wide as in all ranks together; another program stays beside them."""
    lines = list(TRAIN)
    for rank in (1, 2):
        lines += [f"process {rank}", "meta stacks=libunwind", "meta python=3.11.7", *TRAIN[3:]]
    lines += ["process 3", "meta stacks=x", "meta cmdline=serve --local-rank=3 -p 80", *TRAIN[3:],
              "process 4", "meta stacks=x", "meta cmdline=serve --local-rank=14 -p 80", *TRAIN[3:]]
    folder = make_stacks(*lines)
    out = run_verb("flame", folder, "--merge-ranks").stdout
    trees = {program: folded("\n".join(line for line in out.splitlines()
                                       if line.startswith(program)))
             for program in ("python train.py;", "serve --local-rank=* -p 80;")}
    assert sum(map(len, trees.values())) == len(out.splitlines()) == 10
    assert trees["python train.py;"] == {";".join(stack): 3 * value
                                         for stack, value in WEIGHTS["host"].items()}
    assert sum(trees["serve --local-rank=* -p 80;"].values()) == 2 * 102700
    threads = run_verb("flame", folder, "--merge-ranks", "--threads").stdout
    assert threads.count("python train.py;python;") == 4
    run_verb("flame", folder, "--merge-ranks", "-o", "x.svg")
    assert ">python train.py (5 processes): time of calls on the host: " \
        "513.500 us<" in (tmp_path / "x.svg").read_text()


def test_output_that_cannot_be_written(run_collector, make_stacks):
    """What has no stack in a graph that is not written is not said."""
    done = run_collector("flame", make_stacks(*TRAIN), "-o", "not-there/x.svg")
    assert done.returncode == 1 and "not-there/x.svg: No such file" in done.stderr
    assert "[no stack]" not in done.stderr


def test_what_has_no_stack_is_grey(run_verb, make_stacks, tmp_path):
    run_verb("flame", make_stacks(*TRAIN), "-o", "x.svg")
    colours = {group[0].text.rpartition(": ")[0]: group[1].get("fill")
               for group in xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot()
               if group.get("class") == "f"}
    grey = colours.pop("[no stack]")
    assert grey[1:3] == grey[3:5] == grey[5:] and grey not in colours.values()


def test_nothing_to_show(run_verb, make_stacks):
    folder = make_stacks("process 0", "meta stacks=absent: switched off",
                         "call cudaMalloc 1000 500 1 0 4096")
    for name in ("x.txt", "x.svg", "x.json"):
        result = run_verb("flame", folder, "-o", name)
        assert "absent: switched off" in result.stderr
        assert result.stderr.endswith(
            "gpuprof: the whole graph is [no stack]: no event has a stack with time of "
            "calls on the host; to record it: "
            "gpuprof run --backtrace=launch,alloc,copy,sync,graph_launch python train.py\n")
    assert run_verb("flame", "--weight=bytes", folder).stderr.endswith(
        "bytes allocated; to record it: gpuprof run --backtrace=alloc python train.py\n")
    assert "nothing to show: no event has time of launched work on the GPU\n" in \
        run_verb("flame", "--weight=gpu", folder).stderr


def test_name_of_another_kind(run_collector, make_stacks, tmp_path):
    """Folded stacks are not to pass for a page or a picture."""
    folder = make_stacks(*TRAIN)
    for name in ("x.html", "x.png"):
        result = run_collector("flame", folder, "-o", name)
        assert (result.returncode, result.stdout, result.stderr) == (
            2, "", f"gpuprof: flame: {name}: unknown file type; name it .svg (for a"
            " browser), .json (speedscope) or .folded\n")
        assert not (tmp_path / name).exists()
        assert run_collector("flame", folder, "-o", name, "--format=svg").returncode == 0


@pytest.mark.parametrize("weight", WEIGHTS)
def test_speedscope(run_verb, make_stacks, tmp_path, weight):
    run_verb("flame", make_stacks(*TRAIN), "-o", "x.speedscope.json", "--weight", weight)
    document = json.loads((tmp_path / "x.speedscope.json").read_text())
    check_speedscope(document)
    profile, = document["profiles"]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {tuple(names[index] for index in sample): value
             for sample, value in zip(profile["samples"], profile["weights"])}
    assert found == WEIGHTS[weight]
    assert profile["unit"] == {"calls": "none", "bytes": "bytes"}.get(weight, "nanoseconds")
    if weight == "host":
        frame = document["shared"]["frames"][names.index(STEP)]
        assert frame == {"name": STEP, "file": "/home/me/train.py", "line": 12}
        assert "[no stack]: 300 ns of the time of calls" in document["name"]


def test_svg(run_verb, make_stacks, tmp_path):
    folder = make_stacks(*TRAIN)
    run_verb("flame", folder, "-o", "x.svg")
    found = rectangles(tmp_path / "x.svg")
    whole, = found["all"]
    assert whole[:2] == (10, 1180)
    malloc, = found["cudaMalloc"]
    assert abs(malloc[1] - 1180 * 100000 / 102700) < 0.02
    step = max(found[STEP])
    assert step[2] > malloc[2]  # who called stands below
    assert step[0] <= malloc[0] + 0.01 and malloc[0] + malloc[1] <= step[0] + step[1] + 0.01
    texts = [e.text for e in xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot().iter()
             if e.tag.endswith("}text")]
    title = "python train.py: time of calls on the host: 102.700 us"
    assert title in texts
    assert xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot()[0].text == title
    assert any("[no stack]: 300 ns of the time" in (text or "") for text in texts)
    assert STEP in texts  # wide enough
    again = (tmp_path / "x.svg").read_bytes()
    run_verb("flame", folder, "--format=svg", "-o", "y")
    assert (tmp_path / "y").read_bytes() == again


def test_forms_agree_about_what_has_no_stack(run_verb, make_stacks, tmp_path):
    """One tree is written in each form, what has no stack included."""
    folder = make_stacks(*TRAIN)
    lines = run_verb("flame", folder).stdout.splitlines()
    run_verb("flame", folder, "-o", "x.svg")
    drawn = rectangles(tmp_path / "x.svg")
    value, = (int(line.rpartition(" ")[2]) for line in lines if "[no stack]" in line)
    (_, width, _), = drawn["[no stack]"]
    assert abs(width - 1180 * value / 102700) < 0.02
    assert len(lines) == 5 and drawn["all"][0][1] == 1180


def test_a_hang_is_told_as_one(run_verb, collector, program, tmp_path):
    """A call that never returned has no stack, for a reason of its own; nor is its kernel lost."""
    environment = {**os.environ, "SIMCUDA_KERNEL_NS": "60000000000"}
    with conftest.Program([collector, "run", "--quiet", "--seal=100ms", "-o", "data",
                           program("demo")], env=environment, cwd=tmp_path,
                          start_new_session=True) as process:
        hung, end = [], time.monotonic() + 60
        while not hung and time.monotonic() < end:
            time.sleep(0.1)
            if list(tmp_path.glob("data/*.gpuprof")):
                report = json.loads(run_verb("report", "--keep-live", "--format=json",
                                             "data").stdout)
                hung = [call for call in report["open_calls"] if call["lasted_ns"] > 1_200_000_000]
        assert hung
        os.killpg(process.pid, signal.SIGKILL)  # both ranks: either may have hung first
    conftest.end_children(20)
    report = json.loads(run_verb("report", "--format=json", "data").stdout)
    assert report["losses"].get("gpu_pending")
    said = run_verb("flame", "data").stderr
    assert "lost, or not returned" in said


def test_narrow_frames_are_left_out(run_verb, make_stacks, tmp_path):
    """What is too narrow to be seen keeps its place, and the file stays small."""
    count = 50000
    folder = make_stacks(
        "process 0", "meta stacks=x", f"python {count + 1} 1 f.py\tin_the_middle",
        *(f"python {i} {i} f.py\t{'a' if i % 2 else 'z'}_{i}" for i in range(1, count + 1)),
        *(f"stack {i} 0 p{i:x}" for i in range(1, count + 2)),
        *(f"call cudaMalloc {1000 + 10 * i} 10 {i} {i} 64" for i in range(1, count + 1)),
        f"call cudaMalloc 9000000 {10 * count} 99 {count + 1} 64")
    run_verb("flame", folder, "-o", "x.svg")
    found = rectangles(tmp_path / "x.svg")
    (middle,) = found.pop("in_the_middle (f.py:1)")
    assert [round(x) for x in middle[:2]] == [305, 590]
    assert len(found) == 3 and (tmp_path / "x.svg").stat().st_size < 10000
    assert f"{2 * count:,} frames narrower than 0.1 px are left out" in \
        (tmp_path / "x.svg").read_text()


def test_compressed_by_name(run_verb, make_stacks, tmp_path):
    """.gz behind it does not change what a name stands for."""
    folder = make_stacks(*TRAIN)
    for name in ("x.svg", "x.json", "x.folded"):
        run_verb("flame", folder, "-o", name)
        run_verb("flame", folder, "-o", f"{name}.gz")
        assert gzip.decompress((tmp_path / f"{name}.gz").read_bytes()) == \
            (tmp_path / name).read_bytes()


def test_wrong_usage(run_verb, make_stacks):
    folder = make_stacks(*TRAIN)
    assert "--weight" in run_verb("flame", folder, "--weight=time", status=2).stderr
    assert "folded|speedscope|svg" in run_verb("flame", folder, "--format=csv", status=2).stderr
    recording = next(folder.glob("*.gpuprof"))
    assert "not written: it is a recording" in \
        run_verb("flame", folder, "-o", recording, status=2).stderr
    assert "not written: it is a recording" in \
        run_verb("flame", folder, "-o", "x.gpuprof", status=2).stderr
