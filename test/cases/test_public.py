# SPDX-License-Identifier: Apache-2.0
"""gpuprof.h: in C and C++, with the library and without, and what its calls record."""

import re
import subprocess
import sys

import conftest
import pytest
import stream_reader
import toolchain
from stream_reader import CALL, MARK, PAUSE, POP, PUSH, STEP

HEADER = conftest.source("inject", "gpuprof.h")
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
            result.append((stream_reader.TYPE_NAMES[record.type], *record.args))
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


def test_python(library, tmp_path):
    """By ctypes, without any module of ours."""
    tiny, _ = toolchain.tiny()
    text = ("import ctypes\n"
            "us = ctypes.CDLL(None)\n"
            "us.gpuprof_step.argtypes = [ctypes.c_uint64]\n"
            "cuda = ctypes.CDLL('libcudart.so.12')\n"
            "us.gpuprof_step(2**40)\n"
            "us.gpuprof_range_push(b'python')\n"
            "cuda.cudaMemset(None, 0, 5)\n"
            "us.gpuprof_range_pop()\n")
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=tiny)
    toolchain.run([sys.executable, "-c", text], env)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert said(process) == [("step", 2**40), ("push", "python"), ("call", 5), ("pop",)]


def test_header_and_library_agree(library):
    """The header looks for exactly the functions of its own names that the library has."""
    text = HEADER.read_text(encoding="utf-8")
    asked = set(re.findall(r'"(gpuprof_\w+)"', text))
    assert asked == set(re.findall(r"^static .*\b(?:int|void) (gpuprof_\w+)\(", text, re.MULTILINE))
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout
    assert asked == set(re.findall(r" T (gpuprof_\w+)$", names, re.MULTILINE))
    source = (HEADER.parent / "public.c").read_text(encoding="utf-8")
    for name in asked:
        [in_header] = re.findall(rf"\b(int|void) {name}\((.*?)\)$", text, re.MULTILINE)
        assert set(re.findall(rf"^EXPORT (int|void) {name}\((.*?)\)", source, re.MULTILINE)) == \
            {in_header}
