# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report --by=stack` and `--by=python-line`."""

import json
import pathlib
import re
import subprocess
import sys
import sysconfig

import csv_tables
import toolchain
from made_stacks import (FIRST, FOURTH, SECOND, THIRD, TRAIN, build_frames, build_id, offsets_of,
                         one_call, rows_of)


def test_report_by_stack(run_verb, make_stacks):
    rows, report = rows_of(run_verb, make_stacks(*TRAIN), "stack")
    found = {(row["call"], *row["frames"]): row for row in rows}
    assert set(found) == {stack[::-1] for stack in (FIRST, SECOND, THIRD, FOURTH)}
    first, third = found[FIRST[::-1]], found[THIRD[::-1]]
    assert (first["calls"], first["host_ns"], first["gpu_work"], first["gpu_ns"]) == \
        (2, 800, 2, 37000)
    assert found[SECOND[::-1]]["bytes"] == 4096
    assert abs(found[SECOND[::-1]]["share"] - 100000 / 102700) < 0.0001
    assert third["borrowed"] and not first["borrowed"]
    assert report["without_stack"] == {"calls": 1, "host_ns": 300, "gpu_work": 1, "gpu_ns": 100,
                                       "bytes": 0}
    assert [row["host_ns"] for row in rows] == sorted((row["host_ns"] for row in rows),
                                                      reverse=True)


def test_a_call_has_the_stack_of_its_operator(run_verb, make_stacks):
    """As run --pytorch=stacks has it of the outermost one; its own says more. Tables, reasons of
    idle time and findings say that line."""
    data = make_stacks(
        "process 0", "meta stacks=libunwind", "meta python=3.11.7", "name 1 gemm",
        "python 1 9 /home/me/train.py\tforward", "python 2 30 /home/me/train.py\tother",
        "stack 1 0 p1", "stack 2 0 p2", "op 1000 7 1 aten::linear", "op 1100 8 0 aten::addmm",
        "call cudaLaunchKernel 1200 300 1 0 0", "call cudaMalloc 1600 50 2 2 64",
        "op_end 1700 8", "call cudaLaunchKernel 200001700 300 3 0 0", "op_end 200002100 7",
        "call cudaFree 200002200 10 4 0 0",
        "kernel 1 1400 40000 1", "kernel 1 200001900 30000 3")
    rows, report = rows_of(run_verb, data, "python-line")
    lines = {row["line"]: (row["calls"], row["host_ns"], row["gpu_ns"]) for row in rows}
    assert lines == {9: (2, 600, 70000), 30: (1, 50, 0)}
    assert report["without_stack"]["calls"] == 1 and report["without_stack"]["gpu_ns"] == 0
    rows, _ = rows_of(run_verb, data, "stack")
    assert {(row["call"], *row["frames"]) for row in rows} == {
        ("cudaLaunchKernel", "forward (train.py:9)"), ("cudaMalloc", "other (train.py:30)")}
    report = json.loads(run_verb("report", "--format=json", data).stdout)
    [host] = [row for row in report["idle"] if row["cause"] == "host"]
    assert host["place"] == "forward (train.py:9)" and host["total_ns"] > 199 * 10**6
    assert [(row["id"], row["where"]) for row in report["findings"]
            if row["id"] == "host-bound"] == [("host-bound", "forward (train.py:9)")]


def test_losses_are_counted_once(run_verb, make_stacks):
    """Two tables look at the same ranges; an end without a begin is one all the same."""
    _, report = rows_of(run_verb, make_stacks(*TRAIN, "pop 900000"), "stack")
    assert report["losses"]["unmatched_ranges"] == 1


def test_report_by_python_line(run_verb, make_stacks):
    """A recursion counts once for its line; a range stands in for Python frames."""
    recursion = ["python 4 3 /home/me/deep.py\tdeep", "stack 5 0 p4 p4 p4 p1",
                 "call cudaMalloc 600000 50 20 5 1"]
    rows, _ = rows_of(run_verb, make_stacks(*TRAIN, *recursion), "python-line")
    found = {(row["range"] or row["function"], row["borrowed"]): row for row in rows}
    assert len(found) == len(rows)
    values = {key: (row["calls"], row["host_ns"], row["gpu_ns"], row["calls_all"],
                    row["host_ns_all"], row["gpu_ns_all"]) for key, row in found.items()}
    assert values == {
        ("Trainer.step", False): (1, 100000, 0, 3, 100800, 37000),
        ("Model.forward", False): (2, 800, 37000, 2, 800, 37000),
        ("<module>", False): (0, 0, 0, 4, 100850, 37000),
        ("deep", False): (1, 50, 0, 1, 50, 0),
        ("forward", False): (1, 900, 5000, 1, 900, 5000),
        ("Model.forward", True): (1, 700, 40000, 1, 700, 40000),
        ("Trainer.step", True): (0, 0, 0, 1, 700, 40000),
        ("<module>", True): (0, 0, 0, 1, 700, 40000),
    }
    assert (found["deep", False]["file"], found["deep", False]["line"]) == ("/home/me/deep.py", 3)


def test_report_as_text_and_csv(run_verb, make_stacks):
    folder = make_stacks(*TRAIN)
    text = run_verb("report", "--by=stack", folder).stdout
    assert "\ncalls by stack\n" in text and "(no stack: below the threshold" in text
    assert "median and p95" not in text  # that table, and no other
    assert "gpuprof run --backtrace=launch,copy,graph_launch records a stack" in text
    lines = [line.split("  ")[-1].strip() for line in text.splitlines()]
    at = lines.index("cudaMalloc", lines.index("stack or line, the innermost frame first"))
    assert lines[at:at + 5] == list(SECOND[::-1])
    text = run_verb("report", "--by=python-line", folder).stdout
    assert re.search(r"97\.4% +100\.000 us +1 +4\.0 KiB +100\.800 us +37\.000 us +"
                     r"Trainer\.step \(/home/me/train\.py:12\)\n", text)
    assert "Model.forward (/home/me/model.py:7) [borrowed]\n" in text
    assert "  range forward\n" in text
    table = csv_tables.tables(
        run_verb("report", "--by=python-line", "--format=csv", folder).stdout)
    rows = table["calls_by_python_line"]
    assert ["1", "5000"] in [[row["gpu_work"], row["gpu_ns"]] for row in rows
                             if row["range"] == "forward"]
    assert ["3", "100800"] in [[row["calls_all"], row["host_ns_all"]] for row in rows
                               if (row["file"], row["line"]) == ("/home/me/train.py", "12")]
    stacks = csv_tables.tables(run_verb("report", "--by=stack", "--format=csv", folder).stdout)
    [row] = [row for row in stacks["calls_by_stack"] if row["call"] == "cudaMalloc"]
    assert row["bytes"] == "4096" and len(json.loads(row["frames"])) == len(SECOND) - 1


def test_why_there_are_none(run_verb, make_stacks):
    """Each reason once, with how many processes give it."""
    old, off = "Python 3.7.16: this version is not known", "switched off"
    lines = []
    for rank, (stacks, python) in enumerate(((None, old), (off, None), (None, old), (None, None))):
        lines += [f"process {rank}",
                  f"meta stacks={'absent: ' + stacks if stacks else 'libunwind'}",
                  f"meta python={'absent: ' + python if python else '3.11.2'}",
                  "call cudaMalloc 1000 500 1 0 4096"]
    folder = make_stacks(*lines)
    wanted = {f"stacks absent in 1 of 4 processes: {off}",
              f"Python frames absent in 2 of 4 processes: {old}"}
    said = run_verb("flame", folder).stderr.splitlines()
    assert wanted <= {line.removeprefix("gpuprof: ") for line in said}
    text = run_verb("report", "--by=python-line", folder).stdout
    assert wanted <= set(text.splitlines())
    _, report = rows_of(run_verb, folder, "python-line")
    assert report["stacks_absent"] == [{"reason": off, "processes": 1}]
    assert report["python_absent"] == [{"reason": old, "processes": 2}]


def test_sums_are_the_reports(library, program, run_verb, tmp_path):
    """However the calls are put together, nothing is lost and nothing counts twice."""
    environment = toolchain.environment(tmp_path / "data", library, GPUPROF_GPU="on",
                                        GPUPROF_BACKTRACE_THRESHOLD="5us")
    subprocess.run([program("demo")], env=environment, check=True, capture_output=True, timeout=120)
    by_stack, report = rows_of(run_verb, "data", "stack")
    by_line, _ = rows_of(run_verb, "data", "python-line")
    wanted = {"host_ns": sum(row["total_ns"] for row in report["functions"]),
              "calls": sum(row["calls"] for row in report["functions"]),
              "gpu_ns": sum(row["total_ns"] for table in ("cuda_gpu_kern_sum",
                                                          "cuda_gpu_mem_time_sum")
                            for row in report[table])}
    without = report["without_stack"]
    assert by_stack and all(0 < without[key] < wanted[key] for key in wanted)
    for rows in (by_stack, by_line):
        assert {key: sum(row[key] for row in rows) + without[key] for key in wanted} == wanted
    for weight, key in (("host", "host_ns"), ("gpu", "gpu_ns"), ("calls", "calls"),
                        ("bytes", "bytes")):
        lines = run_verb("flame", "data", f"--weight={weight}").stdout.splitlines()
        shown = sum(int(line.rpartition(" ")[2]) for line in lines)
        assert shown == sum(row[key] for row in by_stack) + without[key]


def test_module_without_a_readable_path(run_verb, make_stacks, tmp_path):
    """Its build id names it, and finds its symbols."""
    frames = build_frames()
    number = build_id(frames)
    folder = make_stacks(*one_call(f"module 1 {number} ", offsets_of(frames)["inlined"]))
    shown = run_verb("report", "--by=stack", "--symbols=none", folder).stdout
    assert f"\n{'':75}[build id {number}]+0x" in shown and "losses" not in shown
    tree = tmp_path / "tree" / ".build-id" / number[:2]
    tree.mkdir(parents=True)
    (tree / number[2:]).symlink_to(frames)
    text = run_verb("report", "--by=stack", "--symbols", tmp_path / "tree", folder).stdout
    assert "frames.c:" in text and "build id" not in text


LIBRARIES = [
    "/usr/lib/python3.11/threading.py", "/usr/lib/python3/dist-packages/numpy/core.py",
    "/home/me/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
    "/home/me/venv/lib64/python3.9/functools.py", "/opt/conda/envs/x/lib/python3.10/queue.py",
    "/usr/lib/pypy3.10/socket.py", "/usr/lib/python311.zip/json/decoder.py",
    "/opt/python3.13t/lib/python3.13t/runpy.py", "/home/me/eggs/six-1.16.egg/six.py",
    "/home/me/.local/lib/python3.11/site-packages/x.py", "lib/python3.8/types.py",
    "<frozen importlib._bootstrap>", "<frozen runpy>", "<eval_with_key>.7",
    "<__array_function__ internals>", "<attrs generated init x>"]
OWN = ["/home/me/train.py", "train.py", "/home/me/lib/python/train.py", "/srv/python3.11/train.py",
       "/opt/pytorch/examples/main.py", "/home/me/lib/model.py", "/home/me/site/packages.py",
       "/home/me/app.zip/__main__.py", "<stdin>", "<string>", "<ipython-input-3-0a1b2c>",
       "/tmp/ipykernel_12/34.py", "/usr/local/bin/train.py", "/home/me/my.egg.py"]


def test_whose_a_line_is(run_verb, make_stacks):
    """A call of a library counts for the line of one's own below it, and for none without one."""
    lines = ["process 0", "meta stacks=x", "meta python=3.11", "python 1 1 /home/me/main.py\tmain"]
    for number, path in enumerate([*LIBRARIES, *OWN], 2):
        lines += [f"python {number} {number} {path}\tf", f"stack {number} 0 p{number:x} p1",
                  f"call cudaMalloc {1000 * number} {10 + number} {number} {number} 1"]
    lines += ["stack 99 0 p2 p3", "call cudaMalloc 900000 7 99 99 1"]  # nothing but libraries
    folder = make_stacks(*lines)
    first = 2 + len(LIBRARIES)
    rows = rows_of(run_verb, folder, "python-line", "--mine")[0]
    found = {row["file"]: (row["calls"], row["host_ns"], row["calls_all"]) for row in rows}
    assert found == {
        **{path: (1, 10 + number, 1) for number, path in enumerate(OWN, first)},
        "/home/me/main.py": (len(LIBRARIES), sum(range(12, 10 + first)),
                             len(LIBRARIES) + len(OWN)),
        None: (1, 7, 1)}
    assert [row["file"] for row in rows if row["only_libraries"]] == [None]
    text = run_verb("report", "--mine", folder).stdout
    assert "7 ns            1" in text and "  (lines of libraries alone)\n" in text
    assert "innermost line of your own code" in text


def test_lines_of_a_program_without_python(run_verb, make_stacks):
    """Where they are to be had is said, and only then."""
    folder = make_stacks("process 0", "meta stacks=x", "call cudaMalloc 1000 10 1 0 1")
    for options in (["--mine"], ["--by=python-line"]):
        text = run_verb("report", *options, folder).stdout
        assert "no line of Python is known" in text and "--by=stack" in text
    lines = ["process 0", "meta stacks=x", "meta python=3.11", f"python 1 1 {LIBRARIES[0]}\tf",
             "stack 1 0 p1", "call cudaMalloc 1000 10 1 1 1"]
    text = run_verb("report", "--mine", make_stacks(*lines, name="libraries")).stdout
    assert "  (lines of libraries alone)\n" in text and "no line of Python" not in text


def test_the_library_of_this_python_is_nobodys_own(run_verb, make_stacks):
    """The truth is where this Python itself says that its library is."""
    paths = {name: pathlib.Path(path) for name, path in sysconfig.get_paths().items()}
    files = {getattr(module, "__file__", None) or f"<frozen {name}>"
             for name, module in sys.modules.items()}
    files |= {str(file) for file in paths["stdlib"].glob("*/*.py")}
    library = [file for file in files if file[0] == "<" or any(
        pathlib.Path(file).is_relative_to(paths[name]) for name in ("stdlib", "purelib"))]
    lines = ["process 0", "meta stacks=x", "meta python=3.11", "python 1 1 /home/me/main.py\tmain"]
    for number, path in enumerate(library, 2):
        lines += [f"python {number} 1 {path}\tf", f"stack {number} 0 p{number:x} p1",
                  f"call cudaMalloc {1000 * number} 10 {number} {number} 1"]
    row, = rows_of(run_verb, make_stacks(*lines), "python-line", "--mine")[0]
    assert len(library) > 200 and (row["file"], row["calls"]) == ("/home/me/main.py", len(library))


def test_borrowed_lines_are_folded(run_verb, make_stacks):
    """What another thread did for a line is that line's; every sum is what it was."""
    folder = make_stacks(*TRAIN)
    rows = rows_of(run_verb, folder, "python-line", "--mine")[0]
    found = {row["range"] or row["function"]: (row["host_ns"], row["host_ns_all"], row["borrowed"])
             for row in rows}
    assert found == {"Trainer.step": (100000, 101500, True), "Model.forward": (1500, 1500, True),
                     "<module>": (0, 101500, True), "forward": (900, 900, False)}
    text = run_verb("report", "--by=python-line", "--mine", folder).stdout
    assert "[borrowed]" not in text
    for kind in ("stack", "shape", "grid"):
        assert run_verb("report", f"--by={kind}", "--mine", folder, status=2).stderr == \
            "gpuprof: report: --mine needs --by=python-line\n"
