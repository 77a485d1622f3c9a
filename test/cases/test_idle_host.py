# SPDX-License-Identifier: Apache-2.0
"""What the host did while the GPU waited for it, held against recordings of which that is known."""

import contextlib
import functools
import json
import mmap
import os
import pathlib
import platform
import re
import sqlite3
import tempfile

import conftest
import cupti_client as cupti
import pytest
import toolchain
from made_findings import RANK
from test_idle import DEVICE, MAIN, OTHER, US, Script
from test_partial import check_equal, make_parts

CPU, LOOK = 0, 1
READ = {"aarch64": 63}.get(platform.machine(), 0)
PID = 1000 + RANK  # so test/unit/make_records.c has it, and of the thread OTHER it has:
WORKER = PID + 600
FILE, SOCKET, POLL, SLEEP, CHILD, LOCK, CONDITION, SEMAPHORE = range(1, 9)
TOKENIZE, SPIN, PUT, WAIT, IMPORT = range(1, 6)
LINES = {TOKENIZE: "tokenize (data.py:81)", SPIN: "spin (work.py:9)", PUT: "put (data.py:12)"}
MAIN_LINE, IMPORTED = "3:/home/me/train.py:main", "1:<frozen importlib._bootstrap>:_load"
STACKS = {TOKENIZE: ("81:/home/me/data.py:tokenize", MAIN_LINE), SPIN: ("9:/home/me/work.py:spin",),
          PUT: ("12:/home/me/data.py:put", MAIN_LINE),
          WAIT: ("300:/usr/lib/python3.12/threading.py:Condition.wait", "12:/home/me/data.py:put"),
          IMPORT: ("7:/usr/lib/torch/nn.py:<module>", IMPORTED,
                   "5:/usr/lib/torch/__init__.py:<module>", IMPORTED,
                   "2:/home/me/train.py:<module>")}


class Host(Script):
    """With what its threads did between calls; times in microseconds."""

    def __init__(self, rank=RANK):
        super().__init__(rank, now=1000)
        self.functions = {}
        self.launch()
        self.now = self.last + 10
        self.launch()
        self.end = self.last + 104  # of the work: the next gap begins

    def record(self, kind, thread, at, us=0, stack=0, **what):
        self.add(kind, thread, at, us, **what)
        thread, begin, line = self.lines.pop()
        self.lines.append((thread, begin, f"stack {stack}\n{line}" if stack else line))

    def sample(self, at, us, stack=0, thread=MAIN, flags=0, count=1):
        self.add("sample", thread, at, 0, args=(us * US, 0, flags, 0, 0, 0, 0))
        thread, begin, line = self.lines.pop()
        words = line.split(" ")
        words[7] = str(count)
        self.lines.append((thread, begin, f"stack {stack}\n{' '.join(words)}" if stack
                           else " ".join(words)))

    def look(self, at, us, state, stack=0, call=-1, holder=0, holder_stack=0, tid=PID, ran=0,
             delay=0, faults=0, major=0):
        self.record("sample", DEVICE, at, stack=stack, code=LOOK, args=(
            us * US, tid, 0, ord(state), call + 1, holder, holder_stack, ran * US, delay * US,
            faults, major))

    def stop(self, at, us, throttled, old=False):
        """A quota stopped all threads for `throttled` in that time; `old`: as files of before."""
        args = (us * US, 1500, 1, throttled * US, us * US) if old else (0, 1500, 1, throttled * US)
        self.add("host_counters", DEVICE, at + us * old, us * (not old), args=args)

    def os(self, function, kind, at, us, stack=0, text="", thread=MAIN):
        if function not in self.functions:
            self.functions[function] = len(self.functions) + 1
            self.add("os_function", MAIN, 2, 0, code=self.functions[function], args=(kind,),
                     text=function)
        self.record("os_call", thread, at, us, stack, code=self.functions[function],
                    args=(4, 0, 0, 0), text=text)

    def gil(self, at, us, other, code=0, stack=0):
        self.record("gil", MAIN, at, us, stack, code=code, args=(other, 0))

    def gc(self, at, us, stack=0, generation=2):
        self.record("gc", MAIN, at, us, stack, code=generation, args=(5, 0, 0))

    def next(self, us, ran=None, delay=0):
        """The next launch ends a gap of so long; `ran` None: nobody knows whether it did."""
        self.now = self.end + us
        if ran is not None:
            self.add("silence", MAIN, self.now, 0, args=(us * US, us * US, ran * US,
                                                         delay * US + 1))
        self.launch(us=4, after=4, lasts=50)
        self.end = self.last + 54

    def text(self):
        lines = super().text()
        frames = ["|".join((f"frames {number}", *stack)) for number, stack in STACKS.items()]
        lines[1:1] = ["meta page_fault_ns=500", *frames]
        return [line for text in lines for line in text.split("\n")]


@pytest.fixture(name="told")
def fixture_told(run_verb, make_records):
    """told(SCRIPT, ...): {(cause, did, place): us}, which adds up to idle time by cause."""
    def told(*scripts):
        folder = make_records(line for script in scripts for line in script.text())
        report = json.loads(run_verb("report", "--format=json", "--table=gpu_time,idle_host",
                                     folder).stdout)
        rows = report.get("idle_host", [])
        for cause in ("host", "waiting", "preempted", "loader") if rows else ():
            assert sum(row["total_ns"] for row in rows if row["cause"] == cause) == \
                sum(row[f"idle_{cause}_ns"] for row in report["gpu_time"]), cause
        assert all(row["longest_ns"] <= row["total_ns"] and row["count"] for row in rows)
        assert not rows or sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
        return {(row["cause"], row["did"], row["place"]): row["total_ns"] / US for row in rows
                if row["cause"] != "start-up"}
    return told


SCENES = {}


def scene(**rows):
    def register(act):
        SCENES[act.__name__] = act
        act.wanted = rows["rows"]
        return act
    return register


RAN, NOWHERE, WHY = "in no sample", "nothing was recorded of it", "not known for what"


@scene(rows={("host", "running", LINES[TOKENIZE]): 30000, ("waiting", "file", "/data/a.bin in " +
                                                           LINES[PUT]): 8000,
             ("waiting", "waiting", WHY): 2000})
def ran_and_read(s):
    for n in range(3):
        s.sample(s.end + 10000 * (n + 1), 10000, TOKENIZE)
    s.os("read", FILE, s.end + 31000, 8000, PUT, "/data/a.bin")
    s.next(40000, ran=30000)


@scene(rows={("host", "running", LINES[TOKENIZE]): 20000, ("host", "running", RAN): 10000,
             ("preempted", "preempted", "others had the processors"): 10000})
def ran_in_part_unseen(s):
    s.sample(s.end + 10000, 10000, TOKENIZE, count=2)
    s.next(40000, ran=30000, delay=10000)


@scene(rows={("host", "running", LINES[TOKENIZE]): 10000, ("host", "unknown", NOWHERE): 30000})
def no_look(s):
    s.sample(s.end + 10000, 10000, TOKENIZE)
    s.next(40000)


@scene(rows={("host", "running", LINES[TOKENIZE]): 30000, ("host", "running", LINES[SPIN]): 10000})
def more_samples_than_time(s):
    """They stand for what is before them, too: each has its part of the time."""
    for n in range(3):
        s.sample(s.end + 10000 * (n + 1), 20000, TOKENIZE)
    s.sample(s.end + 39000, 20000, SPIN)
    s.next(40000, ran=40000)


@scene(rows={("waiting", "GIL", f"held by thread {WORKER} (autograd) in {LINES[SPIN]}"): 25000,
             ("host", "running", LINES[TOKENIZE]): 15000})
def waited_for_the_gil(s):
    s.gil(s.end + 5000, 25000, WORKER)
    s.sample(s.end + 20000, 10000, SPIN, thread=OTHER)
    s.sample(s.end + 4000, 10000, TOKENIZE)
    s.sample(s.end + 39000, 10000, TOKENIZE)
    s.next(40000, ran=15000)


@scene(rows={("waiting", "GIL", "held by a thread that is not known"): 25000,
             ("waiting", "waiting", WHY): 15000})
def waited_for_the_gil_of_nobody_known(s):
    s.gil(s.end + 5000, 25000, 0)
    s.next(40000, ran=0)


@scene(rows={("waiting", "stop of the world", LINES[PUT]): 25000,
             ("waiting", "waiting", WHY): 15000})
def was_stopped_with_all_threads(s):
    s.gil(s.end + 5000, 25000, 0, code=2, stack=PUT)
    s.next(40000, ran=0)


@scene(rows={("host", "garbage collection", "generation 2 in " + LINES[PUT]): 30000,
             ("host", "running", LINES[TOKENIZE]): 10000})
def collected(s):
    """What runs in a collection is that, and a wait for the GIL around an OS call is one."""
    s.gc(s.end + 5000, 30000, PUT)
    for at in 4000, 10000, 20000, 30000:
        s.sample(s.end + at, 10000, TOKENIZE)
    s.next(40000, ran=40000)


@scene(rows={("waiting", "lock", "pthread_mutex_lock in " + LINES[PUT]): 10000,
             ("waiting", "condition", "sem_wait in " + LINES[PUT]): 12000,
             ("waiting", "sleep", "clock_nanosleep"): 8000, ("waiting", "GIL", "held by a thread "
                                                             "that is not known"): 3000,
             ("waiting", "waiting", WHY): 7000})
def waited_in_turn(s):
    s.os("pthread_mutex_lock", LOCK, s.end + 1000, 10000, PUT)
    s.os("sem_wait", SEMAPHORE, s.end + 12000, 12000, WAIT)  # threading's condition
    s.os("clock_nanosleep", SLEEP, s.end + 25000, 11000)
    s.gil(s.end + 33000, 3000, 0)
    s.next(40000, ran=0)


@scene(rows={("waiting", "sleep", LINES[PUT]): 20000, ("waiting", "page fault", LINES[SPIN]): 5000,
             ("waiting", "GIL", f"held by thread {WORKER} (autograd) in {LINES[SPIN]}"): 5000,
             ("waiting", "waiting", WHY): 10000})
def looked_at_by_another_thread(s):
    for n in range(4):
        s.look(s.end + 5000 * (n + 1), 5000, "S", PUT, call=230)
    s.look(s.end + 25000, 5000, "D", SPIN)
    s.look(s.end + 30000, 5000, "S", PUT, call=202, holder=WORKER, holder_stack=SPIN)
    s.next(40000, ran=0)


BY_QUOTA = "by the quota of its control group"


@scene(rows={("preempted", "throttled", BY_QUOTA): 20000, ("waiting", "file", "read"): 5000,
             ("preempted", "preempted", "others had the processors"): 5000,
             ("host", "running", LINES[TOKENIZE]): 10000})
def throttled(s, old=False):
    """It was not stopped while it waited for itself, nor for longer than it could have run."""
    s.stop(s.end + 1000, 15000, 15000, old)
    s.os("read", FILE, s.end + 17000, 5000)
    s.stop(s.end + 20000, 10000, 5000, old)
    s.sample(s.end + 39000, 10000, TOKENIZE)
    s.next(40000, ran=10000, delay=25000)


@scene(rows={("preempted", "throttled", BY_QUOTA): 20000, ("waiting", "file", "read"): 5000,
             ("preempted", "preempted", "others had the processors"): 5000,
             ("host", "running", LINES[TOKENIZE]): 10000})
def throttled_in_a_file_of_before(s):
    throttled(s, old=True)


@scene(rows={("host", "throttled", BY_QUOTA): 15000, ("host", "running", LINES[TOKENIZE]): 10000,
             ("host", "unknown", NOWHERE): 15000})
def throttled_where_nothing_else_is_known(s):
    s.stop(s.end + 1000, 15000, 15000)
    s.sample(s.end + 39000, 10000, TOKENIZE)
    s.next(40000)


@scene(rows={("host", "preempted", LINES[SPIN]): 12000, ("host", "running", LINES[SPIN]): 18000,
             ("host", "unknown", NOWHERE): 10000})
def looks_that_say_who_was_kept_from_running(s):
    """Less than a tenth of a look is not told apart."""
    s.look(s.end + 20000, 20000, "R", SPIN, ran=8000, delay=12000)
    s.look(s.end + 30000, 10000, "R", SPIN, ran=9500, delay=500)
    s.next(40000)


@scene(rows={("host", "page fault", "pages touched first in " + LINES[SPIN]): 11500,
             ("host", "running", LINES[TOKENIZE]): 18500,
             ("waiting", "page fault", "read from a file or swap in " + LINES[PUT]): 10000})
def looks_that_count_faults(s):
    """Beside samples, and never more than it ran."""
    for n in range(3):
        s.sample(s.end + 10000 * (n + 1), 10000, TOKENIZE)
    s.look(s.end + 10000, 10000, "R", SPIN, ran=10000, faults=1_000_000)
    s.look(s.end + 20000, 10000, "R", SPIN, ran=10000, faults=3000)
    s.look(s.end + 25000, 10000, "R", SPIN, ran=10000, faults=1000)
    s.look(s.end + 40000, 10000, "D", PUT, major=3)
    s.next(40000, ran=30000)


@scene(rows={("host", "running", "in no sample: its thread blocks their signal"): 30000,
             ("waiting", "waiting", WHY): 10000})
def blocks_the_signal(s):
    s.sample(s.end + 40000, 30000, flags=8)
    s.next(40000, ran=30000)


@scene(rows={("loader", "poll", "poll in " + LINES[PUT]): 15000,
             ("loader", "running", LINES[TOKENIZE]): 10000,
             ("loader", "unknown", NOWHERE): 4990, ("host", "unknown", NOWHERE): 5})
def loaded(s):
    s.now = s.end + 5
    s.range("load_data", 29990)
    s.os("poll", POLL, s.end + 10, 15000, PUT)
    s.sample(s.end + 20000, 10000, TOKENIZE)
    s.next(29996)


OTHERS = "others had the processors"


@scene(rows={("loader", "running", LINES[TOKENIZE]): 10000, ("loader", "waiting", WHY): 18000,
             ("loader", "preempted", OTHERS): 12000})
def loaded_while_others_had_the_processors(s):
    """The silence says for how long, whichever the cause is."""
    s.sample(s.end + 20000, 10000, TOKENIZE)
    s.now = s.end
    s.range("load_data", 40000)
    s.next(40000, ran=10000, delay=12000)


@scene(rows={("loader", "preempted", OTHERS): 12000, ("loader", "unknown", NOWHERE): 10000})
def loaded_with_a_call_in_between(s):
    """Only of the time before that call is it known."""
    s.os("read", FILE, s.end - 50, 10)
    s.now = s.end
    s.range("load_data", 22000)
    s.now = s.end + 12000
    s.add("silence", MAIN, s.now, 0, args=(12000 * US, 12000 * US, 0, 12000 * US + 1))
    s.call("cudaEventRecord", 1)
    s.next(22000)


def test_start_up_is_split_by_what_silences_say(run_verb, make_records):
    """Of the 40 ms before the first work; nothing is known of those before that call."""
    s = Host.__new__(Host)
    Script.__init__(s, RANK, now=60_000)
    s.functions = {}
    s.call("cudaMalloc", 100)
    s.os("read", FILE, 60_010, 10)
    s.now += 40_000
    s.add("silence", MAIN, s.now, 0, args=(40_000 * US, 40_000 * US, 20_000 * US, 12_000 * US + 1))
    s.launch()
    rows = json.loads(run_verb("report", "--format=json", "--table=idle_host",
                               make_records(s.text())).stdout)["idle_host"]
    assert {row["cause"] for row in rows} == {"start-up"}
    found = {row["did"]: row["total_ns"] for row in rows}
    assert (found["running"], found["waiting"], found["preempted"]) == \
        (20_000 * US, 8_000 * US, 12_000 * US)


@pytest.mark.parametrize("name", SCENES)
def test_gap_is_split_by_what_the_thread_did(name, told):
    script = Host()
    SCENES[name](script)
    assert told(script) == SCENES[name].wanted


# ---- findings ----------------------------------------------------------------------------------

@pytest.fixture(name="found")
def fixture_found(run_verb, make_records):
    """found(LINES, ...): the findings of a report on these, and its first screen."""
    def found(*lines):
        folder = make_records(line for one in lines for line in one)
        rows = json.loads(run_verb("report", "--format=json", "--table=findings",
                                   folder).stdout)["findings"]
        return {row["id"]: row for row in rows}, run_verb("report", folder).stdout
    return found


def slow(script, act, times=5):
    for _ in range(times):
        act(script)
    return script.text()


def tokenizes(s):
    """Of 78 ms four samples of 16 ms are in one line, and one in another."""
    for n in range(4):
        s.sample(s.end + 16000 * (n + 1), 15600, TOKENIZE)
    s.sample(s.end + 70000, 15600, SPIN)
    s.next(78000, ran=78000)


def test_the_first_screen_ends_in_the_line(found):
    rows, screen = found(slow(Host(), tokenizes))
    row = rows["host-bound"]
    assert row["next"].startswith("gpuprof report --table=idle_host ")
    assert [(one["name"], one["did"], one["ns"]) for one in row["evidence"]] == [
        (LINES[TOKENIZE], "running", 312_000 * US), (LINES[SPIN], "running", 78_000 * US)]
    assert row["where"] == LINES[TOKENIZE]
    assert f"\n{'':33}for {LINES[TOKENIZE]}: 312.000 ms of 390.000 ms sampled there\n" in screen
    assert f"next: {row['next']}" in screen


def test_without_samples_it_says_how_to_get_the_line(found):
    rows, screen = found(slow(Host(), lambda s: s.next(78000, ran=78000)))
    assert rows["host-bound"]["next"] == "gpuprof run --sample --os PROGRAM"
    assert "next: gpuprof run --sample --os PROGRAM" in screen


@pytest.mark.parametrize("act, name", (
    (lambda s: s.os("clock_nanosleep", SLEEP, s.end, 78000, PUT), "sleep: clock_nanosleep in "),
    (lambda s: s.os("wait4", CHILD, s.end, 78000, PUT), "child process: wait4 in ")))
def test_who_sleeps_is_the_programs_own_code(found, act, name):
    def one(s):
        act(s)
        s.next(78000, ran=0)
    rows, screen = found(slow(Host(), one))
    assert rows["host-bound"]["evidence"][0]["name"] == name + LINES[PUT]
    assert f"for {name}{LINES[PUT]}: 390.000 ms of 390.000 ms\n" in screen


@pytest.mark.parametrize("act", (
    lambda s: s.os("sem_wait", SEMAPHORE, s.end, 78000, WAIT),
    lambda s: s.os("poll", POLL, s.end, 78000, PUT),
    lambda s: s.os("recv", SOCKET, s.end, 78000, PUT),
    lambda s: s.os("read", FILE, s.end, 78000, PUT, "pipe:[4711]"),
    lambda s: s.os("read", FILE, s.end, 78000, PUT, "127.0.0.1:80"),
    lambda s: s.look(s.end + 78000, 78000, "S", PUT, call=READ),
    lambda s: s.look(s.end + 78000, 78000, "S", PUT)))
def test_who_waits_for_others_is_not_blamed(found, act):
    """A server without requests, a queue that is empty."""
    def one(s):
        act(s)
        s.next(78000, ran=0)
    rows, _ = found(slow(Host(), one))
    assert not rows


def loads(s):
    s.now = s.end + 1
    s.range("load_data", 77990)
    s.os("poll", POLL, s.end + 2, 77980, PUT)
    s.next(77995)


@pytest.mark.parametrize("ran, wanted", ((70, "few-loader-workers"), (40, "slow-loader")))
def test_workers_of_the_loader(found, ran, wanted):
    """Only busy ones are too few."""
    lines = slow(Host(), loads)
    for rank in 1, 2:
        worker = Script(rank, now=1000)
        worker.lines = []
        for n in range(10):
            worker.add("sample", MAIN, 1000 + 40_000 * n, 0,
                       args=(ran * 400 * US, 0, 0, 0, 0, 0, 0))
        worker.add("sample", MAIN, 400_000, 0, args=(1, 0, 0, 0, 0, 0, 0))
        text = worker.text()
        lines += [f"{text[0]} of {RANK}", *text[1:]]
    rows, screen = found(lines)
    row = rows.pop(wanted)
    assert row["ns"] == pytest.approx(390_000 * US, rel=0.01) and not rows
    if wanted == "slow-loader":
        assert row["evidence"][0]["name"] == f"poll: poll in {LINES[PUT]}"
    else:
        assert row["evidence"][0]["name"] == \
            f"busy workers: 2 workers, busy for 70% of their time in {LINES[PUT]}"
        assert "for busy workers: 2 workers" in screen


@pytest.mark.parametrize("stopped, wanted", ((70000, ["cpu-quota"]), (4000, []), (0, [])))
def test_quota(found, stopped, wanted):
    """Others have the processors, too."""
    def one(s):
        s.stop(s.end + 2, 76000, stopped)
        s.next(78000, ran=0, delay=78000)
    lines = slow(Host(), one)
    rows, _ = found([lines[0], "meta cpu_throttled=90 100 1500", *lines[1:]])
    assert list(rows) == wanted
    for row in rows.values():
        assert row["ns"] == pytest.approx(5 * stopped * US, rel=0.01)
        assert row["evidence"][0]["name"] == \
            "throttled: a quota of 1.50 processors, used up in 90% of its periods"


def test_sql_and_page_have_it(run_verb, make_records, tmp_path):
    data = make_records(slow(Host(), tokenizes))
    run_verb("export", "-o", tmp_path / "a.sqlite", data)
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as base:
        assert base.execute("SELECT cause, did, place, total_ns FROM GPUPROF_IDLE_HOST "
                            "ORDER BY total_ns DESC").fetchall()[0] == \
            ("host", "running", LINES[TOKENIZE], 312_000 * US)
    run_verb("report", "-o", tmp_path / "page.html", data)
    assert '"idle_host"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_parts_say_the_same(run_verb, make_records, tmp_path):
    scripts = [Host(RANK + number) for number in range(2)]
    lines = [line for script in scripts for line in slow(script, tokenizes)]
    data = make_records(lines)
    check_equal(run_verb, data, make_parts(run_verb, data, 2))


# ---- programs with one fault ------------------------------------------------------------------

PROGRAM = toolchain.SOURCES / "host_faults.py"
BURNS = "import time\nend = time.thread_time() + 0.3\nwhile time.thread_time() < end:\n    pass\n"
SLEEPS = "import time\ntime.sleep(0.8)\n"
SLOW = "import time\nend = time.monotonic() + 0.05\nwhile time.monotonic() < end:\n    pass\n"
# What the thread did, by the report; the finding that says so.
FAULTS = {"loop": ("running", "host-bound"), "gil": ("GIL", "gil-contention"),
          "lock": ("lock", "lock-wait"), "file": ("file", "blocking-io"),
          "gc": ("garbage collection", "gc-pauses"), "sleep": ("sleep", "host-bound"),
          "child": ("child process", "host-bound"),
          "import": ("import", None), "workers": ("busy workers", "few-loader-workers"),
          "remote": ("pipe", "slow-loader")}


def patient(test):
    """Until the machine lets the program be: it may be busy."""
    @functools.wraps(test)
    def attempt(*arguments, **fixtures):
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return test(*arguments, **fixtures)
        return test(*arguments, **fixtures)
    return attempt


@pytest.fixture(name="faulty")
def fixture_faulty(library, run_collector, tmp_path):
    """faulty(FAULT): what a report says of the program, and for how many ns it was in its fault."""
    def faulty(fault, **options):
        faulty.folder = folder = pathlib.Path(tempfile.mkdtemp(dir=tmp_path))
        os.mkfifo(folder / "fifo")
        for number in range(1, 7):
            (folder / f"slow{number}.py").write_text(SLOW)
        (folder / "burner.py").write_text(BURNS)
        (folder / "sleeper.py").write_text(SLEEPS)
        libraries = f"{library} {conftest.built(conftest.BUILD / 'libgpuprof-os.so')}"
        env = toolchain.environment(
            folder / "data", libraries, GPUPROF_GPU="on", GPUPROF_SAMPLE=100, GPUPROF_GAPS="on",
            GPUPROF_OS="100us", HOST_FAULTS=folder, PYTHONPATH=folder,
            PYTHONDONTWRITEBYTECODE=1, GPUPROF_CUPTI=toolchain.SIM / cupti.VERSIONS["12.4"][0])
        done = toolchain.run(["/usr/bin/python3", PROGRAM, fault, 5], env, **options)
        told = run_collector("report", "--format=json", "--table=gpu_time,idle_host,findings",
                             folder / "data").stdout
        return json.loads(told), int(done.stdout)
    return faulty


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
@pytest.mark.parametrize("fault", FAULTS)
@patient
def test_program_with_one_fault(faulty, fault):
    """Four fifths of the time in which the thread was not kept from its processor are at the line,
    and they are what the program itself says, within a tenth."""
    told, spent = faulty(fault)
    did, finding = FAULTS[fault]
    rows = [row for row in told["idle_host"] if row["cause"] != "start-up"]
    kept = sum(row["total_ns"] for row in rows if row["did"] == "preempted")
    there = [row for row in rows if row["did"] == did]
    ns = sum(row["total_ns"] for row in there)
    # A sample is of 10 ms: of the little time that a busy machine leaves there are few.
    slack = 30_000_000 if fault in ("loop", "import") else 0
    assert ns + slack >= 0.8 * (sum(row["total_ns"] for row in rows) - kept)
    # Who starts a process makes it first, and the thread without the GIL sleeps and runs, too.
    least = 0.75 if fault in ("gil", "child", "file") else 0.9
    assert least * spent < ns + kept + slack
    assert ns < 1.1 * spent
    lines = {number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
             if f"# {fault}" in line}
    at = sum(row["total_ns"] for row in there
             if any(f"(host_faults.py:{line})" in row["place"] for line in lines))
    if fault == "gil":  # the line is the holder's
        assert all("held by thread " in row["place"] for row in there if row["total_ns"] > ns / 10)
    elif slack:
        name = "slow" if fault == "import" else fault
        own = [row for row in there if row["place"].startswith(name)]
        assert sum(row["total_ns"] for row in own) + slack >= 0.8 * ns
    else:
        assert at > 0.8 * ns
    if finding and kept < spent / 3:
        found = {row["id"]: row for row in told["findings"]}
        assert found[finding]["evidence"][0]["did"] == did


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
@patient
def test_program_that_imports_for_long(faulty, run_collector):
    """Before its first call of CUDA: one module uses a processor, the other one waits."""
    told, spent = faulty("modules")
    finding, = (row for row in told["findings"] if row["id"] == "slow-import")
    assert 0.8 * 1.1e9 < finding["ns"] < 1.1 * spent
    modules = {}
    for row in told["idle_host"]:
        if row["did"] == "import":
            name, _, _ = row["place"].partition(" in ")
            modules[name] = modules.get(name, 0) + row["total_ns"]
    assert modules["sleeper"] == pytest.approx(0.8e9, rel=0.1)
    assert modules["burner"] == pytest.approx(0.3e9, abs=60_000_000)
    assert finding["evidence"][0]["name"].startswith("import: sleeper in ")
    imports = json.loads(run_collector("report", "--format=json", "--table=imports",
                                       faulty.folder / "data").stdout)["imports"]
    assert [pathlib.Path(row["file"]).name for row in imports[:2]] == ["sleeper.py", "burner.py"]


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
@patient
def test_program_that_touches_memory(faulty, run_collector):
    """As long as its pages take here at least, which is some of the time."""
    told, spent = faulty("touch")
    said = run_collector("dump", faulty.folder / "data").stdout
    ns = int(re.search(r'"page_fault_ns=(\d+)"', said)[1])
    rows = [row for row in told["idle_host"] if row["did"] == "page fault"]
    least = 5 * (32 << 20) / mmap.PAGESIZE * ns
    assert 0.3 * least < sum(row["total_ns"] for row in rows) < min(1.1 * least, spent)
    assert all(row["place"].startswith("pages touched first in touch (") for row in rows)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
@pytest.mark.parametrize("fault", ("nothing", "module", "quick"))
@patient
def test_program_without_a_fault(faulty, fault):
    told, _ = faulty(fault)
    assert not told["findings"]


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
def test_program_with_a_quota(faulty, tmp_path):
    """A tenth of a processor, which a control group says."""
    old = pathlib.Path("/sys/fs/cgroup/cpu")
    group = (old if old.is_dir() else old.parent) / f"gpuprof-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("not run: no control group can be made here")
    try:
        name, text = ("cpu.cfs_quota_us", "10000") if old.is_dir() else ("cpu.max", "10000 100000")
        if not (group / name).exists():
            pytest.skip("not run: control groups here have no quota")
        (group / name).write_text(text)
        told, _ = faulty("loop", preexec_fn=lambda: (group / "cgroup.procs").write_text("0"))
        stat = (group / "cpu.stat").read_text()
    finally:
        group.rmdir()
    row, = (row for row in told["findings"] if row["id"] == "cpu-quota")
    evidence, = row["evidence"]
    assert evidence["did"] == "throttled"
    unit, stopped = re.search(r"throttled_(time|usec) (\d+)", stat).groups()
    stopped = int(stopped) * (1000 if unit == "usec" else 1)  # while it began, too
    assert 0.15 * stopped < evidence["ns"] == row["ns"] <= stopped
    assert re.match(r"throttled: a quota of 0\.10 processors, used up in \d+% of its periods$",
                    evidence["name"])
