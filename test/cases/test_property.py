# SPDX-License-Identifier: Apache-2.0
"""What a program changes of itself as a whole, before and after its first call: its user, its
policy, where it runs, what it locks. Our threads follow, or stay as they are, and it is recorded.
What the kernel says of the threads is the truth."""

import collections
import json
import os
import pathlib
import sys

import pytest
import stream_reader
import toolchain

NOBODY = 65534
IS_ROOT = os.getuid() == 0
USER = NOBODY if IS_ROOT else os.getuid()
SETTINGS = {"plain": {}, "device": {"GPUPROF_DEVICE": "on"}, "flight": {"GPUPROF_FLIGHT": "10s"},
            "cupti": {"GPUPROF_FRONT": "cupti"}}
DROP_IN_PYTHON = f"""
import ctypes, os, pathlib, sys
cuda = ctypes.CDLL("libcudart.so.12", mode=ctypes.RTLD_GLOBAL)
memory = ctypes.c_void_p()
def call():
    assert cuda.cudaMalloc(ctypes.byref(memory), 4096) == 0
def drop():
    if os.getuid() == 0:
        os.setgroups([])
    os.setgid({NOBODY} if os.getuid() == 0 else os.getgid())
    os.setuid({NOBODY} if os.getuid() == 0 else os.getuid())
for word in sys.argv[1:]:
    {{"c": call, "u": drop}}[word]()
"""

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="not run: qemu-user has no threads "
                                                              "of the kernel's to look at")


@pytest.fixture(name="work")
def fixture_work(library, tmp_path):
    """work("c3", ..., SETTING=...): (lines that it printed, the process or None, stderr)."""
    out = tmp_path / "out"

    def run(*words, command=None, status=3, folder=out, cwd=None, **settings):
        if not folder.exists() and folder == out:
            folder.mkdir()
            folder.chmod(0o777)
        for path in [tmp_path, *tmp_path.parents] if IS_ROOT else ():
            if path.stat().st_uid == 0 and str(path) not in ("/", "/tmp"):
                path.chmod(path.stat().st_mode | 0o011)
        env = toolchain.environment(folder, library, GPUPROF_GPU="on", **settings)
        program = command or [toolchain.build("property_work.c", *toolchain.runtime(12))]
        done = toolchain.run([*program, *words], env, status=status, timeout=30,
                             cwd=cwd)
        processes = stream_reader.read_folder(folder) if folder.exists() else []
        assert len(processes) <= 1
        return done.stdout.splitlines(), processes[0] if processes else None, done.stderr
    return run


def threads(lines):
    """name -> its thread's (user, group, policy, processors); the program's is "program"."""
    found = collections.defaultdict(list)
    for line in lines:
        name, *numbers, cpus = line.split(" ")
        found["program" if name.startswith("property") else name].append((*map(int, numbers), cpus))
    return found


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("words", [("u", "c3"), ("c1", "u", "c2")], ids=["before", "after"])
def test_every_thread_changes_its_user(work, words, settings):
    words = [f"u{NOBODY}" if word == "u" else word for word in words]
    lines, process, errors = work(*words, "s50", "t", "c4", **settings)
    assert errors == "" and not process.losses
    # A block and so many fills each time.
    assert len(process.calls()) == sum(1 + int(word[1:]) for word in (*words, "c4")
                                       if word[0] == "c")
    found = threads(lines)
    assert sum(map(len, found.values())) >= 5  # some may not have taken their name yet
    assert {who[0] for those in found.values() for who in those} == {USER}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("words", [("u", "c"), ("c", "u", "c")], ids=["before", "after"])
def test_python_changes_its_user(work, words, settings):
    command = [sys.executable, "-S", "-c", DROP_IN_PYTHON]
    _, process, errors = work(*words, command=command, status=0, **settings)
    assert "Permission" not in errors and not process.losses
    assert len(process.calls()) == words.count("c")


@pytest.mark.skipif(not IS_ROOT, reason="not run: only root can give up its rights")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rights_that_are_given_up_after_the_first_call(work, tmp_path, settings):
    """The files are open by then, and the buffer in memory grows on: its first storage has room for
    fewer calls."""
    folder = tmp_path / "root's"
    _, process, errors = work("c1", f"u{NOBODY}", "c30000", folder=folder,
                              GPUPROF_ON_FULL="drop", GPUPROF_BUFFER="32M", **settings)
    assert errors == "" and not process.losses
    assert len(process.calls()) == 30003
    toolchain.remove_live([process])


@pytest.mark.skipif(not IS_ROOT, reason="not run: only root can give up its rights")
def test_rights_that_are_given_up_before_the_first_call(work, run_collector, tmp_path):
    folder = tmp_path / "root's"
    folder.mkdir(mode=0o700)
    _, process, errors = work(f"u{NOBODY}", "c3", folder=folder)
    assert not process
    assert errors.startswith("gpuprof: recording is off: cannot ") and errors.count("\n") == 1
    assert "Permission denied, since the process changed its user or group before" in errors
    program = toolchain.build("property_work.c", *toolchain.runtime(12))
    done = run_collector("run", "-o", folder, program, f"u{NOBODY}", "c3")
    said, end = done.stderr.splitlines()
    assert done.returncode == 3 and said.startswith("gpuprof: recording is off: cannot ")
    assert end.startswith("gpuprof: nothing was recorded: unless")


def test_program_by_its_loader(work, run_collector, tmp_path):
    """It is none that is statically linked, as the loader itself is."""
    loader = next(pathlib.Path("/").glob("lib*/ld-linux-*"))
    program = toolchain.build("property_work.c", *toolchain.runtime(12))
    done = run_collector("run", "-o", "out", loader, program, "c3")
    assert done.returncode == 3 and "static" not in done.stderr
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert len(process.calls()) == 4


def test_what_the_library_has_to_say_is_said_once(make_records, run_collector):
    """By who reads the recordings: of 32 ranks in one line."""
    said = "stacks have no Python frames: Python 3.9.1: it is not known"
    lacks = "kernels: not supported here"
    lines = [line for rank in range(32) for line in (f"process {rank + 1}", f"meta said={said}",
                                                     "meta gpu_rows=from CUPTI 26, /a, without b/"
                                                     f"libcupti.so, without {lacks}",
                                                     f"{stream_reader.CALL} 1 1000 5 1 0 cudaFree "
                                                     "0 -")]
    folder = make_records(lines)
    done = run_collector("report", folder)
    assert done.stdout.count(said) == 1 and f"note       {said} (32 of 32 processes)" in done.stdout
    assert done.stdout.count(lacks) == 1
    assert f"GPU        rows without {lacks} (32 of 32 processes)" in done.stdout


def test_folder_at_the_start_is_meant(work, tmp_path):
    """Not that of the first call: here /, where nothing is to appear."""
    _, process, errors = work("d", "c3", folder=pathlib.Path("data"), cwd=tmp_path)
    assert errors == "" and not process and not pathlib.Path("/data").exists()
    [process] = stream_reader.read_folder(tmp_path / "data")
    assert len(process.calls()) == 4


def test_folder_that_is_removed_or_renamed(work, tmp_path):
    _, process, errors = work("c3", "s20", "r", "c3", folder=tmp_path / "a")
    assert not process and errors.startswith("gpuprof: recording ended after ")
    assert errors.endswith("the folder or the file was removed; the data up to then can be read\n")
    _, process, errors = work("c3", "s20", f"r{tmp_path}/c", "c3", folder=tmp_path / "b")
    assert not process and errors == (f"gpuprof: the folder '{tmp_path}/b' was renamed: the "
                                      f"recording is in '{tmp_path}/c'\n")
    [process] = stream_reader.read_folder(tmp_path / "c")
    assert len(process.calls()) == 8 and not process.losses


def test_clock_of_another_century(library, run_collector, tmp_path):
    """What libfaketime does: no start-up is longer than the process lived."""
    clock = toolchain.build("later_clock.c", "-shared", "-fPIC")
    program = toolchain.build("property_work.c", *toolchain.runtime(12))
    env = toolchain.environment(tmp_path / "out", f"{library}:{clock}", GPUPROF_GPU="on")
    toolchain.run([program, "c3"], env, status=3)
    done = run_collector("report", tmp_path / "out", "--format=json")
    assert 0 < json.loads(done.stdout)["overview"]["start_up_ns"] < 60e9


@pytest.mark.parametrize("front", ["auto", "cupti"])
def test_our_threads_have_the_usual_policy_and_the_process_s_processors(work, front):
    """Whatever those of the thread are that makes the first call."""
    lines, _, errors = work("f", "p", "c3", "s100", "t", GPUPROF_DEVICE="on", GPUPROF_FRONT=front)
    found = threads(lines)
    ours = [who for name, those in found.items() if name.startswith("gpuprof") for who in those]
    assert errors == "" and len(ours) >= 4
    assert found["program"][0][2] != os.SCHED_OTHER
    assert {who[2:] for who in ours} == {(os.SCHED_OTHER, found["program"][0][3])}


@pytest.mark.skipif(not IS_ROOT, reason="not run: only root can lock as much as it wants")
def test_memory_that_is_locked_as_it_comes(work):
    """Our buffers stay as they are: storage with the first touch."""
    lines, process, errors = work("m", "c1", "l")
    plain = toolchain.run([toolchain.build("property_work.c", *toolchain.runtime(12)),
                           "m", "c1", "l"], toolchain.environment(None), status=3)
    (_, bare), (_, locked) = plain.stdout.split(), lines[0].split()
    assert errors == "" and len(process.calls()) == 2
    assert int(locked) - int(bare) < 24 << 10
