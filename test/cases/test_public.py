# SPDX-License-Identifier: Apache-2.0
"""gpuprof.h and gpuprof.py: with the library and without, and what their calls record."""

import ast
import collections
import dataclasses
import os
import re
import subprocess
import sys

import conftest
import pytest
import stream_reader
import toolchain
from stream_reader import CALL, MARK, PAUSE, POP, PUSH, STEP

HEADER = conftest.source("inject", "gpuprof.h")
PYTHONS = {"system": "/usr/bin/python3",
           **{v: str(conftest.BUILD / "python" / v / "python") for v in ("3.12", "3.13", "3.14")}}
LANGUAGES = {
    "c": ("gcc", "-x", "c", "-std=gnu11"), "c99": ("gcc", "-x", "c", "-std=gnu99"),
    "clang": ("clang", "-x", "c"), "c++98": ("g++", "-x", "c++", "-std=gnu++98"),
    "c++20": ("g++", "-x", "c++", "-std=gnu++20")}
KINDS = {"pie": ("-fPIE", "-pie"), "no-pie": ("-fno-pie", "-no-pie")}


class Runner:
    def __init__(self, library, folder, language="c", *flags):
        self.library, self.out = library, folder / "out"
        self.tiny, link = toolchain.tiny()
        self.program = build(*LANGUAGES[language], folder=folder, flags=flags, link=link)

    def __call__(self, *arguments, preload=True, status=3, **settings):
        settings = {"LD_LIBRARY_PATH": self.tiny, **settings}
        env = toolchain.environment(self.out, self.library if preload else None, **settings)
        done = toolchain.run([self.program, *arguments], env, status=status)
        assert done.stderr == ""
        return done.stdout.splitlines()


def build(compiler, *options, folder, flags, link):
    target = folder / "public_work"
    conftest.need(compiler)
    done = subprocess.run(
        [compiler, *options, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-D_GNU_SOURCE",
         f"-I{HEADER.parent}", *flags, toolchain.SOURCES / "public_work.c", "-x", "none", *link,
         "-o", target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def said(process):
    """What was recorded, in order; a call by its size."""
    result = []
    for record in process.records:
        if record.type == CALL:
            result.append(("call", record.args[2]))
        elif record.type in (PUSH, MARK):
            result.append((stream_reader.TYPE_NAMES[record.type], record.text.decode()))
            assert record.args == (0,) * 6
        elif record.type == POP:
            assert record.args == (0,)
            result.append(("pop",))
        elif record.type in (STEP, PAUSE):
            assert record.type == STEP or record.args[1] == 0  # by the program
            result.append((stream_reader.TYPE_NAMES[record.type], record.args[0]))
    return result


ALL = [("step", 7), ("call", 1), ("push", "outer"), ("push", "inner \u00e4"), ("mark", "here"),
       ("pop",), ("pop",), ("step", 8), ("push", ""), ("pop",)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(library, tmp_path, language, level, kind):
    run = Runner(library, tmp_path, language, level, *KINDS[kind])
    assert run("all", preload=False) == ["push -2"] * 2 + ["pop -2"] * 3
    assert not run.out.exists()
    assert run("all") == ["push 0", "push 1", "pop 1", "pop 0", "pop -1"]
    [process] = stream_reader.read_folder(run.out)
    assert said(process) == ALL and not process.losses


@pytest.mark.parametrize("deep", [False, True], ids=["usual", "deepbind"])
def test_plugin(library, tmp_path, deep):
    """In what dlopen brings in, as Python's extensions; also where its calls pass every hook."""
    host = toolchain.build("plugin_host.c", *(("-DDEEP",) if deep else ()))
    run = Runner(library, tmp_path, "c", "-shared", "-fPIC", "-Dmain=run")
    plugin, run.program = run.program, host
    assert run(plugin, "all", preload=False) == ["push -2"] * 2 + ["pop -2"] * 3
    assert run(plugin, "all") == ["push 0", "push 1", "pop 1", "pop 0", "pop -1"]
    if deep:
        assert not run.out.exists()
    else:
        [process] = stream_reader.read_folder(run.out)
        assert said(process) == ALL and not process.losses


def test_static_program(library, tmp_path):
    """Where nothing can be preloaded: there is no library, and that is all."""
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text('#include "gpuprof.h"\nint main(void)\n{\n    gpuprof_step(1);\n'
                      '    gpuprof_mark("x");\n    gpuprof_stop();\n'
                      '    return gpuprof_range_push("x") == -2 && gpuprof_range_pop() == -2;\n}\n')
    subprocess.run(["gcc", "-static", f"-I{HEADER.parent}", source, "-o", program], check=True)
    toolchain.run([program], toolchain.environment(tmp_path / "out", library), status=1)
    assert not (tmp_path / "out").exists()


def test_it_is_independent_of_nvtx(library, tmp_path):
    run = Runner(library, tmp_path)
    run("all", GPUPROF_NVTX="off")
    [process] = stream_reader.read_folder(run.out)
    assert said(process) == ALL


def test_pause(library, tmp_path):
    run = Runner(library, tmp_path)
    run("paused")
    [process] = stream_reader.read_folder(run.out)
    assert said(process) == [
        ("call", 1), ("push", "ends in it"), ("push", "across"), ("pause", 1), ("pop",), ("pop",),
        ("push", "begins in it"), ("step", 2), ("pause", 0), ("call", 3), ("pop",), ("pause", 1)]
    assert not process.losses


def test_pause_inside_a_call(library, tmp_path):
    """The call that is open is recorded to its end; a child is paused as its parent was."""
    run = Runner(library, tmp_path)
    run("paused-inside")
    parent, child = stream_reader.read_folder(run.out)
    assert said(parent) == [("call", 1), ("call", 2), ("pause", 1), ("pause", 0), ("call", 4)]
    assert said(child) == [("call", 11)]
    assert not parent.losses and not child.losses


def test_stopped_first(library, tmp_path):
    run = Runner(library, tmp_path)
    run("stopped")
    assert not run.out.exists()
    run("stopped-first")
    [process] = stream_reader.read_folder(run.out)
    assert said(process) == [("push", "open"), ("call", 2), ("pop",)]


def test_start_paused(library, tmp_path, run_collector):
    run = Runner(library, tmp_path)
    run("started", GPUPROF_START_PAUSED="on")
    [process] = stream_reader.read_folder(run.out)
    assert said(process) == [("call", 2)]
    env = toolchain.environment(run.out, LD_LIBRARY_PATH=run.tiny)
    done = run_collector("run", "--start-paused", "--quiet", "-o", tmp_path / "other", run.program,
                         "started", env=env)
    assert done.returncode == 3
    [process] = stream_reader.read_folder(tmp_path / "other")
    assert said(process) == [("call", 2)]


@pytest.mark.parametrize("how, is_of_call", [("comes-back", False), ("stays-away", False),
                                             ("helper", True), ("helper-stays", True)])
def test_a_step_is_of_the_thread_that_called_it(library, tmp_path, how, is_of_call):
    """Wherever the recording begins; of a thread that has no record of its own it is another's."""
    run = Runner(library, tmp_path)
    run("steps-elsewhere", how)
    [process] = stream_reader.read_folder(run.out)
    call, = process.of_type(CALL)
    first, *more = process.of_type(STEP)
    assert first.args[0] == 5 and call.begin - first.begin > 20_000_000
    assert (first.thread == call.thread) == is_of_call and not process.losses
    assert [step.args[0] for step in more] == ([6] if how == "comes-back" else [])
    assert all(step.thread == first.thread for step in more)


def ranges(*names):
    """Ranges that hold nothing but a call each, where a size stands behind the name."""
    return [event for name, *size in names
            for event in (("push", name), *(("call", n) for n in size), ("pop",))]


TASK = [("push", "task"), ("mark", "a"), ("pop",), ("push", "task"), ("mark", "b"), ("pop",)]
PYTHON = {
    "calls": [("step", 7), ("push", "outer"), ("push", "inner \u00e4"),
              ("mark", "here"), ("pop",), ("pop",), ("step", 8), ("push", "lone ?"), ("mark", "5"),
              ("pop",), ("pause", 1), ("pause", 0), ("call", 3), ("step", 2**64 - 1)],
    "decorated": ranges(("named", 20), ("unnamed", 21), ("Thing.method", 22), ("static", 23),
                        ("partial", 24), ("builtin",)),
    "fails": [("push", "around"), *ranges(("named",)), ("pop",), ("push", "around"),
              *ranges(("fails",)), ("pop",), *[("push", "again")] * 3, *[("pop",)] * 3,
              ("call", 30)],
    "generators": ranges(("generator",), ("generator", 40), ("generator",), ("generator", 42),
                         *[("generator",)] * 5, ("generator", 40), ("generator", 41)),
    "coroutines": [*TASK, *TASK, *ranges(("task",), ("task",)), ("push", "task"),
                   ("mark", "cancelled"), ("pop",), *ranges(("task",))],
}


def run_python(library, folder, python, scene):
    """The processes of public_python.py, which prints what it prints without gpuprof."""
    if not os.path.exists(python):
        pytest.skip(f"not run: no {python} (make fetch-python)")
    command = [python, "-W", "ignore", toolchain.SOURCES / "public_python.py", scene]
    env = {"LD_LIBRARY_PATH": toolchain.tiny()[0], "PYTHONPATH": HEADER.parent,
           "PYTHONDONTWRITEBYTECODE": 1}
    bare = toolchain.run(command, toolchain.environment(None, **env))
    done = toolchain.run(command, toolchain.environment(folder, library, GPUPROF_PYTHON="off",
                                                        **env))
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    processes = stream_reader.read_folder(folder)
    assert not any(process.losses for process in processes)
    return processes, done.stdout.splitlines()


@pytest.mark.parametrize("scene", PYTHON)
@pytest.mark.parametrize("python", PYTHONS)
def test_python(library, tmp_path, python, scene):
    [process], printed = run_python(library, tmp_path / "out", PYTHONS[python], scene)
    assert said(process) == [("call", 1), *PYTHON[scene]]
    if scene == "generators":
        assert printed == ["True numbers", "0 1 2", "['sent', \"KeyError('thrown')\", 'last']", "0",
                           "['closed']", "ValueError('through')", "[0, 1]"]
    if scene == "decorated":
        assert printed[0] == "20 ('b',) 4 named named Its words. (first, *rest, key: int = 3) -> " \
            "str __main__ True"
        assert len(printed) == 8 and all(line.startswith("gpuprof.range takes")
                                         for line in printed[1:])


def test_python_threads(library, tmp_path):
    [process], _ = run_python(library, tmp_path / "out", PYTHONS["system"], "threads")
    threads = collections.defaultdict(list)
    for record in process.records:
        if record.type in (CALL, PUSH, POP):
            threads[record.thread].append(record)
    names = set()
    for records in threads.values():
        if len(records) == 1:
            continue  # the main one's
        events = said(dataclasses.replace(process, records=records))
        number = events[2][1].split(".")[0]
        names.add(number)
        inner = [event for i in range(50) for event in (
            ("push", "shared"), ("push", f"{number}.{i}"), ("call", 100 * int(number) + i),
            ("pop",), ("pop",))]
        assert events == [("push", "task"), *inner, ("pop",)]
    assert names == set("01234567")


def test_python_fork(library, tmp_path):
    processes, _ = run_python(library, tmp_path / "out", PYTHONS["system"], "fork")
    child, parent = sorted(map(said, processes), key=lambda events: events[0] == ("call", 1))
    assert parent == [("call", 1), ("push", "across"), *ranges(("parent", 2)), ("pop",),
                      ("step", 0)]
    assert child == [*ranges(("child", 3)), ("step", 0)]


def test_python_of_old(tmp_path):
    """The oldest version that it is for; and where ctypes is missing, or has no such function."""
    source = HEADER.with_suffix(".py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))
    (tmp_path / "ctypes.py").write_text("raise ImportError\n", encoding="utf-8")
    text = ("import gpuprof\n"
            "def f(): return 5\n"
            "assert gpuprof.range(f) is f and gpuprof.range('x')(f) is f\n"
            "assert gpuprof.range('x') is gpuprof.range('y')\n"
            "with gpuprof.range('x'): gpuprof.step(); gpuprof.mark('x'); gpuprof.start()\n"
            "from gpuprof import *\n"
            "print(list(range(3)), gpuprof.stop())\n")
    for path in (tmp_path, HEADER.parent):
        done = toolchain.run([sys.executable, "-c", text], toolchain.environment(
            None, PYTHONPATH=f"{path}:{HEADER.parent}", PYTHONDONTWRITEBYTECODE=1))
        assert done.stdout == "[0, 1, 2] None\n"


def test_header_and_library_agree(library):
    """The header looks for exactly the functions of its own names that the library has."""
    text = HEADER.read_text(encoding="utf-8")
    asked = set(re.findall(r'"(gpuprof_\w+)"', text))
    assert asked == set(re.findall(r"^static .*\b(?:int|void) (gpuprof_\w+)\(", text, re.MULTILINE))
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout
    has = set(re.findall(r" T (gpuprof_\w+)$", names, re.MULTILINE))
    assert asked == has - {"gpuprof_os_v1"}  # for libgpuprof-os.so
    source = (HEADER.parent / "public.c").read_text(encoding="utf-8")
    for name in asked:
        [in_header] = re.findall(rf"\b(int|void) {name}\((.*?)\)$", text, re.MULTILINE)
        assert set(re.findall(rf"^EXPORT (int|void) {name}\((.*?)\)", source, re.MULTILINE)) == \
            {in_header}
