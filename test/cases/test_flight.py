# SPDX-License-Identifier: Apache-2.0
"""The flight recorder, --flight: only the last is kept, and written when something happens. The
program says what it did and when; the second reader says what is there, also of a killed one."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import conftest
import pytest
import stream_reader
import toolchain

LIMIT = 60
END, KILL, ASKED, CONTROL, SIGNAL, ERROR, MEMORY, STEP, IDLE = range(1, 10)
QUICK = {"FLIGHT": "1s", "SEAL": "20ms"}  # segments of a third of a second


class Flight:
    """flight_work: says a word at a time, and keeps the book that the recorder should have."""

    def __init__(self, folder, library, live, settings, before=()):
        settings = dict(settings)
        others = settings.pop("env", {})
        settings = {f"GPUPROF_{name}": value for name, value in settings.items()} | others
        env = toolchain.environment(folder, library, GPUPROF_LIVE=live,
                                    LD_LIBRARY_PATH=str(toolchain.SIM), **settings)
        program = toolchain.build("flight_work.c", *toolchain.runtime(12),
                                  f"-I{conftest.ROOT / 'inject/range'}")
        self.folder = folder
        self.program = conftest.Program([*before, program], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said, self.held, self.open = [], {1 << 20}, []

    def say(self, *words):
        for word in words:
            self.program.stdin.write(f"{word}\n")
            self.program.stdin.flush()
            assert self.program.stdout.readline() == f"{word}\n", self.program.stderr.read()
            self.said.append(word)
            if word[0] == "a":
                self.held ^= {int(word[1:])}
            elif word[0] == "(":
                self.open.append(word[1:])
            elif word[0] == ")":
                self.open.pop()

    @property
    def sizes(self):
        return [int(word[1:]) for word in self.said if word[0] == "s"]

    def end(self):
        _, self.errors = self.program.communicate(timeout=LIMIT)
        assert self.program.returncode == 0, self.errors
        return self.read()

    def kill(self):
        self.program.kill()
        self.program.wait()
        return self.read()

    def read(self):
        [process] = stream_reader.read_folder(self.folder)
        return process


@pytest.fixture(name="fly")
def fixture_fly(library, tmp_path):
    with contextlib.ExitStack() as stack:
        def start(**settings):
            its = Flight(tmp_path / "out", library, tmp_path, settings or QUICK)
            stack.enter_context(its.program)
            return its
        yield start


@pytest.fixture(name="report")
def fixture_report(collector, tmp_path):
    def report(*words):
        done = subprocess.run([collector, "report", *words, tmp_path / "out"], check=True,
                              capture_output=True, text=True, timeout=LIMIT)
        return done.stdout
    return report


def sizes(process):
    return [c.args["bytes"] for c in process.calls() if c.symbol == "cudaMemset"]


def dumps(process):
    """(reason, begin, end, text) in order; times in ns."""
    found = sorted(process.of_type(stream_reader.DUMP), key=lambda r: r.args[0])
    assert [r.args[0] for r in found] == list(range(1, len(found) + 1))
    return [(r.args[1], r.args[5], r.begin, r.text.decode()) for r in found]


def held(process):
    """What the records say was got and not given back: sizes, by address."""
    book = {}
    for call in sorted(process.calls(), key=lambda c: c.begin):
        if call.symbol == "cudaMalloc" and call.result == 0:
            assert call.args["ptr"] not in book
            book[call.args["ptr"]] = call.args["bytes"]
        elif call.symbol == "cudaFree":
            del book[call.args["ptr"]]
    return set(book.values())


def still_open(process):
    names = []
    for record in sorted(process.records, key=lambda r: r.begin):
        if record.type == stream_reader.PUSH:
            names.append(record.text.decode())
        elif record.type == stream_reader.POP:
            names.pop()
    return names


def pace(flight, count, first, nap=100):
    """A copy every `nap` ms, each with a size of its own."""
    for number in range(first, first + count):
        flight.say(f"s{number}", f"n{nap}")


def is_run(numbers):
    return numbers == list(range(numbers[0], numbers[-1] + 1))


def test_nothing_on_disk_before_the_end(fly, tmp_path):
    flight = fly(FLIGHT="30s", SEAL="20ms")
    pace(flight, 5, 1)
    [stream] = (tmp_path / "out").glob("*.gpuprof")
    assert stream.stat().st_size < 2048  # its header
    process = flight.end()
    assert sizes(process) == flight.sizes and not process.losses
    [(reason, begin, _, _)] = dumps(process)
    assert (reason, begin) == (END, 0) and process.end_reason == 1
    assert not list(tmp_path.glob("*.live"))


def test_last_seconds_of_a_killed_program(fly, report, tmp_path):
    """The window is whole, and what was open and held before it is known."""
    flight = fly(**QUICK, BACKTRACE_THRESHOLD="off")  # all blocks in one row
    flight.say("a100", "(outer", "a200", "a300", "a200", "(inner", ")", "s1")
    pace(flight, 30, 2)
    before = flight.kill()
    for process in (before, None):
        if not process:  # the collector takes it out of the live file; the same is there
            text = report()
            process = flight.read()
            assert "the process was killed" in text and "lost       nothing" in text
            [(reason, begin, _, _)] = dumps(process)
            assert reason == KILL and begin > 0
            windows = [tuple(r.args[:2]) for r in process.of_type(stream_reader.WINDOW)]
            assert sorted(windows) == [(0, 0), (1, 1)]
        copies = sizes(process)
        assert is_run(copies) and copies[-1] == 31 and 8 < len(copies) < 25
        assert held(process) == flight.held == {1 << 20, 100, 300}
        assert still_open(process) == flight.open == ["outer"]
    names = json.loads(report("--format=json"))
    assert [d["reason"] for d in names["dumps"]] == [KILL]
    text = subprocess.run([conftest.BUILD / "gpuprof-collector", "memory", tmp_path / "out",
                           "--at=end"], capture_output=True, text=True, check=True).stdout
    assert "100.0%        3    1.0 MiB device  cudaMalloc\n" in text, text


def test_short_one_keeps_little_more(fly, report):
    """Though a thread's calls are stored once a second: of four parts of a third of a second each
    there are three at least; a part is a tenth of a second longer at most, unless this machine is
    busy. Steps are whole but for those that begin before it, or had not ended."""
    flight = fly(FLIGHT="1s")
    for number in range(40):
        flight.say(f"t{number}", f"s{number}", "n100")
    flight.kill()
    steps = json.loads(report("--table=steps", "--format=json"))["steps"]
    process = flight.read()
    [(reason, begin, end, _)] = dumps(process)
    assert reason == KILL and 10 ** 9 <= end - begin < 2.4 * 10 ** 9
    whole = [step["step"] for step in steps if not step["partial"]]
    assert is_run(whole) and whole[-1] == 38 and 8 <= len(whole) <= 24
    assert len(steps) - 2 <= len(whole) and steps[-1]["partial"]
    marks = {r.args[0]: r.begin for r in process.of_type(stream_reader.STEP)}
    assert [number for number in whole if marks[number] < begin] == []


@pytest.mark.parametrize("calls", [30, 30000])
@pytest.mark.parametrize("waits", [False, True])
def test_a_long_sleep_before_a_kill(fly, report, run_collector, calls, waits):
    """What was stored before it and let go does not come back out of the live file, where it still
    lies, and is no loss, whether the thread has had one chunk or many; the call that it may be in
    is there."""
    flight = fly()
    flight.say("a100", "a200", "a100", "(outer", f"b{calls}", "s7")
    if waits:
        flight.program.stdin.write("w60000\n")
        flight.program.stdin.flush()
    time.sleep(2.5)
    flight.program.kill()
    flight.program.wait()
    for recover in (False, True):
        if recover:
            run_collector("recover", flight.folder)
        told = json.loads(report("--format=json", "--table=functions"))
        assert "  lost       nothing" in report()
        process = flight.read()
        assert not process.losses
        assert {row["function"]: row["calls"] for row in told["functions"]} == \
            {"cudaMalloc": 2} | ({"cudaDeviceSynchronize": 1} if waits else {})
        assert held(process) == flight.held and still_open(process) == ["outer"]
        [(reason, begin, end, _)] = dumps(process)
        assert reason == KILL and 10 ** 9 <= end - begin < 2.4 * 10 ** 9
        assert not sizes(process)


def test_dumps_with_and_without_a_gap(fly):
    """What a dump has is not written again; what came between two is known as far as it counts."""
    flight = fly()
    flight.say("a100", "(first", "s1", "dwhy one")
    pace(flight, 3, 2)
    flight.say("dwhy two", "n200")  # follows the first
    pace(flight, 16, 5)             # what comes first of it is let go
    flight.say("a100", ")", "a400", "(second")
    pace(flight, 20, 30)
    flight.say("dwhy three")
    pace(flight, 2, 50)
    process = flight.end()
    found = dumps(process)
    assert [d[0] for d in found] == [ASKED, ASKED, ASKED, END]
    assert [d[3] for d in found] == ["why one", "why two", "why three", ""]
    copies = sizes(process)
    gap = max(range(1, len(copies)), key=lambda i: copies[i] - copies[i - 1])
    assert is_run(copies[:gap]) and is_run(copies[gap:]) and copies[gap] > 30
    assert copies[0] == 1 and copies[gap - 1] == 4 and copies[-1] == 51
    assert held(process) == flight.held and still_open(process) == flight.open
    assert found[1][1] < found[1][2] < found[2][1]


@pytest.mark.parametrize("seed", [5] if not os.environ.get("GPUPROF_LONG") else range(5, 40))
def test_random_programs(fly, report, seed):
    """At a kill in any moment: each window is whole, and what is open and held is right."""
    chance = random.Random(seed)
    flight, number = fly(), 1
    until = time.monotonic() + 3
    while time.monotonic() < until:
        word = chance.choices(["s", "a", "(", ")", "n", "d"], [30, 10, 5, 5, 30, 1])[0]
        if word == ")" and not flight.open:
            continue
        flight.say({"s": f"s{number}", "a": f"a{chance.randrange(100, 120)}", "(": f"({number}",
                    ")": ")", "n": f"n{chance.randrange(40)}", "d": f"d{number}"}[word])
        number += word == "s"
    flight.kill()
    report()
    process = flight.read()
    assert held(process) == flight.held and still_open(process) == flight.open
    windows = dumps(process)
    assert windows[-1][0] == KILL
    calls = [c for c in process.calls() if c.symbol == "cudaMemset"]
    for _, begin, end, _ in windows[:-1]:
        inside = [c.args["bytes"] for c in calls if begin <= c.begin < end]
        assert not inside or is_run(inside)
    assert is_run([c.args["bytes"] for c in calls if c.begin >= windows[-1][1]] or [0])
    assert calls[-1].args["bytes"] == flight.sizes[-1]


def wait_for(count, flight, seconds=10):
    """Until so many dumps are in the stream file."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if len(dumps(flight.read())) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(dumps(flight.read()))


@pytest.mark.parametrize("words, settings, reason, said", [
    (["s1", "e"], {}, ERROR, "cudaMemcpy returned 21 (cudaErrorInvalidMemcpyDirection)"),
    (["s1", "m"], {}, MEMORY, "out of memory: cudaMalloc"),
    (["s1", "k"], {"DUMP_SIGNAL": signal.SIGUSR1.value}, SIGNAL, "a signal asked for it"),
    (["b10", *[w for i in range(12) for w in (f"t{i}", "n5")], "n100", "t12"],
     {"DUMP_STEP": 5}, STEP, "a step was slow: step 11 took "),
    (["b10", *[w for i in range(12) for w in (f"(it{i}", "n5", ")")], "n100", "(it12"],
     {"DUMP_STEP": 5, "STEP_BY": "it*"}, STEP, "a step was slow: step 11 took "),
    (["l", "n300"], {"DUMP_IDLE": "200ms"}, IDLE, "nothing was launched for "),
], ids=["error", "memory", "signal", "step", "range", "idle"])
def test_triggers(fly, report, words, settings, reason, said):
    flight = fly(FLIGHT="30s", SEAL="20ms", **settings)
    flight.say(*words)
    wait_for(1, flight)
    flight.kill()
    text = report("--table=dumps")
    assert dumps(flight.read())[0][0] == reason
    assert said in text, text


def test_triggers_are_quiet_otherwise(fly):
    """None of them where none was asked for, and not again and again for the same reason."""
    flight = fly(FLIGHT="30s", SEAL="20ms", DUMP_ON="none")
    flight.say("s1", "e", "m", *[w for i in range(12) for w in (f"t{i}", "n1")], "n100", "t12")
    assert [d[0] for d in dumps(flight.end())] == [END]


def test_reason_found_at_the_end(fly):
    """The program is over before its error is stored: the last dump says so."""
    flight = fly(FLIGHT="30s")
    flight.say("s1", "e")
    assert [d[0] for d in dumps(flight.end())] == [ERROR]


def test_storm_of_errors_is_one_dump(fly):
    flight = fly(FLIGHT="30s", SEAL="20ms")
    flight.say(*["e", "n30"] * 10)
    assert [d[0] for d in dumps(flight.end())] == [ERROR, END]


def test_limit(fly):
    flight = fly(FLIGHT="30s", SEAL="20ms", DUMP_LIMIT=2)
    for number in range(4):
        flight.say(f"s{number}", f"d{number}", "n150")
    process = flight.end()
    assert [d[0] for d in dumps(process)] == [ASKED, ASKED, END]
    assert process.meta["dumps_refused"] == "2"
    assert sizes(process) == flight.sizes


def test_ctl(fly, collector):
    flight = fly(FLIGHT="30s", SEAL="20ms")
    flight.say("s1")
    done = subprocess.run([collector, "ctl", flight.folder, "dump"], capture_output=True, text=True,
                          check=True, timeout=LIMIT)
    assert "its flight recorder has written 1 dump" in done.stdout
    assert [d[0] for d in dumps(flight.read())][:1] == [CONTROL]
    assert [d[0] for d in dumps(flight.end())] == [CONTROL, END]


def test_ctl_without_one(fly, collector):
    flight = fly(SEAL="20ms")
    flight.say("s1")
    done = subprocess.run([collector, "ctl", flight.folder, "dump"], capture_output=True, text=True,
                          check=False, timeout=LIMIT)
    assert done.returncode == 1 and "gpuprof run --flight" in done.stdout
    assert not flight.end().of_type(stream_reader.DUMP)


def test_fork(fly):
    """The child has a recorder of its own."""
    flight = fly(FLIGHT="30s", SEAL="20ms", DUMP_ON="none")  # CUDA refuses all in a child
    flight.say("s1", "a100", "f", "s2", "dchild", "s3")
    flight.program.communicate(timeout=LIMIT)
    parent, child = stream_reader.read_folder(flight.folder)
    assert sizes(parent) == [1] and [d[0] for d in dumps(parent)] == [END]
    assert sizes(child) == [2, 3] and [d[0] for d in dumps(child)] == [ASKED, END]


def test_signal_that_the_program_uses(fly):
    """Its handler stays: Python has one for SIGINT."""
    flight = fly(FLIGHT="30s", DUMP_SIGNAL=signal.SIGPIPE.value)
    signal_of_it = signal.SIGPIPE  # Python ignores it, and so does what it starts
    assert signal.getsignal(signal_of_it) == signal.SIG_IGN
    flight.say("s1")
    flight.end()
    assert ("the program handles this signal itself" in flight.errors) == \
        (signal_of_it in ignored())


def ignored():
    """Signals that a program inherits as ignored from here."""
    line = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True,
                          check=True).stdout
    mask = int(line.split()[1], 16)
    return {s for s in signal.valid_signals() if mask >> (s - 1) & 1}


@pytest.mark.parametrize("setting, value, said", [
    ("FLIGHT", "3", "'3' is not a time"), ("FLIGHT", "1M", "'1M' is not a time"),
    ("FLIGHT", "30s,30s", "is not a time"), ("FLIGHT", "100h", "is not a time"),
    ("DUMP_ON", "warnings", "is not a comma-separated list of")])
def test_bad_settings(collector, setting, value, said):
    done = subprocess.run([collector, "run", f"--{setting.lower().replace('_', '-')}={value}",
                           "true"], capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_not_with_windows(collector, fly):
    done = subprocess.run([collector, "run", "--flight=30s", "--schedule=active=1", "true"],
                          capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 2 and "--flight" in done.stderr and "--schedule" in done.stderr
    flight = fly(FLIGHT="30s", DELAY="1s")
    flight.say("s1")
    flight.program.communicate(timeout=LIMIT)
    assert not flight.folder.exists() or not list(flight.folder.glob("*.gpuprof"))


@pytest.mark.parametrize("rounds", [4] if not os.environ.get("GPUPROF_LONG") else [1000])
def test_killed_in_dumps(library, collector, tmp_path, rounds):
    """In any moment of a dump: every call up to the last moments is there once."""
    chance = random.Random(rounds)
    for number in range(rounds):
        flight = Flight(tmp_path / f"out{number}", library, tmp_path,
                        {"FLIGHT": "30s", "SEAL": "20ms"})
        with flight.program:
            flight.say("b20000", "s1", "n50")
            flight.program.stdin.write("d1\nb20000\nd2\nb20000\nd3\n")
            flight.program.stdin.flush()
            time.sleep(chance.random() * 0.15)
            flight.program.kill()
        subprocess.run([collector, "report", flight.folder], check=True, capture_output=True,
                       timeout=LIMIT)
        process = flight.read()
        copies = sizes(process)
        assert copies[:20001] == [64] * 20000 + [1] and set(copies[20001:]) <= {64}
        assert dumps(process)[-1][0] == KILL and not process.losses
        done = subprocess.run([collector, "dump", flight.folder], check=True, capture_output=True,
                              text=True, timeout=LIMIT).stdout.splitlines()[-1]
        assert done.startswith("losses") and "missing" not in done and "repeat" not in done


CHANGES = 2000 if os.environ.get("GPUPROF_LONG") else 40


def test_hostile_live_file(fly, collector, tmp_path):
    """Whatever stands in the recorder's page, or where it is said to be: an answer, and no more."""
    flight = fly()
    flight.say("a100", "(outer", "s1")
    pace(flight, 14, 2)
    flight.say("d1", "n100", "s30", "n100")
    flight.kill()
    [live] = tmp_path.glob("*.live")
    [stream] = flight.folder.glob("*.gpuprof")
    with open(live, "rb") as file:
        base = int.from_bytes(os.pread(file.fileno(), 8, stream_reader.FLIGHT_AT), "little")
        page = os.pread(file.fileno(), 4096, base)
    fields = [8, 16, *range(64, 224, 8), *range(512, 544, 8), *range(576, 608, 8)]
    chance = random.Random(1)
    values = [0, 1, 2, 3, 4096, 1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 64) - 1]
    for _ in range(CHANGES):
        changed = bytearray(page)
        for _ in range(chance.randrange(1, 4)):
            at = chance.choice(fields)
            old = int.from_bytes(changed[at:at + 8], "little")
            new = chance.choice([*values, old + 1, old ^ 1 << chance.randrange(64)]) % (1 << 64)
            changed[at:at + 8] = new.to_bytes(8, "little")
        where = chance.choice([base] * 9 + [1 << 63, (1 << 64) - 1, base + 8, 1 << 40])
        with open(live, "r+b") as file:
            os.pwrite(file.fileno(), changed, base)
            os.pwrite(file.fileno(), where.to_bytes(8, "little"), stream_reader.FLIGHT_AT)
        done = subprocess.run([collector, "report", "--keep-live", stream], capture_output=True,
                              check=False, timeout=LIMIT)
        assert done.returncode in (0, 3), (done.returncode, done.stderr, changed.hex())


def test_recover(fly, collector):
    """What was taken out of the live file, and what was in its chunks: one file, like any other."""
    flight = fly(FLIGHT="30s", SEAL="20ms")
    flight.say("a100", "s1", "d1", "n100", "s2", "n100", "s3")
    flight.kill()
    verbs = [subprocess.Popen([collector, "report", flight.folder], stdout=subprocess.DEVNULL)
             for _ in range(3)]  # each takes it over
    assert [verb.wait(LIMIT) for verb in verbs] == [0, 0, 0]
    subprocess.run([collector, "recover", flight.folder], check=True, capture_output=True)
    process = flight.read()
    assert sizes(process) == [1, 2, 3] and held(process) == flight.held
    assert [d[0] for d in dumps(process)] == [ASKED, KILL] and process.end_reason == 3
    assert not list(flight.folder.glob("*.live"))


@pytest.mark.parametrize("full", ["live", "data"])
def test_no_room(library, collector, tmp_path, full):
    """In memory: less is kept, the newest, and that is said. On disk: what was not written stays in
    the live file, where the collector finds it."""
    small = tmp_path / "small"
    small.mkdir()
    size = "3m" if full == "live" else "60k"
    script = f'mount -t tmpfs -o size={size} tmpfs {small} && exec "$@"'
    mounted = ["unshare", "-m", "sh", "-c", script, "sh"]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("not run: no file system may be mounted here (unshare -m)")
    data, live = (tmp_path / "out", small) if full == "live" else (small / "out", tmp_path)
    flight = Flight(data, library, live, {"FLIGHT": "30s", "SEAL": "20ms", "BUFFER": "1M"},
                    mounted)
    with flight.program:
        for number in range(1, 17 if full == "live" else 4):
            flight.say("b300000" if full == "live" else "b60000", f"s{number}")
        if full == "data":
            root = f"/proc/{flight.program.pid}/root"  # it goes with the program
            flight.folder = tmp_path / "out"
            subprocess.run(["cp", "-r", f"{root}{data}", flight.folder], check=True)
        _, errors = flight.program.communicate(timeout=LIMIT)
    assert flight.program.returncode == 0
    if full == "live":
        process = flight.read()
        [note] = process.said
        assert errors == "" and note.startswith("--flight keeps less than its limit: ")
        [(reason, begin, _, _)] = dumps(process)
        numbers = [s for s in sizes(process) if s != 64]
        assert reason == END and begin > 0 and is_run(numbers) and numbers[-1] == 16
        assert not process.losses and held(process) == {1 << 20}
    else:
        assert "cannot write a dump to" in errors and "No space left" in errors
        done = subprocess.run([collector, "report", flight.folder], check=True, text=True,
                              capture_output=True, timeout=LIMIT)
        assert "180,003 x cudaMemset" in done.stdout
        assert [d[0] for d in dumps(flight.read())] == [KILL]
