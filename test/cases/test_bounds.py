# SPDX-License-Identifier: Apache-2.0
"""The tests' own bounds: one that hangs fails alone, and leaves nothing to those after it."""

import os
import re
import shutil
import signal
import subprocess
import sys

import conftest
import pytest
from launched import has_ended, wait_until

# Each in another way; `stays` ends by nothing but SIGKILL.
HANGING = """
import fcntl, os, subprocess, sys, time
import pytest
from conftest import Program

stays = [sys.executable, "-ISc", "import os, signal, time; os.setsid(); os.fork();"
         "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals());"
         "print(os.getpid(), file=open('pids', 'a')); time.sleep(600)"]
speaks = ["sh", "-c", "echo; exec sleep 600"]
soon, later = pytest.mark.timeout(0.6), pytest.mark.timeout(2)

@pytest.fixture
def waits():
    time.sleep(600)

@soon
def test_fixture(waits):
    pass

def test_body_fails():
    with Program(speaks, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert False, "the body's own reason"

@later
def test_body_fails_for_a_bare_program():
    with subprocess.Popen(stays):
        assert False

@soon
def test_read():
    with Program(speaks, stdout=subprocess.PIPE) as process:
        process.stdout.read()

@later
def test_run():
    subprocess.run(stays)

@soon
def test_lock(tmp_path):
    with open(tmp_path / "lock", "w") as one, open(tmp_path / "lock") as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)

@soon
def test_fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    open(tmp_path / "fifo")

def test_passes_and_leaves(monkeypatch):
    monkeypatch.setattr("conftest.LEFT_SECONDS_MAX", 0)
    process = subprocess.Popen(speaks, stdout=subprocess.PIPE)
    while not open(f"/proc/{process.pid}/cmdline").read().startswith("sleep"):
        time.sleep(0.001)

def test_passes():
    subprocess.Popen(["true"])  # ends of itself
    assert not os.path.exists(os.environ["GPUPROF_LIVE"] + "/left")
    open(os.environ["GPUPROF_LIVE"] + "/left", "w")

def test_passes_too():
    test_passes()
"""


def pytest_of(folder, source, *arguments):
    """The command that runs these tests as they would be in this folder."""
    (folder / "test_scratch.py").write_text(source)
    return [sys.executable, "-m", "pytest", "-c", conftest.ROOT / "test" / "pytest.ini", "-p",
            "conftest", f"--rootdir={folder}", f"--basetemp={folder / 'tmp'}", *arguments,
            folder / "test_scratch.py"]


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, "PYTHONPATH": str(conftest.ROOT / "test"), "COLUMNS": "200"}


def test_a_hanging_test_fails_alone(tmp_path):
    done = subprocess.run(pytest_of(tmp_path, HANGING, "-n2"), cwd=tmp_path,
                          env=environment(), capture_output=True, text=True, check=False)
    failed = dict(re.findall(r"^(?:FAILED|ERROR) \S+::test_(\w+) - (.*)$", done.stdout,
                             re.MULTILINE))
    assert failed.pop("body_fails").startswith("AssertionError: the body's own reason"), done.stdout
    assert "left running: ['sleep 600 ']" in failed.pop("passes_and_leaves")
    soon, later = "Failed: Timeout >0.6s", "Failed: Timeout >2.0s"
    assert failed == {"fixture": soon, "body_fails_for_a_bare_program": later, "read": soon,
                      "run": later, "lock": soon, "fifo": soon}, done.stdout
    assert re.search(r"^6 failed, 3 passed, 2 errors", done.stdout, re.MULTILINE)
    pids = (tmp_path / "pids").read_text().split()
    assert pids and all(map(has_ended, pids))


def test_an_interrupted_run_tells_what_it_knows(tmp_path):
    # A signal just before sleep() is noticed behind it, and open() drops a KeyboardInterrupt.
    source = "import os, time\ndef test_bad(): assert False\n" \
        "def test_hangs():\n os.mkdir('at')\n while True: time.sleep(0.1)\n"
    with conftest.Program(pytest_of(tmp_path, source, "--junitxml=x.xml"), cwd=tmp_path,
                          env=environment(), stdout=subprocess.PIPE, text=True) as process:
        wait_until((tmp_path / "at").exists, seconds=60)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert re.search(r"^FAILED \S+::test_bad ", told, re.MULTILINE)
    assert re.search(r"^NOT ENDED \S+::test_hangs$", told, re.MULTILINE)
    assert 'failures="1"' in (tmp_path / "x.xml").read_text()


# The first fails once, the second as often as it runs; the third was not run.
UNSURE = """
import pathlib, pytest
def test_once():
    seen = pathlib.Path("seen").exists()
    open("seen", "w").close()
    assert seen
{}def test_always(): assert False
def test_skipped(): pytest.skip("not run: no such thing here")
def test_passes(): pass
"""


@pytest.mark.parametrize("mark, last, names", [
    ("", "2 passed, 1 failed, 1 skipped", ["once"]),
    ("import os; os._exit(1)\n", "0 passed, 1 failed", []),  # nothing was run
    ("@pytest.mark.skip(reason='x')\n", "2 passed, 0 failed, 2 skipped", ["once"]),
    ("@pytest.mark.parametrize('i', range(6))\ndef test_many(i): assert False\n",
     "1 passed, 8 failed, 1 skipped", [])])  # too many for an accident: the first counts as well
def test_what_fails_once_is_run_again_alone(tmp_path, mark, last, names):
    (tmp_path / "test").mkdir()
    for name in ("pytest.ini", "conftest.py"):
        shutil.copy(conftest.ROOT / "test" / name, tmp_path / "test")
    (tmp_path / "test" / "test_scratch.py").write_text(UNSURE.format(mark))
    done = subprocess.run([sys.executable, "-m", "pytest", "-n2", "--junitxml=x.xml", "test"],
                          cwd=tmp_path, env=environment(), capture_output=True, check=False)
    told = subprocess.run([conftest.ROOT / "scripts" / "check-words", "x.xml",
                           str(done.returncode)],
                          cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          check=False)
    lines = told.stdout.splitlines()
    assert lines[-1] == last, told.stdout
    assert [line for line in lines if line.startswith("PASSED ONLY ALONE")] == \
        [f"PASSED ONLY ALONE test/test_scratch.py::test_{name}" for name in names]
    assert ("  1 not run: no such thing here" in lines) == ("skipped" in last)
    assert told.returncode == (" 0 failed" not in last)
