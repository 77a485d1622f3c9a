# SPDX-License-Identifier: Apache-2.0
"""`gpuprof ctl`: running processes start and stop recording. Each copy of the program has its own
size, and it makes the next one only when it is told to: what is recorded tells when it was."""

import contextlib
import os
import signal
import subprocess
import time

import conftest
import csv_tables
import pytest
import stream_reader
import toolchain

LIMIT = 60


class Job:
    """A program that copies when it is told to: by words, a line each; `f` forks."""

    def __init__(self, folder, library, live, **settings):
        settings = {f"GPUPROF_{name}": value for name, value in settings.items()
                    if not name.startswith("env_")} | \
            {name[4:]: value for name, value in settings.items() if name.startswith("env_")}
        env = toolchain.environment(folder, library, GPUPROF_LIVE=live,
                                    LD_LIBRARY_PATH=str(toolchain.SIM), **settings)
        program = toolchain.build("control_work.c", *toolchain.runtime(12),
                                  f"-I{conftest.ROOT / 'inject/range'}")
        self.program = conftest.Program([program], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.program.pid

    def say(self, word):
        """Returns what it answers: when it has done it."""
        self.program.stdin.write(f"{word}\n")
        self.program.stdin.flush()
        return self.program.stdout.readline().strip()


@pytest.fixture(name="job")
def fixture_job(library, tmp_path):
    with contextlib.ExitStack() as stack:
        def start(begins=True, **settings):
            its = Job(tmp_path / "out", library, tmp_path, **settings)
            stack.enter_context(its.program)
            assert not begins or its.say("1") == "1"  # now it records
            return its
        yield start


@pytest.fixture(name="ctl")
def fixture_ctl(collector, tmp_path):
    def ctl(*words, status=0, timeout=LIMIT):
        done = subprocess.run([collector, "ctl", f"--timeout={timeout}", tmp_path / "out", *words],
                              capture_output=True, text=True, check=False, timeout=2 * LIMIT)
        assert done.returncode == status, done
        return done.stdout if status != 2 else done.stderr
    return ctl


def end(its):
    _, errors = its.program.communicate(timeout=LIMIT)
    assert its.program.returncode == 0
    return errors


def recorded(tmp_path):
    """pid -> (sizes of the copies, [(who, is it off?)])"""
    found = {}
    for p in stream_reader.read_folder(tmp_path / "out"):
        sizes = [c.args["bytes"] for c in p.calls() if c.symbol.startswith("cudaMemset")]
        pauses = sorted(p.of_type(stream_reader.PAUSE), key=lambda r: r.begin)
        found[p.header.pid] = sizes, [(r.args[1], r.args[0]) for r in pauses]
        assert not p.losses
    return found


def test_one_of_two_and_all(job, ctl, tmp_path):
    first, second = job(env_RANK="3"), job(env_RANK="4")
    assert not (tmp_path / "out/control").exists() and not list(tmp_path.glob("out/*.status"))
    assert ctl("status").count(": recording\n") == 2
    assert f"pid {first.pid} on " in ctl(f"--pid={first.pid}", "stop")
    for its in first, second:
        its.say("2")
    lines = ctl("status").splitlines()
    assert [": stopped by gpuprof ctl" in line for line in lines] == \
        [f"pid {first.pid} " in line for line in lines] and len(lines) == 2
    assert "(rank 4): stopped by gpuprof ctl\n" in ctl("--rank=4", "stop")
    for its in first, second:
        its.say("3")
    assert ctl("start").count(": recording\n") == 2
    for its in first, second:
        its.say("4")
    modes = {path.stat().st_mode & 0o777 for path in
             [tmp_path / "out/control", *tmp_path.glob("out/*.status")]}
    assert modes == {0o600}
    assert end(first) == end(second) == ""
    assert recorded(tmp_path) == {first.pid: ([1, 4], [(1, 1), (1, 0)]),
                                  second.pid: ([1, 2, 4], [(1, 1), (1, 0)])}
    assert not list(tmp_path.glob("out/*.status*"))
    assert "no matching process" in ctl("status", status=2)


def test_children_and_later_ones_enrol(job, ctl, tmp_path):
    first = job()
    ctl("stop")
    forks = job(begins=False)  # CUDA is for the child, which goes on; the parent waits for it
    child = int(forks.say("f"))
    for its in first, forks:
        its.say("2")
    assert ctl("status").count("stopped by gpuprof ctl") == 2
    ctl("start")
    for its in first, forks:
        its.say("3")
    ctl("stop")
    later = job()
    assert end(first) == end(forks) == end(later) == ""
    found = recorded(tmp_path)
    assert found[first.pid] == ([1, 3], [(1, 1), (1, 0), (1, 1)])
    assert found[child] == ([3], [(1, 1), (1, 0), (1, 1)])
    assert found[later.pid] == ([], [(1, 1)])


def test_program_and_control(job, ctl, tmp_path):
    """Both have to want it; what one has stopped the other one does not start."""
    its = job()
    its.say("p")  # gpuprof_stop
    ctl("stop")
    assert "stopped by the program and gpuprof ctl" in ctl("status")
    its.say("2")
    its.say("r")
    its.say("3")
    assert ": recording" in ctl("start")
    its.say("4")
    assert end(its) == ""
    assert recorded(tmp_path) == {its.pid: ([1, 4], [(0, 1), (1, 1), (0, 0), (1, 0)])}


@pytest.mark.long
def test_control_setting(job, ctl, tmp_path):
    stopped = job(CONTROL="stopped")
    ctl("start")
    stopped.say("2")
    deaf = job(CONTROL="off")
    said = ctl("stop", status=1, timeout=2)
    assert f"pid {deaf.pid} on " in said and said.count("did not answer") == 1
    deaf.say("2")
    assert end(stopped) == end(deaf) == ""
    found = recorded(tmp_path)
    assert found[stopped.pid][0] == [2] and found[deaf.pid][0] == [1, 2]


def test_who_does_not_answer_is_named(job, ctl):
    first, second = job(), job()
    os.kill(second.pid, signal.SIGSTOP)
    said = ctl("stop", status=1, timeout=3)
    os.kill(second.pid, signal.SIGCONT)
    assert [line.split(": ")[1] for line in sorted(said.splitlines(), key=lambda line:
            f"pid {second.pid} " in line)] == ["stopped by gpuprof ctl", "did not answer"]
    assert end(first) == end(second) == ""


def steps_of(its, numbers):
    """Each copies as much as its number says."""
    for number in numbers:
        its.say(f"s{number}")
        its.say(str(number))


def wait_for(collector, tmp_path, text, count):
    """Until what is recorded has that text so often."""
    end = time.monotonic() + LIMIT
    while subprocess.run([collector, "dump", tmp_path / "out"], capture_output=True, text=True,
                         check=True).stdout.count(text) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_ranks_turn_with_the_same_step(job, ctl, collector, tmp_path):
    first, second = job(CONTROL="stopped"), job(CONTROL="stopped")
    steps_of(first, range(100, 103))
    steps_of(second, range(100, 108))
    said = ctl("start", "--at-step=110")
    assert sorted(line.split("; ", 1)[1] for line in said.splitlines()) == \
        ["step 102; start at step 110", "step 107; start at step 110"]
    steps_of(first, range(103, 105))
    assert "at step 113:\n" in ctl("stop", "--at-step=+6")  # ahead of the second's 107
    steps_of(first, range(105, 116))
    steps_of(second, range(108, 116))
    wait_for(collector, tmp_path, "\npause ", 10)  # until the devices are off, too
    late = ctl("start", "--at-step=112", status=1)
    assert late.count("that step is over, so it takes place at the next step") == 2
    steps_of(first, [116])
    steps_of(second, [120])
    assert end(first) == end(second) == ""
    for its, last in (first, 116), (second, 120):
        sizes, pauses = recorded(tmp_path)[its.pid]
        assert sizes == [110, 111, 112, last]
        # Stopped from the begin, then all but calls on, on, calls off, the device off, and on.
        assert pauses == [(1, 1), (1, 2), (1, 0), (1, 1), (1, 1), (1, 0)]


def rows_of(collector, tmp_path, table):
    done = subprocess.run([collector, "report", "--format=csv", f"--table={table},losses",
                           tmp_path / "out"], capture_output=True, text=True, check=True)
    return csv_tables.tables(done.stdout)[table]


def test_a_stop_with_a_step_ends_the_step_before(job, ctl, collector, tmp_path):
    its = job()
    ctl("stop", "--at-step=4")
    steps_of(its, range(2, 6))
    assert end(its) == ""
    assert recorded(tmp_path)[its.pid][0] == [1, 2, 3]
    assert [row["step"] for row in rows_of(collector, tmp_path, "steps")] == ["2", "3"]


def test_start_at_a_time(job, ctl, tmp_path):
    its = job(CONTROL="stopped")
    begin = time.time()
    assert "; start at " in ctl("start", f"--at=@{begin + 2.5}")
    its.say("2")
    while ": recording" not in ctl("status"):
        assert time.time() < begin + LIMIT
    assert time.time() > begin + 2.5
    its.say("3")
    assert end(its) == ""
    [pause] = [r for p in stream_reader.read_folder(tmp_path / "out")
               for r in p.of_type(stream_reader.PAUSE) if not r.args[0]]
    assert recorded(tmp_path)[its.pid][0] == [3]
    assert pause


def test_schedule_of_a_running_job(job, ctl, tmp_path):
    """Steps by their numbers; then from the next step on, after which windows are numbered on."""
    its = job(CONTROL="stopped")
    assert "stopped by its windows" in ctl("schedule", "5-6")
    steps_of(its, range(2, 9))
    ctl("schedule", "wait=1,active=1,repeat=2")
    steps_of(its, range(20, 26))
    assert "it records the rest of the first window" in ctl("schedule", "25-30", status=1)
    steps_of(its, range(29, 33))
    assert ": recording" in ctl("schedule", "off")
    its.say("40")
    child = int(job(begins=False).say("f"))
    assert child
    assert end(its) == ""
    [process] = [p for p in stream_reader.read_folder(tmp_path / "out")
                 if p.header.pid == its.pid]
    assert [c.args["bytes"] for c in process.calls() if c.symbol.startswith("cudaMemset")] == \
        [5, 6, 21, 23, 29, 30, 40]
    windows = sorted(process.of_type(stream_reader.WINDOW), key=lambda r: r.begin)
    assert [r.args[0] for r in windows if r.args[1] == 1] == [1, 2, 3, 4, 0]


def test_later_processes_follow_the_schedule(job, ctl, tmp_path):
    first = job()
    ctl("schedule", "2-3")
    later = job(begins=False)
    steps_of(later, range(1, 6))
    assert end(later) == ""
    assert "gpuprof ctl schedule: 0 steps seen" in end(first)
    assert recorded(tmp_path)[later.pid][0] == [2, 3]


def test_dump_with_a_step(job, ctl, collector, tmp_path):
    its, other = job(FLIGHT="10s"), job()
    said = ctl("dump", "--at-step=3", status=1)
    assert said.count("it has no flight recorder") == 1 and said.count("; dump at step 3") == 1
    assert "records everything, so it takes no schedule" in ctl("schedule", "5-6", status=1)
    steps_of(its, range(2, 5))
    while "written 1 dump" not in (said := ctl("status")):
        assert "written" in said
    its.program.kill()
    other.program.kill()
    its.program.wait()
    other.program.wait()
    dumps = rows_of(collector, tmp_path, "dumps")
    assert any("step 3" in value for value in dumps[0].values() if value)


@pytest.mark.parametrize("words", [
    ("start", "--at=yesterday"), ("start", "--at=2020-01-01"), ("start", "--at=@1"),
    ("start", "--at=2020-01-01T00:00:00"), ("start", "--at=+1x"), ("start", "--at-step=x"),
    ("start", "--at-step=99999999999999999999"), ("start", "--at=+1s", "--at-step=1"),
    ("start", "--at-step=-1"),
    ("status", "--at-step=1"), ("schedule",), ("schedule", "wait=1"), ("schedule", "9-3"),
    ("schedule", "3-9", "--at-step=2"), ("schedule", "off", "--at-step=2"),
    ("schedule", "active=1", "--at=+1s"), ("watch",), ("start", "stop"), ("start", "--at-step=+1"),
    ("nothing",)])
def test_bad_words(job, ctl, tmp_path, words):
    its = job()
    said = ctl(*words, status=2)
    assert said.startswith("gpuprof: ctl: ") and said.count("\n") == 1
    assert words[-1] == "--at-step=+1" or not (tmp_path / "out/control").exists()
    assert end(its) == ""


def whole(*commands):
    return "gpuprof-control 1\n" + "".join(f"{c}\n" for c in commands) + "end\n"


STOP = "0123456789abcdef all stop"


@pytest.mark.parametrize("what", ["half", "fifo", *(
    pytest.param(what, marks=pytest.mark.long) for what in (
        "huge", "link", "writable", "owner", "many", "version", "behind", "letters"))])
def test_hostile_file_is_not_followed(job, ctl, tmp_path, what):
    its = job()
    control, fresh = tmp_path / "out/control", tmp_path / "fresh"
    texts = {"half": whole(STOP)[:-2], "huge": whole(STOP).replace("end\n", "x" * 5000),
             "many": whole(*[STOP] * 33), "version": whole(STOP).replace("1\n", "2\n", 1),
             "behind": whole(STOP) + "x", "letters": whole(STOP.upper())}
    if what == "fifo":
        os.mkfifo(fresh)
    elif what == "link":
        (tmp_path / "target").write_text(whole(STOP))
        fresh.symlink_to(tmp_path / "target")
    else:
        fresh.write_text(texts.get(what, whole(STOP)))
        fresh.chmod(0o622 if what == "writable" else 0o600)
    if what == "owner":
        if os.geteuid():
            pytest.skip("another owner needs root")
        os.chown(fresh, 12345, 12345)
    os.rename(fresh, control)
    line = its.program.stderr.readline()  # within a second or so
    assert f"gpuprof ctl does not reach this process: '{control}' is damaged" in line
    its.say("2")
    if what not in ("owner", "writable"):
        assert "is not a control file" in ctl("start", status=2)
    control.unlink()
    assert ": recording" in ctl("status")
    assert end(its) == ""
    assert recorded(tmp_path) == {its.pid: ([1, 2], [])}


@pytest.mark.long
def test_two_at_a_time(job, ctl, collector, tmp_path):
    """Askers overwrite each other's file: each sees to it that its own is answered."""
    its = job()
    words = [collector, "ctl", f"--timeout={LIMIT}", tmp_path / "out", "status"]
    with contextlib.ExitStack() as stack:
        askers = [stack.enter_context(conftest.Program(words, stdout=subprocess.PIPE, text=True))
                  for _ in range(12)]
        for asker in askers:
            assert ": recording\n" in asker.communicate(timeout=LIMIT)[0]
            assert asker.returncode == 0
    ctl("stop")
    its.say("2")
    assert end(its) == ""
    assert recorded(tmp_path) == {its.pid: ([1], [(1, 1)])}
