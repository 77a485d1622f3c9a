# SPDX-License-Identifier: Apache-2.0
"""
What threads do in gaps between their CUDA calls, looked at by a thread of ours: against a program's
own account (src/gap_work.py), under the system's Python and those that pyenv has.
"""

import os
import pathlib
import platform
import signal

import pytest
import stream_reader
import toolchain
from test_python import Stacks

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

SAMPLE = stream_reader.TYPE_NUMBERS["sample"]
PERIOD, TID, FLAGS, STATE, SYSCALL, HOLDER, HOLDER_STACK, RAN, DELAY, FAULTS, MAJOR = range(11)
IN_KERNEL = 1
SECONDS = 0.5
BOUNDS = 0.2  # looks fall anywhere, and on a busy machine late, so the bounds of gaps are blurred
LINES = pathlib.Path(toolchain.SOURCES, "gap_work.py").read_text(encoding="utf-8").splitlines()
PYENV = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
READ = {"x86_64": 0, "aarch64": 63}.get(platform.machine())
SLEEPS = {"x86_64": (35, 230, 23, 270), "aarch64": (101, 115, 72)}.get(platform.machine())


def interpreter(version):
    if version == "system":
        return "/usr/bin/python3"
    found = sorted(PYENV.glob(f"{version}.*/bin/python3"))
    if not found:
        pytest.skip(f"not run: no Python {version} in {PYENV}")
    return found[-1]


@pytest.fixture(params=("system", *VERSIONS))
def python(request):
    return interpreter(request.param)


class Run:
    """The first process of a run, its looks, and the program's account of it."""

    def __init__(self, folder, library, kind, python="/usr/bin/python3", status=0, **settings):
        env = toolchain.environment(folder / "data", library, PYTHONDONTWRITEBYTECODE=1,
                                    **{"GPUPROF_GAPS": "on", **settings})
        program = toolchain.SOURCES / "gap_work.py"
        done = toolchain.run([python, program, kind, SECONDS], env, status)
        lines = [line.split() for line in done.stdout.splitlines()]
        self.spent, self.faults, self.pid, self.other = map(int, lines[0][1:])
        self.pids = [int(line[3]) for line in lines]
        self.processes = stream_reader.read_folder(folder / "data")
        toolchain.remove_live(self.processes)
        self.process = next(p for p in self.processes if p.header.pid == self.pid)
        self.stacks = Stacks(self.process)

    def looks(self, process=None):
        return [r for r in (process or self.process).of_type(SAMPLE) if r.code == 1]

    def frame(self, stack):
        """The innermost one of a stack: (file, line, function)."""
        return self.stacks.stacks[stack][1][0] if stack else None

    def time(self, is_so=lambda look: True):
        return sum(max(r.weight, 1) * r.args[PERIOD] for r in self.looks() if is_so(r))

    def share(self, is_so):
        return self.time(is_so) / self.time()


def test_who_waits_for_the_lock_and_who_holds_it(tmp_path, library, python):
    run = Run(tmp_path, library, "gil", python)
    # Of some 100 ms of `spent` 0.1 ms are no wait for the lock; who has it may need a processor.
    runs = run.time(lambda r: r.args[STATE] == ord("R"))
    waits = run.time(lambda r: r.args[HOLDER] == run.other)
    assert run.time() == pytest.approx(run.spent, rel=BOUNDS)
    assert waits >= 0.8 * (run.time() - runs) and waits >= 0.5 * run.spent
    lines = {"for i in range(5000):", "total += i", "while time.monotonic() < until:"}
    held = run.time(lambda r: r.args[HOLDER_STACK] and
                    run.frame(r.args[HOLDER_STACK])[2] == "compute" and
                    LINES[run.frame(r.args[HOLDER_STACK])[1] - 1].strip() in lines)
    assert held == pytest.approx(waits, rel=0.1)
    where = run.time(lambda r: r.args[HOLDER] and
                     run.frame(r.stack) and run.frame(r.stack)[2] == "wait_for_lock")
    assert where == pytest.approx(waits, rel=0.1)


def test_who_runs_alone_waits_for_no_lock(tmp_path, library, python):
    run = Run(tmp_path, library, "alone", python)
    assert not any(r.args[HOLDER] for r in run.looks())
    assert run.share(lambda r: r.args[STATE] == ord("R")) >= 0.8
    assert run.share(lambda r: run.frame(r.stack) and run.frame(r.stack)[2] == "compute") >= 0.8
    assert run.time() == pytest.approx(run.spent, rel=BOUNDS)


@pytest.mark.parametrize("kind, function, calls", [("sleep", "sleep", SLEEPS),
                                                   ("pipe", "read_pipe", (READ,))])
def test_in_which_system_call_it_waits(tmp_path, library, kind, function, calls):
    run = Run(tmp_path, library, kind)
    waits = run.share(lambda r: r.args[STATE] == ord("S") and r.args[SYSCALL] - 1 in calls and
                      r.args[FLAGS] & IN_KERNEL and run.frame(r.stack)[2] == function)
    assert waits >= 0.9 and run.time() == pytest.approx(run.spent, rel=BOUNDS)
    assert not any(r.args[HOLDER] for r in run.looks())
    assert len(run.looks()) <= 3 * SECONDS / 0.1  # one record tells of many equal looks
    assert all(r.args[RAN] < 5_000_000 for r in run.looks())


def test_faults_of_pages(tmp_path, library):
    run = Run(tmp_path, library, "touch")
    faults = sum(r.args[FAULTS] for r in run.looks())
    assert run.faults / 2 < faults <= run.faults


def test_nobody_is_looked_at_while_the_device_works(tmp_path, library):
    run = Run(tmp_path, library, "sync", SIMCUDA_COPY_BYTES_PER_US=1)
    assert run.time(lambda r: r.args[TID] == run.other) < 0.2 * run.spent


def test_there_is_none_of_it_without_the_setting(tmp_path, library):
    run = Run(tmp_path, library, "sleep", GPUPROF_GAPS="auto")
    names = {r.text for r in run.process.of_type(stream_reader.THREAD)}
    assert not run.looks() and b"gpuprof-host" not in names


@pytest.mark.parametrize("kind, status", [("fork", 0), ("kill", -signal.SIGKILL), ("exec", 0)])
def test_ends_of_processes(tmp_path, library, kind, status):
    """Each has looks of its own threads alone, up to its end."""
    run = Run(tmp_path, library, kind, status=status)
    for process in run.processes:
        looks = run.looks(process)
        assert {r.args[TID] for r in looks} == {process.header.pid} and not process.losses
        first, last = looks[0], looks[-1]
        assert last.begin - first.begin > 0.5 * SECONDS * 1e9
    assert {p.header.pid for p in run.processes} == set(run.pids)
    assert len(run.processes) == (1 if kind == "kill" else 2)
