# SPDX-License-Identifier: Apache-2.0
"""`gpuprof report --source=DIR`: lines beside what they cost."""

import ast
import json
import os
import pathlib
import re
import sysconfig

import pytest

import csv_tables
from made_stacks import build_frames, build_id, offsets_of

TRAIN = '''import model


def helper(x):
    return x


class Trainer:
    # what trains
    @model.traced(
        "step")
    def step(self,
             batch):
        loss = self.model(batch)

        def inner():
            return """
not a line of its own"""
\t# a comment
        return loss.backward()

    def unused(self):
        pass


one = 1
two = 2
three = 3
four = 4
Trainer().step(one)
five = 5
six = 6
seven = 7
'''
MODEL = "def traced(name):\n    return lambda f: f\n\n\ndef forward(x):\n    return x @ x\n"
LIBRARY = "/usr/lib/python3.11/site-packages/torch/nn.py"

SCRIPT = (
    "process 0", "meta stacks=x", "meta python=3.11",
    "python 1 30 /there/proj/train.py\t<module>", "python 2 14 /there/proj/train.py\tTrainer.step",
    "python 3 6 /there/proj/pkg/model.py\tforward", f"python 4 9 {LIBRARY}\tcall",
    "python 5 20 /there/proj/train.py\tTrainer.step", "python 6 4 /elsewhere/other.py\tf",
    "stack 1 0 p4 p3 p2 p1", "stack 2 0 p4 p2 p1", "stack 3 2 p4 p5 p1", "stack 4 0 p6",
    "call cudaLaunchKernel 1000 500 11 1 0", "call cudaMalloc 2000 300 12 2 4096",
    "call cudaLaunchKernel 3000 200 13 3 0", "call cudaFree 4000 70 14 4 0",
    "call cudaFree 5000 9 15 0 0", "name 1 gemm", "kernel 1 2000 30000 11",
    "kernel 1 33000 7000 13", "kernel 1 50000 11 15")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "here" / "proj"
    (folder / "pkg").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "pkg" / "model.py").write_text(MODEL)
    for file in (folder / "train.py", folder / "pkg" / "model.py"):
        os.utime(file, (1, 1))
    return folder


def source_json(run_verb, data, folder):
    done = run_verb("report", f"--source={folder}", "--format=json", data)
    return json.loads(done.stdout), done.stderr


def shown(text):
    """file -> the numbers of its lines, and the gaps; from the column in which sources begin."""
    lines = text[text.index("  source\n"):].splitlines()
    at = next(line for line in text.splitlines() if line.endswith("  source")).rindex("source")
    found = {}
    for line in lines[1:]:
        name = line[at:]
        if not name or name.startswith("(all other"):
            break
        if name[0] != " ":
            found[name] = []
        else:
            found[list(found)[-1]].append("..." if name.strip() == "..." else
                                          int(name.split()[0]))
    return found


def test_lines_and_sums(run_verb, make_stacks, project):
    """The innermost line there counts, each line above under "all", and nothing is lost."""
    report, said = source_json(run_verb, make_stacks(*SCRIPT), project)
    keys = ("calls", "host_ns", "gpu_work", "gpu_ns", "bytes")
    own = {(row["file"], row["line"]): tuple(row[key] for key in keys)
           for row in report["source_lines"]}
    above = {(row["file"], row["line"]): tuple(row[f"{key}_all"] for key in keys)
             for row in report["source_lines"]}
    assert own == {("pkg/model.py", 6): (1, 500, 1, 30000, 0), ("train.py", 30): (0,) * 5,
                   ("train.py", 14): (1, 300, 0, 0, 4096), ("train.py", 20): (1, 200, 1, 7000, 0)}
    assert above == {("pkg/model.py", 6): own["pkg/model.py", 6],
                     ("train.py", 14): (2, 800, 1, 30000, 4096),
                     ("train.py", 20): own["train.py", 20],
                     ("train.py", 30): (3, 1000, 2, 37000, 4096)}
    rest = [report["source_elsewhere"], report["without_stack"]]
    assert [tuple(cost[key] for key in keys) for cost in rest] == [(1, 70, 0, 0, 0),
                                                                   (1, 9, 1, 11, 0)]
    assert sum(row[1] for row in own.values()) + 79 == \
        sum(row["total_ns"] for row in report["functions"])
    row = next(row for row in report["source_lines"] if row["line"] == 14)
    assert (row["text"], row["function"], row["recorded_as"], row["file_is_newer"]) == (
        "        loss = self.model(batch)", "Trainer.step", "/there/proj/train.py", False)
    assert not said


def test_text(run_verb, make_stacks, project, tmp_path):
    data = make_stacks(*SCRIPT)
    text = run_verb("report", f"--source={project}", data).stdout
    assert shown(text) == {
        "pkg/model.py": ["...", 5, 6],
        "train.py": ["...", *range(10, 21), "...", *range(28, 33), "..."]}
    assert "in all 37.011 us on the GPU, 1.079 us on the host in 5 calls\n" in text
    assert re.search(r"\n +30\.000 us +500 ns +1 +30\.000 us +500 ns +6      return x @ x\n", text)
    assert re.search(r"\n +37\.000 us|\n +7\.000 us +500 ns +2 +4\.0 KiB +train\.py\n", text)
    assert re.search(r"\n +11 ns +79 ns +2 +\(all other calls", text)
    assert "cuda" not in text and "\t" not in text
    run_verb("report", f"--source={project}", data, "--sort=gpu_ns", "--limit=1", "-o", "x.txt")
    sorted_text = (tmp_path / "x.txt").read_text()
    assert "  pkg/model.py:6      return x @ x\n" in sorted_text
    assert "train.py:" not in sorted_text and "1 call" not in sorted_text


def test_csv(run_verb, make_stacks, project, tmp_path):
    run_verb("report", f"--source={project}", make_stacks(*SCRIPT), "-o", "x.csv")
    rows = csv_tables.tables((tmp_path / "x.csv").read_text())["source_lines"]
    found = {(row["file"], int(row["line"])): row for row in rows}
    for place, keys, numbers in ((("train.py", 14), ("calls", "host_ns"), ["1", "300"]),
                                 (("pkg/model.py", 6), ("gpu_work", "gpu_ns"), ["1", "30000"]),
                                 (("train.py", 30), ("gpu_work_all", "gpu_ns_all", "calls"),
                                  ["2", "37000", "0"])):
        assert [found[place][key] for key in keys] == numbers
    assert found["pkg/model.py", 6]["text"] == "    return x @ x" and len(found) == len(rows)


def test_nothing_leads_out_of_the_folder(run_verb, make_stacks, project, tmp_path):
    """Neither a link below the folder nor a recorded path."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "other.py").write_text("password = 1\n" * 9)
    (project / "linked").symlink_to(secret)
    (project / "other.py").symlink_to(secret / "other.py")
    os.mkfifo(project / "model.py")
    for path in ("/elsewhere/other.py", str(secret / "other.py"), "../../secret/other.py"):
        script = [line.replace("/elsewhere/other.py", path) for line in SCRIPT]
        data = make_stacks(*script, name=f"data{len(path)}")
        report, _ = source_json(run_verb, data, project)
        assert "password" not in str(report)
        assert {row["file"] for row in report["source_lines"]} == {"train.py", "pkg/model.py"}
    report, _ = source_json(run_verb, data, secret / ".." / "secret")
    assert [row["text"] for row in report["source_lines"]] == ["password = 1"]


def test_what_is_too_deep_hides_nothing_beside_it(run_verb, make_stacks, project):
    """In whichever order a folder is listed."""
    for folder in (project, project / "pkg"):
        for name in "abcdefgh":
            (folder / name / "/".join(["x"] * 70)).mkdir(parents=True)
    report, said = source_json(run_verb, make_stacks(*SCRIPT), project)
    assert {row["file"] for row in report["source_lines"]} == {"train.py", "pkg/model.py"}
    assert "too many files below" in said


def test_the_longest_tail_decides(run_verb, make_stacks, tmp_path):
    """Of equally long ones none is taken, and that is said once."""
    for name in ("a/x/m.py", "b/x/m.py", "b/y/m.py", "c/n.py", "d/n.py", "am.py", "lone.py"):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text("pass\n" * 5)
    recorded = {"/q/b/x/m.py": "b/x/m.py", "./src/b/y/m.py": "b/y/m.py", "/q/x/m.py": None,
                "/q/n.py": None, "lone.py": "lone.py", "/q/../d/n.py": "d/n.py", "/q/m": None,
                "/w/q/am.py": "am.py", "/z/missing.py": None}
    lines = ["process 0", "meta stacks=x", "meta python=3.11"]
    for number, path in enumerate(recorded, 1):
        lines += [f"python {number} 1 {path}\tf", f"stack {number} 0 p{number:x}",
                  f"call cudaFree {1000 * number} {number} {number} {number} 0"]
    report, said = source_json(run_verb, make_stacks(*lines), tmp_path / "src")
    assert {row["recorded_as"]: row["file"] for row in report["source_lines"]} == {
        path: file for path, file in recorded.items() if file}
    ambiguous = [line for line in said.splitlines() if "is not shown, since both" in line]
    assert len(ambiguous) == 1 and "/q/x/m.py is not shown, " in said


def test_files_that_are_not_as_recorded(run_verb, make_stacks, project):
    data = make_stacks(*SCRIPT)
    (project / "train.py").write_text("one\ntwo\n")  # shorter, and newer
    (project / "pkg" / "model.py").write_bytes(b"x" * ((4 << 20) + 1))
    text = run_verb("report", f"--source={project}", data)
    assert "\ngpuprof: report: --source: pkg/model.py: too large to show" in "\n" + text.stderr
    assert "  train.py (newer than the recording: lines may have moved)\n" in text.stdout
    numbers = shown(text.stdout)
    assert numbers.pop("pkg/model.py") == ["...", 6]
    assert list(numbers.values()) == [["...", 14, "...", 20, "...", 30]]
    report, _ = source_json(run_verb, data, project)
    assert {row["text"] for row in report["source_lines"]} == {None}
    assert sum(row["host_ns"] for row in report["source_lines"]) == 1000


def functions_of(text):
    """line -> (first, last) of the innermost function, as Python's own parser has it."""
    found = {}
    for node in ast.walk(ast.parse(text)):  # outer ones come first
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.update((line, (first, node.end_lineno)) for line in range(first,
                                                                          node.end_lineno + 1))
    return found


def test_functions_are_those_that_python_sees(run_verb, make_stacks, tmp_path):
    """In files of the standard library, of each seventh line with code."""
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    lines, truth = ["process 0", "meta stacks=x", "meta python=3.11"], {}
    (tmp_path / "src").mkdir()
    for name in "argparse ast inspect typing threading dataclasses doctest pydoc tarfile".split():
        text = (library / f"{name}.py").read_text()
        (tmp_path / "src" / f"{name}.py").write_text(text)
        functions = functions_of(text)
        code = {node.lineno for node in ast.walk(ast.parse(text)) if hasattr(node, "lineno")}
        truth[f"{name}.py"] = set()
        for line in sorted(code & set(functions))[::7]:
            first, last = functions[line]
            truth[f"{name}.py"] |= set(range(first, last + 1))
            number = len(lines)
            lines += [f"python {number} {line} /there/{name}.py\tf",
                      f"stack {number} 0 p{number:x}",
                      f"call cudaFree {1000 * number} 5 {number} {number} 0"]
    text = run_verb("report", f"--source={tmp_path / 'src'}", make_stacks(*lines)).stdout
    found = {name.split(" ")[0]: {line for line in numbers if line != "..."}
             for name, numbers in shown(text).items()}
    assert sum(map(len, truth.values())) > 5000 and set(found) == set(truth)
    assert {name: sorted(found[name] ^ lines) for name, lines in truth.items()} == \
        {name: [] for name in truth}


CXX = r'''#include "x.h"
#define OPEN {
namespace a { class B { public:
    B(int n) : size{n}, other{1} {
        go(); // }
        go("}", '}', '\'');
    }
    int size; };
/* { */
static int
plain(struct s *p)
{
    if (p) {
        return 1'000; }
    return 0;
}
}
template <class T> __global__ void kernel(T *x) { x[0] = 1; }
int table[] = {1, 2};
'''


def test_functions_of_cxx(run_verb, make_stacks, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "x.cu").write_text(CXX)
    for hit, wanted in ((5, range(3, 8)), (14, range(10, 17)), (18, [18]), (1, [1, 2, 3])):
        data = make_stacks("process 0", "meta stacks=x", f"python 1 {hit} x.cu\tf", "stack 1 0 p1",
                           "call cudaFree 1000 10 1 1 0", name=f"data{hit}")
        (_, lines), = shown(run_verb("report", f"--source={tmp_path / 'src'}", data).stdout).items()
        assert [line for line in lines if line != "..."] == list(wanted)


def test_lines_of_c(run_verb, make_stacks):
    """By the debugging information; a call counts for the innermost line, inlined or not."""
    frames = build_frames()
    offsets = offsets_of(frames)
    data = make_stacks("process 0", "meta stacks=x", f"module 1 {build_id(frames)} {frames}",
                       f"stack 1 0 1+{offsets['inlined']}", f"stack 2 0 1+{offsets['plain']}",
                       "call cudaMalloc 1000 500 1 1 64", "call cudaFree 2000 40 2 2 0")
    folder = pathlib.Path(__file__).parent / "src"
    report, _ = source_json(run_verb, data, folder)
    rows = {row["line"]: (row["function"], row["host_ns"], row["host_ns_all"])
            for row in report["source_lines"]}
    assert rows == {7: ("innermost", 500, 500), 12: ("middle", 0, 500), 18: ("outer", 0, 500),
                    24: ("plain", 40, 40)}
    lines = shown(run_verb("report", f"--source={folder}", data).stdout)
    numbers = [line for line in next(iter(lines.values())) if line != "..."]
    assert numbers == [*range(5, 9), *range(10, 15), *range(16, 21), *range(22, 27)]


def test_wrong_usage(run_verb, make_stacks, tmp_path):
    data = make_stacks(*SCRIPT)
    (tmp_path / "file").write_text("")
    for folder, reason in (("missing", "No such file or directory"), ("file", "Not a directory")):
        assert run_verb("report", f"--source={folder}", data, status=2).stderr == \
            f"gpuprof: report: --source: {folder}: {reason}\n"
    for other in ("--by=stack", "--mine"):
        assert "cannot be combined with --by or --mine" in \
            run_verb("report", "--source=.", other, data,
                                                      status=2).stderr
    assert "source_lines needs --source=DIR" in run_verb("report", "--table=source_lines", data,
                                                         status=2).stderr
    (tmp_path / "empty").mkdir()
    assert "no line of a file below" in run_verb("report", "--source=empty", data).stdout
