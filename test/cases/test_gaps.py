# SPDX-License-Identifier: Apache-2.0
"""
What threads do in gaps between their CUDA calls, looked at by a thread of ours: against a program's
own account (src/gap_work.py), under the system's Python and those that pyenv has.
"""

import os
import pathlib
import platform
import signal

import conftest
import pytest
import stream_reader
import toolchain
from test_os import recorded
from test_python import Stacks, find_interpreter

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

SAMPLE, GIL, REST, COUNTERS = (stream_reader.TYPE_NUMBERS[name] for name in
                               ("sample", "gil", "gil_rest", "host_counters"))
PERIOD, TID, FLAGS, STATE, SYSCALL, HOLDER, HOLDER_STACK, RAN, DELAY, FAULTS, MAJOR = range(11)
IN_KERNEL = 1
_, QUOTA, THROTTLED, THROTTLED_NS = range(4)
WAITED, HELD, STOPPED = 0, 1, 2
WAITS, WAIT_NS, HOLDS, HOLD_NS, WHOSE = range(5)
SECONDS = 0.5
BOUNDS = 0.2  # looks fall anywhere, and on a busy machine late, so the bounds of gaps are blurred
LINES = pathlib.Path(toolchain.SOURCES, "gap_work.py").read_text(encoding="utf-8").splitlines()
PYENV = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
FREE = "3.13t"
READ = {"x86_64": 0, "aarch64": 63}.get(platform.machine())
SLEEPS = {"x86_64": (35, 230, 23, 270), "aarch64": (101, 115, 72)}.get(platform.machine())


def interpreter(version):
    if version == "system":
        return "/usr/bin/python3"
    found = sorted(PYENV.glob(f"{version}.*/bin/python3"))
    if version == FREE:
        found = [find_interpreter(FREE)]
    if not found or not found[-1]:
        pytest.skip(f"not run: no Python {version} in {PYENV}")
    return found[-1]


@pytest.fixture(params=("system", *VERSIONS, FREE))
def python(request):
    return interpreter(request.param)


class Run:
    """The first process of a run, its looks, and the program's account of it."""

    def __init__(self, folder, library, kind, python="/usr/bin/python3", status=0, preexec_fn=None,
                 **settings):
        settings = {"GPUPROF_GAPS": "on", "PYTHON_GIL": "1"} | settings
        env = toolchain.environment(folder / "data", library, PYTHONDONTWRITEBYTECODE=1, **settings)
        program = toolchain.SOURCES / "gap_work.py"
        done = toolchain.run([python, program, kind, SECONDS], env, status, preexec_fn=preexec_fn)
        lines = [line.split() for line in done.stdout.splitlines()]
        self.spent, self.faults, self.pid, self.other = map(int, lines[0][1:])
        self.pids = [int(line[3]) for line in lines]
        self.processes = stream_reader.read_folder(folder / "data")
        toolchain.remove_live(self.processes)
        self.process = next(p for p in self.processes if p.header.pid == self.pid)
        self.stacks = Stacks(self.process)

    def looks(self, process=None):
        """In gaps between calls: not while the process ends."""
        process = process or self.process
        last = max(r.begin for r in process.of_type(stream_reader.CALL))
        return [r for r in process.of_type(SAMPLE) if r.code == 1 and r.begin < last]

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
    assert run.share(lambda r: r.args[HOLDER]) < 0.1  # who wrote may still have it
    assert len(run.looks()) <= 3 * SECONDS / 0.1  # one record tells of many equal looks
    assert all(r.args[RAN] < 5_000_000 for r in run.looks())


def test_faults_of_pages(tmp_path, library):
    run = Run(tmp_path, library, "touch")
    faults = sum(r.args[FAULTS] for r in run.looks())
    assert run.faults / 2 < faults <= run.faults


def test_nobody_is_looked_at_while_the_device_works(tmp_path, library):
    run = Run(tmp_path, library, "sync", SIMCUDA_COPY_BYTES_PER_US=1)
    assert run.time(lambda r: r.args[TID] == run.other) < 0.2 * run.spent


@pytest.fixture
def limited(tmp_path):
    """A cgroup of this test's that may use a fifth of a processor: a file that takes processes."""
    mount = pathlib.Path("/sys/fs/cgroup")
    is_v1 = (mount / "cpu/cpu.cfs_quota_us").exists()
    group = mount / ("cpu" if is_v1 else ".") / f"gpuprof-test-{os.getpid()}"
    try:
        group.mkdir()
        if is_v1:
            (group / "cpu.cfs_quota_us").write_text("20000", encoding="ascii")
        else:
            (group / "cpu.max").write_text("20000 100000", encoding="ascii")
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"not run: no cgroup of processors can be made here ({error})")
    yield group / "cgroup.procs"
    group.rmdir()


def test_time_in_which_the_quota_stops_all_threads(tmp_path, library, limited):
    run = Run(tmp_path, library, "alone", preexec_fn=lambda: limited.write_text("0"))
    stat = limited.with_name("cpu.stat").read_text(encoding="ascii").split()
    stopped = int(stat[stat.index("nr_throttled") + 1])  # in its whole life, before it records, too
    if stopped < 5:
        pytest.skip(f"not run: on a machine this busy it was stopped {stopped} times only")
    counters = run.process.of_type(COUNTERS)
    assert {r.args[QUOTA] for r in counters} == {200} and counters[0].args[THROTTLED] == 0
    throttled = sum(r.args[THROTTLED] for r in counters)
    used, periods, quota = map(int, run.process.meta["cpu_throttled"].split())
    assert 0 < used <= throttled and used <= periods and quota == 200
    assert 2 <= throttled <= stopped and sum(r.duration for r in counters) > 0.15 * SECONDS * 1e9
    assert sum(r.args[THROTTLED_NS] for r in counters) > 0.15 * SECONDS * 1e9
    assert all(0 < r.duration <= 1_500_000_000 for r in counters[1:])
    assert all(a.begin + a.duration <= b.begin for a, b in zip(counters, counters[1:]))


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


@pytest.fixture(scope="session")
def both(library):
    return f"{library}:{conftest.built(conftest.BUILD / 'libgpuprof-os.so')}"


def by_thread(run, kind):
    """Records of that kind by the kernel's number of their thread, as (begin, end, record)."""
    tids = {r.thread: r.args[0] for r in run.process.of_type(stream_reader.THREAD)}
    found = {tid: [] for tid in tids.values()}
    for r in run.process.of_type(kind):
        found[tids[r.thread]].append((r.begin, r.begin + r.duration, r))
    return found


def test_each_take_and_drop_of_the_lock(tmp_path, both, python):
    """Nobody takes it while another has it; who waits for it has it then; waits last as long."""
    run = Run(tmp_path, both, "gil", python, GPUPROF_OS="0", GPUPROF_GAPS="off")
    records = by_thread(run, GIL)
    holds = sorted((*r, tid) for tid, of in records.items() for r in of if r[2].code == HELD)
    assert all(a[1] <= b[0] for a, b in zip(holds, holds[1:]))
    assert all(b[2].args[0] == a[3] for a, b in zip(holds, holds[1:]) if a[2].args[0])
    taken = {(tid, begin) for begin, _, _, tid in holds}
    waits = [r for r in records[run.pid] if r[2].code == WAITED]
    early = [r for r in waits if r[1] < holds[0][0]]  # before the first CUDA call, of OS calls
    assert early and not {name for name, _ in recorded(run.process, run.pid) if "cond" in name}
    waits = [r for r in waits if r not in early]
    assert waits and {(run.pid, end) for _, end, r in waits if r.args[1]} <= taken
    long = [r for r in waits if r[1] - r[0] > 1_000_000]
    assert {r.args[0] for _, _, r in long} == {run.other}
    assert sum(end - begin for begin, end, _ in long) == pytest.approx(run.spent, rel=BOUNDS)
    assert all(run.frame(r.stack)[2] == "wait_for_lock" for _, _, r in long)
    held = sum(end - begin for begin, end, _, tid in holds if tid == run.other)
    assert held == pytest.approx(run.spent, rel=0.3)
    whole = sum(end - begin for begin, end, _ in records[run.other])
    assert whole <= 1.05 * SECONDS * 1e9
    assert not run.process.losses and not run.process.of_type(REST)


def test_a_lock_that_is_off(tmp_path, both):
    """A free-threaded build: nobody waits, and both threads run in their lines."""
    run = Run(tmp_path, both, "gil", interpreter(FREE), GPUPROF_OS="0", PYTHON_GIL="0")
    assert not run.process.of_type(GIL) and not any(r.args[HOLDER] for r in run.looks())
    assert run.share(lambda r: run.frame(r.stack) and
                     run.frame(r.stack)[2] == "wait_for_lock") >= 0.5


def test_stops_of_the_world(tmp_path, both):
    """A thread that computes is stopped while the other one collects garbage, which itself waits
    until the thread is: that is a wait for a semaphore."""
    run = Run(tmp_path, both, "stop", interpreter(FREE), GPUPROF_OS="10us", GPUPROF_GAPS="off",
              PYTHON_GIL="0", GPUPROF_OS_BACKTRACE="10us")
    stops = by_thread(run, GIL)[run.other]
    assert len(stops) == len(run.process.of_type(GIL)) and {r.code for *_, r in stops} == {STOPPED}
    first = min(r.begin for r in run.process.of_type(stream_reader.CALL))
    assert any(end < first for _, end, _ in stops)  # kept until the thread takes part
    stops = [r for r in stops if r[1] > first]
    # All but the time in which it stops them, and frees what it found.
    assert 0.3 * run.spent <= sum(end - begin for begin, end, _ in stops) <= 1.1 * run.spent
    assert all("compute" in {frame[2] for frame in run.stacks.stacks[r.stack][1]
                             if isinstance(frame, tuple)} for *_, r in stops)
    assert "sem_clockwait" in {name for name, _ in recorded(run.process, run.pid)}


def test_short_waits_for_the_lock_are_added_up(tmp_path, both):
    run = Run(tmp_path, both, "sleep", GPUPROF_OS="20ms", GPUPROF_GAPS="off")
    assert not run.process.of_type(GIL)  # it holds it for short times, and never waits
    rests = [r for r in run.process.of_type(REST) if r.args[WHOSE] in (0, run.pid)]
    holds, held_ns = (sum(r.args[i] for r in rests) for i in (HOLDS, HOLD_NS))
    assert SECONDS / 0.1 <= holds < 1000 and 0 < held_ns < 0.2 * SECONDS * 1e9
    assert sum(r.args[WAIT_NS] for r in rests) < 20_000_000


def test_a_child_has_its_own_account_of_the_lock(tmp_path, both):
    run = Run(tmp_path, both, "fork", GPUPROF_OS="0", GPUPROF_GAPS="off")
    child, = (p for p in run.processes if p is not run.process)
    assert len(child.of_type(GIL)) >= SECONDS / 0.1
    assert all(r.args[0] != run.pid for r in child.of_type(GIL)[1:])
