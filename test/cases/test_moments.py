# SPDX-License-Identifier: Apache-2.0
"""Windows x gpuprof ctl x --overhead-max x fork x SIGKILL, at random moments: no copy is recorded
that the program has not made, and none is missing that the data does not explain."""

import contextlib
import itertools
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import zlib

import conftest
import moments
import pytest
import stream_reader
import toolchain

LIMIT = 60
MS = 1_000_000
# Exceeded at once. Stacks of silences would be given up before calls are passed by.
GOVERNED = {"GPUPROF_OVERHEAD_MAX": "0.0001%", "GPUPROF_SILENCE": "off"}
WINDOWS = {
    "none": ("none", None),
    "schedule": ("schedule", dict(skip_first=2, wait=7, active=9, repeat=0)),
    "schedule-repeat": ("schedule", dict(skip_first=0, wait=3, active=20, repeat=2)),
    **{f"capture-{end}": ("capture", end) for end in ("none", "stop", "repeat", "repeat:2")},
    "flight": ("flight", "1s"), "flight-long": ("flight", "30s"),
    "delay": ("delay", (350 * MS, 500 * MS)),
}


def settings_of(kind, how):
    if kind == "schedule":
        return {"GPUPROF_SCHEDULE": ",".join(f"{k}={v}" for k, v in how.items())}
    if kind == "capture":
        return {"GPUPROF_CAPTURE_RANGE": "cudaProfilerApi", "GPUPROF_CAPTURE_RANGE_END": how}
    if kind == "delay":
        return {"GPUPROF_DELAY": f"{how[0] // MS}ms", "GPUPROF_DURATION": f"{how[1] // MS}ms"}
    if kind == "flight":
        return {"GPUPROF_FLIGHT": how, "GPUPROF_DUMP_LIMIT": "1000000"}
    return {}


class Ctl(threading.Thread):
    """Stops and starts at random moments, beginning with a stop, and does not wait for answers."""

    def __init__(self, collector, folder, chance):
        super().__init__()
        self.over, self.count = threading.Event(), 0
        self.collector, self.folder, self.chance = collector, folder, chance

    def run(self):
        for word in itertools.cycle(("stop", "start")):
            if self.over.wait(self.chance.uniform(0.05, 0.4)):
                return
            subprocess.run([self.collector, "ctl", "--timeout=1", self.folder, word],
                           check=False, capture_output=True, timeout=LIMIT)
            self.count += 1


@contextlib.contextmanager
def controlled(is_on, *words):
    ctl = Ctl(*words)
    if is_on:
        ctl.start()
    yield ctl
    ctl.over.set()
    if is_on:
        ctl.join(LIMIT)


def run(parts, tmp_path, seed, window, what, ms):
    """Returns how many orders it was given."""
    library, collector = parts
    chance = random.Random(seed)
    program = toolchain.build("moments_work.c", *toolchain.runtime(12),
                              f"-I{conftest.ROOT / 'inject/range'}")
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path,
                                GPUPROF_SEAL="50ms", **settings_of(*WINDOWS[window]),
                                **(GOVERNED if "g" in what else {}))
    words = [program, tmp_path / "book", str(seed), str(ms), what]
    with conftest.Program(words, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as its, \
            controlled("c" in what, collector, tmp_path / "out", chance) as orders:
        if "k" in what:
            time.sleep(chance.uniform(0.2, 0.95) * ms / 1000)
            victims = [int(p.suffix[1:]) for p in tmp_path.glob("book.*")]
            for pid in sorted(victims, reverse=chance.random() < 0.5)[:chance.choice((1, 2))]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _, errors = its.communicate(timeout=LIMIT)
        assert "k" in what or its.returncode == 0, errors
    deadline = time.monotonic() + LIMIT  # the child of a killed one ends by itself
    while any(pathlib.Path(f"/proc/{p.suffix[1:]}/exe").exists()
              for p in tmp_path.glob("book.*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return orders.count


def look(tmp_path, collector, window, governor):
    if WINDOWS[window][0] == "flight":  # of a killed one the collector takes what it kept
        subprocess.run([collector, "report", tmp_path / "out"], check=True, capture_output=True,
                       timeout=LIMIT)
    books = [moments.Book(p) for p in tmp_path.glob("book.*")]
    books = sorted((b for b in books if b.threads[0]), key=lambda b: b.begin)  # some die at once
    processes = {p.header.pid: p for p in stream_reader.read_folder(tmp_path / "out")}
    totals = dict(must=0, may=0, never=0, passed=0, recorded=0)
    for book in books:
        process = processes.pop(book.pid, None)
        if not process:  # killed before its first copy
            assert not moments.has_copied(book, WINDOWS[window], books[0].begin)
            continue
        assert not process.losses
        wrong, counts = moments.compare(process, book, WINDOWS[window], books[0].begin)
        assert not wrong, (len(wrong), wrong[:5], counts)
        passed = process.counters["passed_by"]
        most = counts["passed"] + counts["may"] + counts["never"] * (WINDOWS[window][0] == "flight")
        assert counts["passed"] <= passed <= most, counts
        assert governor or not passed
        totals = {name: totals[name] + counts[name] for name in totals}
    assert not processes
    return totals


def attack(parts, tmp_path, seed, window, what, ms):
    """`what`: c gpuprof ctl, g a budget that is exceeded at once, f a fork, k a SIGKILL,
    d dumps of a flight recorder."""
    orders = run(parts, tmp_path, seed, window, what, ms)
    totals = look(tmp_path, parts[1], window, "g" in what)
    print(f"{window} {what} {totals}, {orders} orders")
    return totals


@pytest.mark.parametrize("seed, window, what, ms", [
    (1, "schedule", "ck", 1500), (2, "capture-repeat", "cf", 1600), (6, "capture-repeat", "f", 300),
    (7, "schedule-repeat", "f", 500), (3, "delay", "f", 900),
    (4, "none", "gfk", 900), (5, "capture-repeat:2", "k", 500),
    (9, "flight", "dfk", 900), (11, "flight-long", "dg", 900)])
def test_some(library, collector, tmp_path, seed, window, what, ms):
    totals = attack((library, collector), tmp_path, seed, window, what, ms)
    assert totals["recorded"] and bool(totals["passed"]) == ("g" in what)


SORTS = ["", "c", "g", "cf", "k", "ck", "fk", "cgf", "cfk", "gfk"]
FLIGHTS = ["d", "dk", "k", "dcf", "dgf", "dfk", "cfk", "dgfk"]


@pytest.mark.long
@pytest.mark.parametrize("window, what", [
    (window, what) for window, (kind, _) in WINDOWS.items()
    for what in (FLIGHTS if kind == "flight" else SORTS)])
def test_all(library, collector, tmp_path, window, what):
    """GPUPROF_SEED tries other moments."""
    seed = f"{os.environ.get('GPUPROF_SEED', 0)} {window} {what}"
    ms = 2500 if "c" in what or window == "flight" else 1200
    attack((library, collector), tmp_path, zlib.crc32(seed.encode()), window, what, ms)
