# SPDX-License-Identifier: Apache-2.0
"""`gpuprof top`: what running processes say of themselves, beside what they were told to do, and
what the recording has of it afterwards."""

import contextlib
import json
import re
import signal
import subprocess
import time

import conftest
import pytest
import stream_reader
import test_flight
import toolchain

LIMIT = 60


@pytest.fixture(name="start")
def fixture_start(library, tmp_path):
    with contextlib.ExitStack() as stack:
        def start(before=(), **settings):
            its = test_flight.Flight(tmp_path / "out", library, tmp_path, settings, before)
            stack.enter_context(its.program)
            its.say("s64")
            return its
        yield start


@pytest.fixture(name="top")
def fixture_top(collector, tmp_path):
    def top(*words, status=0):
        done = subprocess.run([collector, "top", tmp_path / "out", *words], capture_output=True,
                              text=True, check=False, timeout=LIMIT)
        assert done.returncode == status, done
        return done.stdout if status != 2 else done.stderr
    return top


class Watch:
    """A `top` that goes on, a line of JSON each time."""

    def __init__(self, collector, folder):
        self.program = conftest.Program(
            [collector, "top", folder, "--format=json", "--interval=0.2"],
            stdout=subprocess.PIPE, text=True)

    def until(self, is_it):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            said = json.loads(self.program.stdout.readline())
            if is_it(said["processes"]):
                return said["processes"]
        raise AssertionError(said)


@pytest.fixture(name="watch")
def fixture_watch(collector, tmp_path):
    with contextlib.ExitStack() as stack:
        def watch():
            its = Watch(collector, tmp_path / "out")
            stack.enter_context(its.program)
            return its
        yield watch


def test_figures_are_what_was_done(start, watch, tmp_path):
    its = start(env={"SIMCUDA_COPY_BYTES_PER_US": "500"}, GPU="on",
                CUPTI=toolchain.SIM / "libcupti.so.12")
    assert not list(tmp_path.glob("out/*.status"))  # nobody has asked
    looks = watch()
    [row] = looks.until(lambda rows: rows[0]["calls"] is not None and rows[0]["memory_bytes"])
    assert row["state"] == "recording" and row["pid"] == its.program.pid
    assert row["memory_bytes"] == 1 << 20 and row["open_call"] is None and row["step"] is None
    its.say("a4096", "a100000", "a4096", "b100", "l", "l", "t7", "n20", "t8", "n20", "t9")
    for size in range(100000, 110000, 1000):
        its.say(f"s{size}")
    before = row["calls"]  # none, or all of the two
    [row] = looks.until(lambda rows: rows[0]["launches"] == 2)
    [row] = looks.until(lambda rows: rows[0]["gpu_busy_seconds"] > 600e-6)
    assert row["launches"] == 2 and row["memory_bytes"] == (1 << 20) + 100000
    after = row["calls"]
    assert row["steps"] == 3 and row["step"] == 9 and 0.02 <= row["step_seconds"] < 5
    its.program.stdin.write("w1600\n")
    its.program.stdin.flush()
    [row] = looks.until(lambda rows: rows[0]["open_call"])
    assert row["open_call"] == "cudaDeviceSynchronize" and 0 < row["open_call_seconds"] < 2
    assert its.program.stdout.readline() == "w1600\n"
    [row] = looks.until(lambda rows: not rows[0]["open_call"])
    its.say("x")
    [gone] = looks.until(lambda rows: rows[0]["memory_bytes"] is None)
    assert gone["gpu_busy_seconds"] == row["gpu_busy_seconds"] and gone["gpus"] == 1
    process = its.end()
    assert 2 + after - before == sum(c.symbol not in ("cudaDeviceSynchronize", "cudaLaunchHostFunc",
                                                      "cudaDeviceReset") for c in process.calls())
    busy = sum(r.duration for r in process.of_type(12)) / 1e9
    assert row["gpu_busy_seconds"] == pytest.approx(busy, abs=1e-6)
    assert looks.until(lambda rows: rows[0]["state"] == "ended")
    assert looks.program.wait(LIMIT) == 0 and looks.program.stdout.read() == ""
    assert not list(tmp_path.glob("out/*.status*"))


def test_while_recording_is_off(start, watch, top, collector, tmp_path):
    """Of the device's work nothing is known then, nor of calls: it is not said that there were
    none, nor when it goes on again."""
    its = start(env={"SIMCUDA_COPY_BYTES_PER_US": "500"}, GPU="on",
                CUPTI=toolchain.SIM / "libcupti.so.12")
    looks = watch()

    def tell(word):
        subprocess.run([collector, "ctl", tmp_path / "out", word], check=True, capture_output=True)

    def works(rows):
        its.say("b200")
        return rows[0]["gpu_busy_share"]

    [before] = looks.until(works)
    tell("stop")
    [row] = looks.until(lambda rows: works(rows) is None and rows[0]["state"] == "stopped")
    assert row["gpu_busy_seconds"] is None and row["quiet_seconds"] is None and row["gpus"] == 1
    assert row["calls_per_second"] is None and row["launches_per_second"] is None
    text = top("--once").splitlines()
    assert not {"gpu", "calls/s", "launches/s"} & set(text[0].split()) and "stopped" in text[1]
    stopped = time.monotonic()
    while time.monotonic() < stopped + 3:
        its.say("b200", "n100")
    tell("start")
    [row] = looks.until(lambda rows: rows[0]["state"] == "recording")
    assert row["gpu_busy_share"] is None and row["quiet_seconds"] < 2.5
    [row] = looks.until(lambda rows: works(rows) and rows[0]["calls_per_second"])
    assert row["quiet_seconds"] is None  # what is stored is older than now
    assert row["gpu_busy_seconds"] > before["gpu_busy_seconds"]
    its.program.send_signal(signal.SIGSTOP)
    [row] = looks.until(lambda rows: rows[0]["state"] == "no answer")
    assert row["gpu_busy_share"] is None and row["calls_per_second"] is None
    its.program.send_signal(signal.SIGCONT)
    [row] = looks.until(lambda rows: rows[0]["state"] == "recording")
    assert row["gpu_busy_share"] is None and row["calls_per_second"] is None
    assert looks.until(works)
    its.end()


@pytest.mark.long
def test_nobody_asks_any_more(start, watch, tmp_path):
    its, looks = start(), watch()
    looks.until(lambda rows: rows[0]["calls"] is not None)
    [status] = tmp_path.glob("out/*.status")
    looks.program.send_signal(signal.SIGINT)
    looks.program.wait()
    time.sleep(11.5)
    when = status.stat().st_mtime_ns
    time.sleep(1.5)
    assert status.stat().st_mtime_ns == when
    its.end()


METRIC = re.compile(r'(gpuprof_[a-z_]+)\{((?:[a-z]+="[^"\\]*",?)+)\} (-?[0-9.]+)')


def parse_openmetrics(text):
    """As the standard has it, for what is used here: name -> {labels: value}."""
    families, unit, found, family = {}, {}, {}, None
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    for line in text.splitlines()[:-1]:
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if what == "TYPE":
                assert name not in families and rest in ("gauge", "counter")
                families[name], family = rest, name
            assert name == family and what in ("TYPE", "UNIT", "HELP")
            if what == "UNIT":
                assert name.endswith(f"_{rest}")
                unit[name] = rest
            continue
        name, labels, value = METRIC.fullmatch(line).groups()
        assert name == family + ("_total" if families[family] == "counter" else "")
        labels = dict(re.findall('([a-z]+)="([^"]*)"', labels))
        key = labels.pop("rank", None), int(labels.pop("pid"))
        assert key not in found.setdefault(name, {})
        found[name][key] = float(value)
    return found


def test_openmetrics_of_ranks(start, top, tmp_path):
    first, second = start(env={"RANK": "4"}), start(env={"RANK": "11"}, FLIGHT="10s")
    third = start(CONTROL="stopped")
    deaf = start(CONTROL="off")
    silent = start()
    silent.program.send_signal(signal.SIGSTOP)
    text = top("--once", "--timeout=3", "--format=openmetrics")
    found = parse_openmetrics(text)
    silent.program.send_signal(signal.SIGCONT)
    keys = [("4", first.program.pid), ("11", second.program.pid), (None, third.program.pid)]
    rest = [(None, deaf.program.pid), (None, silent.program.pid)]
    assert found["gpuprof_up"] == {key: key in keys for key in keys + rest}
    assert list(found["gpuprof_up"])[:2] == keys[:2]  # by rank
    assert found["gpuprof_recording"] == {keys[0]: 1, keys[1]: 1, keys[2]: 0}
    assert found["gpuprof_memory_bytes"] == dict.fromkeys(keys, 1 << 20)
    file = tmp_path / "metrics.prom"
    assert top("--once", "--format=openmetrics", "--rank=4", "-o", str(file)) == ""
    assert list(parse_openmetrics(file.read_text())["gpuprof_up"]) == keys[:1]
    lines = top("--once", "--timeout=2.5").splitlines()
    assert lines[0].split()[:3] == ["rank", "pid", "state"] and len(lines) == 6
    assert [line.split()[:3] for line in lines[1:3]] == \
        [["4", str(keys[0][1]), "recording"], ["11", str(keys[1][1]), "recording"]]
    assert sum("no answer" in line for line in lines) == 1 and "stopped" in lines[3]
    for its in first, second, third, deaf, silent:
        its.program.communicate()


@pytest.mark.parametrize("what", ["open_call ../../x", *(
    pytest.param(what, marks=pytest.mark.long) for what in (
        "calls x", "calls -1", "waits start", "open_call a b", "answered 1", "step 1\nstep 1",
        "\x1b[2J"))])
def test_hostile_status(start, top, collector, tmp_path, what):
    """Another process of ours may write anything there."""
    its = start()
    subprocess.run([collector, "ctl", tmp_path / "out", "status"], check=True, capture_output=True)
    its.program.send_signal(signal.SIGSTOP)
    [status] = tmp_path.glob("out/*.status")
    text = status.read_text()
    assert text.endswith("end\n")
    status.write_text(text.replace("answered", f"{what}\nanswered", 1))
    [line] = json.loads(top("--once", "--timeout=2", "--format=json"))["processes"]
    assert line["state"] == "no answer" and line["memory_bytes"] is None
    its.program.send_signal(signal.SIGCONT)
    its.program.communicate()


def test_nothing_to_see(start, top, tmp_path):
    assert top("--once", status=1) == ""
    its = start()
    assert "no matching process" in top("--once", "--pid=1", status=2)
    assert "one data folder" in top("x", status=2)
    assert "--interval" in top("--interval=x", status=2)
    its.end()
    assert "no matching process" in top(status=2)


def test_closed_output(start, collector, tmp_path):
    its = start()
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([collector, "top", tmp_path / "out"], stdout=full, check=False,
                              stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    its.end()
