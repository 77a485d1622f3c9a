# SPDX-License-Identifier: Apache-2.0
"""Calls of libraries that use CUDA, beside the doubles' own books."""

import collections
import json
import math
import os
import pathlib
import re
import subprocess

import conftest
import launched
import pytest
import stream_reader
import toolchain
from stream_reader import CALL, LIBRARY_BEGIN, LIBRARY_END

def double(name, version, *flags):
    """The double of a library, with its version's node; the link that programs are made with."""
    versions = toolchain.OUT / f"{name}.map"
    toolchain.OUT.mkdir(parents=True, exist_ok=True)
    versions.write_text(f"{name}.so.{version} {{ global: *; }};\n", encoding="ascii")
    built = toolchain.build("cublas_double.c", "-shared", "-fPIC", *flags, *toolchain.runtime(12),
                            f"-Wl,-soname,{name}.so.{version}", f"-Wl,--version-script={versions}")
    folder = toolchain.OUT / f"libraries-{built.stem}"
    folder.mkdir(exist_ok=True)
    return pathlib.Path(toolchain.linked(folder / f"{name}.so.{version}", built))


def work(source="library_work.c", way="linked"):
    """The program and its LD_LIBRARY_PATH. cuBLAS is linked with cublasLt, as it is."""
    lt = double("libcublasLt", 12, "-DLT")
    cublas = double("libcublas", 12, str(lt))
    flags = ([str(cublas), str(lt)] if way == "linked" else
             [f'-DBY_DLSYM="{cublas}"', f'-DLT_BY_DLSYM="{lt}"'])
    program = toolchain.build(source, *toolchain.runtime(12)[:1], *flags,
                              "-Wl,--allow-shlib-undefined")
    return program, f"{toolchain.SIM}:{cublas.parent}:{lt.parent}"


def run(library, folder, *arguments, source="library_work.c", way="linked", **settings):
    """What the doubles wrote down, and the recordings."""
    program, path = work(source, way)
    env = toolchain.environment(folder / "out", library, LD_LIBRARY_PATH=path, **settings)
    read, write = os.pipe()
    try:
        done = toolchain.run([program, *arguments], {**env, "BLAS_LOG": str(write)}, status=3,
                             pass_fds=[write])
    finally:
        os.close(write)
        with os.fdopen(read, encoding="ascii") as pipe:
            log = [line.split() for line in pipe]
    assert done.stderr == ""
    return log, stream_reader.read_folder(folder / "out") if (folder / "out").exists() else []


def arguments(process, record):
    return dict(zip((label for _, label in process.functions[record.code].args), record.args))


def told(log):
    """The doubles' lines as the records' arguments should be."""
    return [(name, {label: 0 if value == "(nil)" else int(value, 0)
                    for label, value in (word.split("=") for word in words)})
            for name, *words in log]


def begins(process):
    return [(process.functions[r.code].symbol, arguments(process, r))
            for r in process.of_type(LIBRARY_BEGIN)]


@pytest.mark.parametrize("way", ["linked", "dlsym"])
def test_arguments(library, tmp_path, way):
    log, [process] = run(library, tmp_path, "calls", way=way)
    assert len(log) == 21 and begins(process) == told(log)
    ends = process.of_type(LIBRARY_END)
    assert [e.result for e in ends] == 20 * [0] + [13] and not process.losses
    # What the library calls is tied to its call by time, and nothing else is in between.
    for begin, end in zip(process.of_type(LIBRARY_BEGIN), ends):
        inside = [c for c in process.of_type(CALL) if begin.begin <= c.begin <= end.begin]
        assert "cudaMemsetAsync" in {process.functions[c.code].symbol for c in inside}
        assert all(c.begin + c.duration <= end.begin for c in inside)


def test_the_outermost_call_is_the_event(library, tmp_path):
    log, [process] = run(library, tmp_path, "nested")
    assert len(log) == 15
    assert begins(process) == told(log)[::3] and len(process.of_type(LIBRARY_END)) == 5


@pytest.mark.parametrize("way", ["linked", "dlsym"])
def test_functions(library, tmp_path, way):
    """One of each form, by its arguments; cublasLt's structures and arrays of sizes are looked at.
    errno is as the library left it, which the program checks."""
    log, [process] = run(library, tmp_path, source="library_rows.c", way=way)
    assert len(log) == 17 and begins(process) == told(log)
    assert [e.result for e in process.of_type(LIBRARY_END)] == 17 * [0] and not process.losses


def test_a_library_inside_another_of_its_family(library, tmp_path):
    log, [process] = run(library, tmp_path, "lt")
    assert begins(process) == told(log) and len(log) == 5


@pytest.mark.parametrize("variable", ["CUBLASLT_LOG_LEVEL", "CUBLASLT_LOG_MASK",
                                      "CUBLASLT_NVTX_LEVEL"])
def test_cublaslt_that_tells_of_calls(library, tmp_path, variable):
    """Then it would tell of our looking: that is left out."""
    log, [process] = run(library, tmp_path, source="library_rows.c", **{variable: "5"})
    products = [(name, {} if name == "cublasLtMatmul" else words) for name, words in told(log)]
    assert begins(process) == products


@pytest.mark.parametrize("scene", ["left", "deeper"])
def test_calls_that_are_left(library, tmp_path, scene):
    """By longjmp: they have no end, and hide none of the calls after them, though these lie deeper
    on a stack that was not written to since."""
    log, [process] = run(library, tmp_path, scene)
    assert len(log) == 6 and begins(process) == told(log)
    assert len(process.of_type(LIBRARY_END)) == 3


def test_threads_that_end_inside(library, tmp_path):
    log, [process] = run(library, tmp_path, "ends")
    assert len(log) == 10 and begins(process) == told(log) and not process.losses
    assert len(process.of_type(LIBRARY_END)) == 7


def test_a_library_that_comes_and_goes(library, tmp_path):
    log, [process] = run(library, tmp_path, "reopen", way="dlsym")
    assert len(log) == 12 and begins(process) == told(log) and not process.losses


@pytest.mark.parametrize("way", ["linked", "dlsym"])
def test_arguments_that_lead_nowhere(library, tmp_path, way):
    """The library says what it says without us, and it is recorded."""
    program, path = work("library_rows.c", way)
    bare = toolchain.environment(tmp_path / "out", LD_LIBRARY_PATH=path)
    assert toolchain.run([program, "without_handles"], bare, status=3).stderr == ""
    log, [process] = run(library, tmp_path, "without_handles", source="library_rows.c", way=way)
    assert begins(process) == told(log) and len(log) == 3
    assert [e.result for e in process.of_type(LIBRARY_END)] == 3 * [1]


def test_threads(library, tmp_path):
    log, [process] = run(library, tmp_path, "threads")
    outermost = [(name, values) for name, values in told(log) if values["m"] >= 1000]
    assert len(log) == 4 * (25 + 3 * 25) and not process.losses
    unique = {str(call) for call in outermost}
    assert sorted(map(str, begins(process))) == sorted(unique) and len(unique) == 200
    assert len(process.of_type(LIBRARY_END)) == 200


def test_fork(library, tmp_path):
    log, processes = run(library, tmp_path, "fork")
    processes.sort(key=lambda p: -len(p.of_type(LIBRARY_BEGIN)))
    calls = told(log)
    assert [begins(p) for p in processes] == [[calls[0], calls[2]], [calls[1]]]


def test_settings(library, tmp_path):
    log, [process] = run(library, tmp_path / "names", "calls", GPUPROF_LIBRARIES="names")
    assert begins(process) == [("cublasGemmEx", {})] * len(log)
    assert [e.result for e in process.of_type(LIBRARY_END)] == 20 * [0] + [13]
    log, [process] = run(library, tmp_path / "off", "calls", GPUPROF_LIBRARIES="off")
    assert log and not begins(process) and process.of_type(CALL)
    log, [process] = run(library, tmp_path / "paused", "calls", GPUPROF_START_PAUSED="1")
    assert log and not begins(process)
    log, [process] = run(library, tmp_path / "stacks", "calls", GPUPROF_BACKTRACE="library")
    assert all(r.stack for r in process.of_type(LIBRARY_BEGIN))


def test_what_is_given_up(library, tmp_path, run_collector):
    """Under a budget that cannot be kept: first the arguments, then the calls; no end lacks."""
    program, path = work()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=path,
                                GPUPROF_OVERHEAD_MAX="0.0001%")
    with conftest.Program([program, "many"], env=env, stdin=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as running:
        launched.wait_until(lambda: re.search("(?<!of )libraries' calls off", run_collector(
            "report", "--keep-live", "--table=cost", tmp_path / "out").stdout), 90)
        running.communicate(timeout=60)
        assert running.returncode == 3
    [process] = stream_reader.read_folder(tmp_path / "out")
    begun, ends = process.of_type(LIBRARY_BEGIN), process.of_type(LIBRARY_END)
    taken = {step.code: step.begin for step in process.of_type(stream_reader.STEP_DOWN)}
    words, calls = taken[10], taken[11]
    assert words < calls
    # The step is stated before it is taken: calls may come in between.
    known = [bool(r.args) for r in begun]
    assert all(known[:sum(r.begin < words for r in begun)])
    assert known == sorted(known, reverse=True) and False in known
    [mark] = process.of_type(stream_reader.MARK)
    assert mark.begin > calls > begun[0].begin and begun[-1].begin < mark.begin
    assert len(begun) == len(ends) and not process.losses


def test_bare(library, tmp_path):
    """Without the library the wrapper says what the library says of itself; without us all is as
    it was."""
    program, path = work()
    env = toolchain.environment(tmp_path / "out", LD_LIBRARY_PATH=path)
    assert toolchain.run([program, "calls"], env, status=3).stderr == ""


def test_dump_names_types(library, tmp_path, run_collector):
    run(library, tmp_path, "calls")
    lines = [line for line in run_collector("dump", tmp_path / "out").stdout.splitlines()
             if line.startswith("library_begin")]
    assert len(lines) == 21 and all(
        " trans_a=t trans_b=n " in line and " a_type=bf16 b_type=f16 c_type=f32 "
        "compute=f32-fast-tf32" in line for line in lines)


def test_report(library, tmp_path, run_verb):
    """What the report says of them is what the double wrote down."""
    log, _ = run(library, tmp_path, "calls")
    expected = collections.Counter((args["m"], args["n"], args["k"]) for _, args in told(log))
    made = json.loads(run_verb("report", "--format=json", tmp_path / "out").stdout)
    rows = made["library"]
    assert all(row["function"] == "cublasGemmEx" and row["library"] == "cublas" for row in rows)
    found = collections.Counter()
    for row in rows:
        shape = tuple(row.get(label, 0) for label in "mnk")
        found[shape] += row["calls"]
        has_failed = row["errors"] == row["calls"]  # which computed nothing
        assert row.get("flops") == (None if has_failed else 2 * math.prod(shape))
    assert found == expected and sum(row["errors"] for row in rows) == 1
