# SPDX-License-Identifier: Apache-2.0
"""Language runtimes and other profilers, with threads, signals and timers of their own, sampled as
often as can be and with all their calls that wait recorded: they do and say the same as without."""

import json
import os
import shutil
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="runtimes run natively")
SAMPLE = stream_reader.TYPE_NUMBERS["sample"]
PYTHON = "/usr/bin/python3"
JAX_PYTHON = os.environ.get("GPUPROF_TEST_JAX", PYTHON)


def need(command):
    return shutil.which(command) or pytest.skip(f"not run: {command} is not installed")


def source(name):
    return toolchain.SOURCES / name


def rust(folder):
    subprocess.run([need("rustc"), "-O", "-o", folder / "rust_work", source("rust_work.rs")],
                   check=True)
    return [folder / "rust_work"]


def gperftools(folder):
    has = subprocess.run(["g++", "-E", "-x", "c++", "-include", "gperftools/profiler.h",
                          "/dev/null"], check=False, capture_output=True)
    if has.returncode:
        pytest.skip("not run: gperftools is not installed (libgoogle-perftools-dev)")
    return [toolchain.build("gperftools_work.cc", "-lprofiler", compiler="g++")], \
        {"CPUPROFILE": folder / "profile"}


def go(folder):
    cache = conftest.BUILD / "go"
    env = {**os.environ, "GOCACHE": str(cache), "CGO_ENABLED": "1", "GO111MODULE": "off"}
    subprocess.run([need("go"), "build", "-o", folder / "go_work", source("go_work.go")], env=env,
                   check=True)
    return [folder / "go_work"]


def java(folder):
    subprocess.run([need("javac"), "-nowarn", "-d", folder, source("JavaWork.java")], check=True,
                   capture_output=True)
    return [need("java"), "-cp", folder, "JavaWork"]


def jax(_):
    has = subprocess.run([JAX_PYTHON, "-c", "import jax"], check=False, capture_output=True)
    if has.returncode:
        pytest.skip("not run: no Python with JAX (GPUPROF_TEST_JAX names one)")
    return [JAX_PYTHON, source("jax_cpu.py")]


RUNTIMES = {
    "rust": rust, "gperftools": gperftools,
    "faulthandler": lambda _: [PYTHON, source("python_signals.py")],
    "multiprocessing": lambda _: [PYTHON, source("python_processes.py")],
    "node": lambda _: [need("node"), source("node_work.js")], "go": go, "java": java, "jax": jax,
}
QUICK = {"rust", "gperftools", "faulthandler"}


def outcome(command, env, folder):
    done = toolchain.run(command, env, status=None, cwd=folder)
    errors = [line for line in done.stderr.splitlines()  # gperftools tells how often it was called
              if not line.startswith(("gpuprof: ", "PROFILE: "))]
    return done.returncode, done.stdout, errors


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in RUNTIMES])
def test_it_does_the_same(library, run_verb, tmp_path, name):
    """A process that makes no call of CUDA's leaves nothing, and is sampled all the same."""
    made = RUNTIMES[name](tmp_path)
    command, more = made if isinstance(made, tuple) else (made, {})
    path, link = toolchain.tiny()
    early = toolchain.build("early_call.c", "-shared", "-fPIC", *link)
    out = tmp_path / "out"
    env = toolchain.environment(
        out, f"{library} {conftest.built(conftest.BUILD / 'libgpuprof-os.so')} {early}",
        GPUPROF_SAMPLE=1000, GPUPROF_OS="0", GPUPROF_GAPS="on", LD_LIBRARY_PATH=path, **more)
    bare = {key: value for key, value in env.items() if key != "LD_PRELOAD"}
    wanted = outcome(command, bare, tmp_path)
    assert wanted[0] > 1, wanted
    assert outcome(command, env, tmp_path) == wanted
    assert not out.exists()
    env["CUDA_IN"] = os.path.basename(command[0])
    assert outcome(command, env, tmp_path) == wanted
    processes = stream_reader.read_folder(out)
    sampled = sum(r.weight for process in processes for r in process.of_type(SAMPLE)
                  if r.code == 0)
    assert sampled > 0
    report = json.loads(run_verb("report", "--format=json", out).stdout)
    assert report["processes"] == len(processes)
    assert sum(row["samples"] for row in report["samples"]) >= sampled  # and those of live files
