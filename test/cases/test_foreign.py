# SPDX-License-Identifier: Apache-2.0
"""Programs that are not as others: built with a sanitizer, under valgrind, with another libc."""

import os
import shutil
import subprocess

import conftest
import pytest
import stream_reader
import toolchain

CALLS = 4 * 3 * 100  # of foreign_work.c

SANITIZERS = {
    "gcc address": ("gcc", "-fsanitize=address"),
    "gcc thread": ("gcc", "-fsanitize=thread"),
    "gcc leak": ("gcc", "-fsanitize=leak"),
    "gcc address, static": ("gcc", "-fsanitize=address", "-static-libasan"),
    "gcc thread, static": ("gcc", "-fsanitize=thread", "-static-libtsan"),
    "clang address": ("clang", "-fsanitize=address,undefined"),
    "clang thread": ("clang", "-fsanitize=thread"),
    "clang address, shared": ("clang", "-fsanitize=address", "-shared-libsan"),
}


def build(name, *flags):
    """foreign_work.c with a sanitizer; and its environment, where it finds what it needs."""
    folder, link = toolchain.tiny()
    compiler, *options = SANITIZERS[name]
    conftest.need(compiler)
    if "-shared-libsan" in options:
        asan = subprocess.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], check=True,
                              capture_output=True, text=True).stdout.strip()
        options.append(f"-Wl,-rpath,{os.path.dirname(asan)}")
    program = toolchain.build("foreign_work.c", *link, *options, *flags, compiler=compiler)
    return program, {"LD_LIBRARY_PATH": folder, "GPUPROF_BACKTRACE_THRESHOLD": "0"}


def whole(folder):
    [process] = stream_reader.read_folder(folder)
    assert not process.losses and len(process.calls()) == CALLS
    assert all(c.stack for c in process.of_type(stream_reader.CALL))
    return process


@pytest.mark.parametrize("name", SANITIZERS)
def test_sanitizer(library, tmp_path, name):
    """It finds nothing, and nothing is missing: not even where it asks for its library first."""
    program, settings = build(name)
    env = toolchain.environment(tmp_path / "out", library, **settings)
    done = toolchain.run([program], env, status=3)
    assert (done.stdout, done.stderr) == ("options: none\n", "")
    whole(tmp_path / "out")


@pytest.mark.parametrize("name", ["gcc address", "gcc thread"])
def test_sanitizer_forks(library, tmp_path, name):
    """With our thread the parent has two: its child may start one of its own none the less."""
    program, settings = build(name)
    env = toolchain.environment(tmp_path / "out", library, **settings)
    done = toolchain.run([program, "fork"], env, status=4)
    assert (done.stdout, done.stderr) == ("", "")
    processes = stream_reader.read_folder(tmp_path / "out")
    assert sorted(len(p.calls()) for p in processes) == [100, 200]


def test_sanitizer_comes_first(library, tmp_path):
    """Its library before ours in LD_PRELOAD, as its users know it; in any program."""
    folder, link = toolchain.tiny()
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True,
                          text=True).stdout.strip()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder,
                                LD_PRELOAD=f"{asan}:{library}", GPUPROF_BACKTRACE_THRESHOLD="0")
    done = toolchain.run([toolchain.build("foreign_work.c", *link)], env, status=3)
    assert (done.stdout, done.stderr) == ("options: none\n", "")
    whole(tmp_path / "out")


@pytest.mark.parametrize("own", ["", "exitcode=7"])
def test_run_tells_asan(run_collector, library, tmp_path, own):
    """A program that answers itself what ASan asks is started so that it does not refuse us."""
    assert library
    program, settings = build("gcc address", "-DOPTIONS")
    env = toolchain.environment(tmp_path, **settings, **({"ASAN_OPTIONS": own} if own else {}))
    done = run_collector("run", "--quiet", "--gpu=off", "-o", "out", program, env=env)
    options = "verify_asan_link_order=0" + (f":{own}" if own else "")
    assert (done.returncode, done.stdout, done.stderr) == (3, f"options: {options}\n", "")
    whole(tmp_path / "out")


@pytest.mark.parametrize("own", ["", "exitcode=7"])
def test_run_tells_tsan(run_collector, library, tmp_path, own):
    """Where clang has linked it in, its fork's child may start a thread, too."""
    assert library
    program, settings = build("clang thread")
    env = toolchain.environment(tmp_path, **settings, **({"TSAN_OPTIONS": own} if own else {}))
    done = run_collector("run", "--quiet", "--gpu=off", "-o", "out", program, "fork", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")
    processes = stream_reader.read_folder(tmp_path / "out")
    assert sorted(len(p.calls()) for p in processes) == [100, 200]
    # What the user says comes after ours, and holds.
    env["TSAN_OPTIONS"] = "die_after_fork=1"
    assert run_collector("run", "--quiet", "--gpu=off", "-o", "other", program, "fork",
                         env=env).returncode != 4


def test_memcheck(library, tmp_path):
    """It says nothing but that it found nothing; and it ends, which took it minutes."""
    conftest.need("valgrind")
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=folder,
                                GPUPROF_BACKTRACE_THRESHOLD="0")
    done = toolchain.run(["valgrind", "--leak-check=full", "--error-exitcode=98",
                          toolchain.build("foreign_work.c", *link)], env, status=3, timeout=60)
    assert "definitely lost: 0 bytes" in done.stderr and "ERROR SUMMARY: 0 errors" in done.stderr
    warnings = [line for line in done.stderr.splitlines() if "arning" in line]
    assert all("large range" in line for line in warnings), warnings
    whole(tmp_path / "out")


@pytest.mark.parametrize("command", [["PROGRAM"], ["PROGRAM", "quickly"],
                                     ["bash", "-c", "PROGRAM; exit $?"]])
def test_musl(library, tmp_path, command):
    """It runs as it does without us, and so it does as the child of a shell that is recorded."""
    program = toolchain.build("foreign_libc.c", compiler="musl-gcc")
    command = [word.replace("PROGRAM", str(program)) for word in command]
    plain = toolchain.run(command, toolchain.environment(tmp_path), status=3)
    done = toolchain.run(command, toolchain.environment(tmp_path / "out", library), status=3)
    assert (done.stdout, done.stderr) == (plain.stdout, "")
    assert done.stdout.startswith("child 7, puts 1, cudaMalloc 0, error 1\n")
    assert not (tmp_path / "out").exists()


def test_musl_program_is_told(run_collector, library, tmp_path):
    assert library
    shutil.copy(toolchain.build("foreign_libc.c", compiler="musl-gcc"), tmp_path / "other")
    done = run_collector("run", "--quiet", "./other")
    assert done.returncode == 3 and done.stdout.startswith("child 7")
    assert done.stderr == ("gpuprof: ./other: linked with musl instead of glibc; nothing can be "
                           "recorded\n")
