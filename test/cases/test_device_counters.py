# SPDX-License-Identifier: Apache-2.0
"""Counters of devices in reports, traces and databases, against the power that a made device had at
each moment: made_devices.py."""

import collections
import json
import math
import random
import re
import sqlite3

import csv_tables
import perfetto_reader
import pytest
from made_devices import MAIN, MS, RANK, S, Board, Job, random_profile

MARGIN_MJ = 3  # counters are whole numbers, and so are figures


def report(run_verb, folder, tables, *options):
    return json.loads(run_verb("report", "--format=json", f"--table={tables}", *options,
                               folder).stdout)


def steps_at(job, *times):
    for number, at in enumerate(times):
        job.step(at, number)


@pytest.mark.parametrize("seed, period, every", [(0, 100 * MS, 100 * MS), (1, 20 * MS, 100 * MS),
                                                 (2, 100 * MS, 30 * MS), (3, 20 * MS, 20 * MS),
                                                 (4, 100 * MS, 250 * MS)])
def test_energy(run_verb, make_records, seed, period, every):
    """Of each step, of all, of ranges and of the run: the truth is within the bounds, which are no
    wider than what a device of that power can burn in two periods at each border."""
    dice = random.Random(seed)
    end = 40 * S
    board = Board(random_profile(dice, end), period, dice.randrange(period))
    job = Job()
    times = job.read(board, job.source(period=every), 50 * MS, end, every, dice)
    borders = [S]
    while borders[-1] < end - 2 * S:
        borders.append(borders[-1] + dice.randrange(300, 3000) * MS)
    steps_at(job, *borders)
    job.range(2 * S, 7 * S, "warm-up")
    job.range(9 * S, 20 * S, "epoch")
    job.range(21 * S, 31 * S, "epoch")
    job.range(32 * S, 32 * S + 10 * MS, "short")
    said = report(run_verb, make_records(job.lines()), "steps,energy,device_counters")
    worst = 700000 * 2.5 * (2 * max(period, every) * 1.3) / S
    told = 0
    for row, begin, to in zip(said["steps"], borders, borders[1:]):
        if "energy_mj" not in row:  # its bounds are wider than what it burnt
            assert to - begin < 5 * max(period, every)
            continue
        told += 1
        assert row["energy_error_mj"] < row["energy_mj"]
        assert abs(row["energy_mj"] - board.between(begin, to)) <= \
            row["energy_error_mj"] + MARGIN_MJ
        assert row["energy_error_mj"] < worst
    assert told > 10
    assert "energy_mj" not in said["steps"][-1]  # it did not end
    rows = {(row["kind"], row["name"]): row for row in said["energy"]}
    step = rows["step", f"a step, rank {RANK}"]
    assert step["count"] == len(borders) - 1
    truth = board.between(borders[0], borders[-1])
    assert abs(step["energy_mj"] - truth) <= step["energy_error_mj"] + MARGIN_MJ
    assert abs(step["mean_mj"] - truth / step["count"]) <= step["mean_error_mj"] + MARGIN_MJ
    for name, count, truth in (("warm-up", 1, board.between(2 * S, 7 * S)),
                               ("epoch", 2, board.between(9 * S, 20 * S) +
                                board.between(21 * S, 31 * S))):
        row = rows["range", name]
        assert row["count"] == count and row["estimated"] is True
        assert abs(row["energy_mj"] - truth) <= row["energy_error_mj"] + MARGIN_MJ
    assert ("range", "short") not in rows
    run = rows["run", f"the run, rank {RANK}"]
    assert run["energy_mj"] == board.counter(times[-1]) - board.counter(times[0])
    assert abs(run["energy_mj"] - board.between(times[0], times[-1])) <= \
        run["energy_error_mj"] + 700
    power, = said["device_power"]
    assert power["energy_mj"] == run["energy_mj"] and power["energy_jumps"] == 0
    assert power["energy_period_ns"] == pytest.approx(max(period, every), rel=0.1)
    trapezoids = sum((b - a) * (board.power(a) + board.power(b)) / 2 / S
                     for a, b in zip(times, times[1:]))
    assert power["power_integral_mj"] == pytest.approx(trapezoids, abs=2)
    assert power["power_max_mw"] == max(map(board.power, times))
    assert power["power_mean_mw"] == pytest.approx(trapezoids / (times[-1] - times[0]) * S, abs=1)


def test_short_steps(run_verb, make_records):
    """None has a number of its own; all together have a mean that is good."""
    board = Board(random_profile(random.Random(7), 20 * S), 100 * MS)
    job = Job()
    job.read(board, job.source(), 50 * MS, 20 * S, 100 * MS)
    borders = [2 * S + i * 35 * MS for i in range(401)]
    steps_at(job, *borders)
    said = report(run_verb, make_records(job.lines()), "steps,energy")
    assert not any("energy_mj" in row for row in said["steps"])
    step, = (row for row in said["energy"] if row["kind"] == "step")
    truth = board.between(borders[0], borders[-1]) / 400
    assert step["count"] == 400
    assert abs(step["mean_mj"] - truth) <= step["mean_error_mj"] + MARGIN_MJ
    assert step["mean_error_mj"] < 0.05 * step["mean_mj"]


def test_no_figure_is_as_wide_as_its_bounds(run_verb, make_records):
    """Of a counter that moved on twice: +- is all of it."""
    job = Job()
    source = job.source()
    for at, mj in ((0, 1000), (100, 9000), (200, 17199)):
        job.sample("device_power", source, 50 * MS + at * MS, mj, 80000, None, None, None, 61, None)
    folder = make_records(job.lines())
    [row] = report(run_verb, folder, "energy")["energy"]
    assert row["energy_mj"] is None and row["why_not"] == "too short" and row["at_least"] is None
    assert row["reason"] == "the uncertainty is as large as the energy"
    assert "+-" not in run_verb("report", "--table=energy", folder).stdout.replace(" +-  ", "")


def test_a_counter_that_did_not_change_has_no_period(run_verb, make_records):
    """As at both ends of a short run."""
    job = Job()
    source = job.source()
    for at in (0, 40):
        job.sample("device_power", source, 50 * MS + at * MS, 9000, 80000, None, None, None, 61,
                   None)
    text = run_verb("report", "--table=energy,device_counters", make_records(job.lines())).stdout
    assert "the uncertainty is as large as the energy\n" in text


def test_why_a_range_has_none(run_verb, make_records):
    """By where it lies: before the first reading, close to the last one, or where it is short."""
    board = Board([(0, 300000)], 100 * MS)
    job = Job()
    times = job.read(board, job.source(), 2 * S, 12 * S, 100 * MS)
    last = times[-1]
    for begin, end, name in ((S, 5 * S, "early"), (8 * S, last - 60 * MS, "late"),
                             (6 * S, 6 * S + 70 * MS, "short"), (9 * S, last - 200 * MS, "whole")):
        job.range(begin, end, name)
    folder = make_records(job.lines())
    rows = {row["name"]: row for row in report(run_verb, folder, "energy")["energy"]}
    reasons = {name: (rows[name]["why_not"], rows[name]["reason"])
               for name in ("early", "late", "short", "whole")}
    assert reasons["early"] == ("not read", "it began before the first reading")
    assert reasons["late"][0] == "not read" and "after the last reading" in reasons["late"][1]
    assert reasons["short"][0] == "too short" and reasons["whole"] == (None, None)
    text = run_verb("report", "--table=energy", folder).stdout
    for word, reason in set(reasons.values()) - {(None, None)}:
        assert text.count(f"  '{word}': {reason}\n") == 1


def test_energy_of_steps_that_are_far_apart_is_not_theirs(run_verb, make_records):
    board = Board([(0, 300000)])
    job = Job()
    job.read(board, job.source(), 50 * MS, 20 * S, 100 * MS)
    for begin in range(2, 18, 2):
        job.range(begin * S, (begin + 1) * S, f"train {begin}")
    said = report(run_verb, make_records(job.lines()), "steps,energy", "--step-range=train *")
    assert {row["kind"] for row in said["energy"]} == {"run", "range"}
    assert all(abs(row["energy_mj"] - 300000) <= row["energy_error_mj"] for row in said["steps"])


def test_a_counter_that_begins_anew(run_verb, make_records):
    """What is around that moment has no number; nothing is negative, in a trace neither."""
    board = Board([(0, 250000)], period=20 * MS)
    board.jumps = [(5 * S + 30 * MS, 0), (12 * S + 10 * MS, 1000)]
    job = Job()
    job.read(board, job.source(), 50 * MS, 20 * S, 100 * MS)
    steps_at(job, *(second * S for second in range(1, 19)))
    folder = make_records(job.lines())
    said = report(run_verb, folder, "steps,energy,device_counters")
    for row in said["steps"][:-1]:
        # A border is placed by what is read behind it, too: 5.03 s is too close to 5 s.
        assert ("energy_mj" in row) == (row["step"] not in (3, 4, 10, 11)), row
        if "energy_mj" in row:
            assert abs(row["energy_mj"] - 250000) <= row["energy_error_mj"]
    power, = said["device_power"]
    assert power["energy_jumps"] == 2
    assert 0.95 * 250000 * 19.9 < power["energy_mj"] <= 250000 * 20
    assert [row["kind"] for row in said["energy"]] == ["run"]  # no mean over the jumps
    assert ">4.9" in run_verb("report", "--table=device_counters", folder).stdout
    trace = json.loads(run_verb("merge", folder).stdout)
    rates = [e["args"]["counted"] for e in trace["traceEvents"]
             if e["ph"] == "C" and e["name"] == "power by energy (W)"]
    assert rates and 0 <= min(rates) and max(rates) < 320


def test_devices_and_ranks(run_verb, make_records):
    """A process's energy is that of all its devices; one that cannot be read leaves steps without a
    number."""
    boards = [Board([(0, 100000 * (1 + k))], 100 * MS) for k in range(4)]
    jobs = [Job(RANK), Job(RANK + 1), Job(RANK + 2)]
    for job, used in zip(jobs, ((0, 1), (2,), (3,))):
        for device, k in enumerate(used):
            job.read(boards[k], job.source(device, uuid=(9, k + 1)), 50 * MS, 12 * S, 100 * MS)
        steps_at(job, *(second * S for second in range(2, 11)))
    blind = jobs[2].source(1, uuid=(9, 77))
    jobs[2].read(boards[0], blind, 50 * MS, 12 * S, 100 * MS, energy=False)
    said = report(run_verb, make_records([line for job in jobs for line in job.lines()]),
                  "steps,energy,device_counters")
    watts = {RANK: 300, RANK + 1: 300}
    steps = {row["rank"]: row for row in said["energy"] if row["kind"] == "step"}
    assert set(steps) == {str(rank) for rank in watts}
    for rank, power in watts.items():
        assert steps[str(rank)]["mean_mj"] == pytest.approx(1000 * power, rel=0.01)
        assert steps[str(rank)]["power_mw"] == pytest.approx(1000 * power, rel=0.01)
    assert all(("energy_mj" in row) == (row["rank"] != str(RANK + 2)) for row in said["steps"]
               if not row["partial"])
    rows = {(row["rank"], row["device"]): row for row in said["device_power"]}
    assert len(rows) == 5
    assert rows[str(RANK + 2), 1]["energy_mj"] is None
    assert rows[str(RANK + 2), 1]["power_integral_mj"] == pytest.approx(100000 * 11.9, rel=0.01)
    uuids = {row["uuid"] for row in said["device_counters"]}
    assert "GPU-00000000-0000-0009-0000-000000000003" in uuids and len(uuids) == 5


def use_job():
    """MIG on one device, which has neither power nor clocks; GPM and links on another."""
    job = Job()
    mig = job.source(0, mig=(1, 2), title="Made MIG")
    plain = job.source(1)
    job.add("device_absent", MAIN + 1, 2000, args=(mig, 56, 3), text="not supported on MIG")
    for number in (mig, plain):
        job.add("device_absent", MAIN + 1, 2001, args=(number, 56, 3, 1 << 5 | 1 << 6), text="no")
    job.add("device_absent", MAIN + 1, 9 * S, args=(plain, 0, 5), text="the device is lost")
    job.add("device_absent", MAIN + 1, 2002, args=(0, 0, 4), text="NO_PERMISSION for \x1b[31m all")
    for i in range(50):
        at = 50 * MS + i * 100 * MS
        used = 10**9 + i * 10**7
        job.sample("device_use", mig, at, None, None, 10**10, used, None, None, None)
        job.sample("device_use", plain, at, 10000 * (i % 100), 250000, 8 * 10**10, used, 0,
                   used - 3 * 10**8, 2)
        job.sample("device_gpm", plain, at, 900000, 800000, 400000, 600000, 500000, None, None,
                   None, None, 1000, 1000, 2 * 10**9, 3 * 10**9)
        job.sample("device_links", plain, at, (i % 25) * 10**9, i * 2 * 10**9, None, None)
    return job


def test_use_and_links(run_verb, make_records):
    folder = make_records(use_job().lines())
    said = report(run_verb, folder, "device_counters,energy")
    mig, plain = said["device_counters"]
    assert mig["is_mig"] and mig["busy_share"] is None and mig["memory_others_max_bytes"] is None
    assert mig["samples"] == 50 and mig["memory_used_max_bytes"] == 10**9 + 49 * 10**7
    assert mig["pcie_sent_bytes"] is None
    assert plain["busy_share"] == pytest.approx(0.245) and plain["busy_max_share"] == 0.49
    assert plain["sm_share"] == 0.8 and plain["tensor_share"] == 0.6 and plain["dram_share"] == 0.5
    assert plain["memory_others_max_bytes"] == 3 * 10**8 and plain["processes_max"] == 2
    assert plain["pcie_sent_bytes"] == 48 * 10**9  # what was before it began anew, and behind that
    assert plain["pcie_received_bytes"] == 98 * 10**9
    assert plain["nvlink_sent_bytes"] == pytest.approx(2e9 * 4.9, rel=1e-6)  # of GPM's rates
    assert plain["span_ns"] == 4900 * MS
    assert said["energy"] == []
    for row in said["device_power"]:
        assert row["energy_mj"] is None and row["throttled_power_ns"] is None
    assert said["device_counters_absent"] == [
        {"pid": mig["pid"], "device": 0, "is_mig": True, "what": "power",
         "reason": "not supported on MIG"},
        *({"pid": mig["pid"], "device": device, "is_mig": device == 0,
           "what": "power.limit, power.temperature", "reason": "no"} for device in (0, 1)),
        {"pid": mig["pid"], "device": None, "is_mig": False, "what": "counters",
         "reason": "NO_PERMISSION for \x1b[31m all"},
        {"pid": mig["pid"], "device": 1, "is_mig": False, "what": "counters",
         "reason": "the device is lost"}]
    assert mig["uuid"] == "MIG-00000000-0000-0001-0000-000000000002"
    text = run_verb("report", "--table=device_counters", folder).stdout
    assert "no power of rank 400, GPU 0 (MIG): not supported on MIG" in text and "\x1b" not in text
    assert f"no counters of rank {RANK}, GPU 1: the device is lost\n" in text
    assert text.count("no power.limit, power.temperature of 2 devices: no\n") == 1
    text = run_verb("report", "--table=energy", folder).stdout
    assert "no power of rank 400, GPU 0 (MIG): not supported on MIG\n" in text
    assert "of what" not in text and "power.limit" not in text and "--device records" not in text


def test_what_is_not_read_is_lost(run_verb, make_records, tmp_path):
    """The first screen, a trace, a database, and the exit code of --strict tell it; a group that
    does not come is no loss."""
    job = use_job()
    job.call(1000)
    job.call(9 * S)
    folder = make_records(job.lines())
    screen = run_verb("report", folder).stdout
    first, second = screen[screen.index("  --device "):].splitlines()[:2]
    assert "NO_PERMISSION for" in first and "\x1b" not in screen
    assert second == f"{'':13}no counters of rank {RANK}, GPU 1: the device is lost"
    assert "  lost       device counters that --device asked for\n" in screen
    said = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert said["losses"]["devices_unread"] == 1
    assert run_verb("report", "--strict", folder, status=3).stdout == screen
    run_verb("merge", "-o", tmp_path / "t.pftrace", folder)
    trace = json.loads(run_verb("merge", folder).stdout)
    instants = {e["name"]: e["ts"] for e in trace["traceEvents"] if e["ph"] == "i"}
    assert instants["no counters of GPU 1: the device is lost"] == (9 * S - 1000) / 1000
    assert "no counters of the devices: NO_PERMISSION for \x1b[31m all" in instants
    assert any(name.startswith("lost: device counters") for name in instants)
    marks = {name for _, name, *_ in perfetto_reader.Trace(
        (tmp_path / "t.pftrace").read_bytes()).instants}
    assert "no counters of GPU 1: the device is lost" in marks
    run_verb("export", folder, "-o", tmp_path / "x.sqlite")
    assert sqlite3.connect(tmp_path / "x.sqlite").execute(
        "SELECT name, value, isMissing FROM GPUPROF_LOSSES").fetchall() == [
            ("devices_unread", 1, 1)]
    assert "devices_unread" not in screen


def test_a_device_without_a_number_has_its_uuid(run_verb, make_records):
    job = Job()
    for last in (5, 6):
        job.read(Board([(0, 300000)]), job.source(None, uuid=(7, last)), 50 * MS, 3 * S, 100 * MS)
    text = run_verb("report", "--table=device_counters", make_records(job.lines())).stdout
    for last in (5, 6):
        assert text.count(f"rank {RANK}, GPU-00000000-0000-0007-0000-00000000000{last}\n") == 2
    assert "GPU ?" not in text and "read for" not in text


def test_without_any(run_verb, make_records):
    job = Job()
    job.call(1000)
    folder = make_records(job.lines())
    said = report(run_verb, folder, "device_counters,energy")
    assert said["device_counters"] == said["device_power"] == said["energy"] == []
    text = run_verb("report", "--table=device_counters,energy", folder).stdout
    assert text.count("none: 'gpuprof run --device' records it") == 2
    assert "throttled" not in run_verb("report", folder).stdout


@pytest.mark.parametrize("counted", [True, False])
def test_throttled(run_verb, make_records, counted):
    """Steps that the power limit made slow say so, as counters or the readings' own words have it;
    the first screen does, too."""
    board = Board([(0, 700000)])
    board.throttled = [(4 * S, 6 * S, "power"), (9 * S, 9500 * MS, "thermal")]
    job = Job()
    job.call(1000)
    job.read(board, job.source(), 50 * MS, 14 * S, 50 * MS, throttle=counted)
    borders = [S, 2 * S, 3 * S, 4 * S, 6 * S, 7 * S, 8 * S, 9 * S, 10 * S, 11 * S, 12 * S]
    steps_at(job, *borders)
    folder = make_records(job.lines())
    said = report(run_verb, folder, "steps,device_counters")
    power, = said["device_power"]
    assert power["throttled_is_sampled"] != counted
    assert power["throttled_power_ns"] == pytest.approx(2 * S, abs=60 * MS)
    assert power["throttled_thermal_ns"] == pytest.approx(S // 2, abs=60 * MS)
    for row in said["steps"]:
        if row["partial"]:
            continue
        begin, end = borders[row["step"]:row["step"] + 2]
        truth, why = max((sum(max(0, min(end, b) - max(begin, a)) for a, b, w in board.throttled
                              if w == word), word) for word in ("power", "thermal"))
        assert row.get("throttled_ns", 0) == pytest.approx(truth, abs=60 * MS), row
        if truth > 100 * MS:
            assert row["throttled_by"] == why
    text = run_verb("report", "--table=steps", folder).stdout
    assert re.search(r"\bpower (9[89]|100)% ", text)
    screen = run_verb("report", folder).stdout
    share, = re.findall(rf"throttled  power (\S+)% of the time, rank {RANK}, GPU 0", screen)
    assert float(share) == pytest.approx(100 * 2 / 13.9, abs=0.5)
    overview = json.loads(run_verb("report", "--format=json", folder).stdout)["overview"]
    assert overview["throttled"]["by"] == "power" and overview["throttled"]["device"] == 0


@pytest.mark.parametrize("slow, found", [(900, True), (510, False)])
def test_finding(run_verb, make_records, slow, found):
    """What the steps that were slowed down took more than the usual one; not where it may be
    chance."""
    dice, board, job = random.Random(4), Board([(0, 700000)]), Job()
    job.call(1000)
    borders, excess = [S], 0
    for i in range(60):
        is_slow = i % 4 == 3
        ns = (slow if is_slow else 500) * MS + dice.randrange(-20, 21) * MS
        if is_slow:
            board.throttled.append((borders[-1] + 60 * MS, borders[-1] + ns - 60 * MS, "thermal"))
        borders.append(borders[-1] + ns)
    lengths = [b - a for a, b in zip(borders, borders[1:])]
    usual = sorted(length for i, length in enumerate(lengths) if i % 4 != 3)[22]
    excess = sum(length - usual for length in lengths[3::4])
    job.read(board, job.source(period=20 * MS), 50 * MS, borders[-1] + S, 20 * MS)
    steps_at(job, *borders)
    job.call(borders[-1])
    folder = make_records(job.lines())
    rows, piece = ([row for row in report(run_verb, folder, "findings", *options)["findings"]
                    if row["id"] == "throttled"]
                   for options in ([], [f"--to={borders[24] - 1000}ns"]))
    assert len(rows) == len(piece) == found
    if found:
        row, = rows
        assert row["ns"] == row["total_ns"] == excess and row["device"] == 0
        assert row["evidence"][0]["name"] == "thermal" and row["evidence"][0]["count"] == 15
        assert row["share"] == pytest.approx(excess / (borders[-1] - borders[0]), rel=0.01)
        row, = piece  # what 24 steps cost of their time
        usual = sorted(length for i, length in enumerate(lengths[:24]) if i % 4 != 3)[8]
        assert row["ns"] == sum(length - usual for length in lengths[3:24:4])
        assert row["share"] == pytest.approx(row["ns"] / (borders[24] - borders[0]), abs=1e-4)


# ---- traces ------------------------------------------------------------------------------------

def tracks_of(trace):
    points = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "C":
            for key, value in e["args"].items():
                points[e["name"], key].append((e["ts"], value))
    end = max(e["ts"] + e.get("dur", 0) for e in trace["traceEvents"])
    return {name: [(at, to, value) for (at, value), to in
                   zip(row, [at for at, _ in row[1:]] + [end])] for name, row in points.items()}


def integral(track, begin=0, end=1e99):
    return sum(max(min(to, end) - max(at, begin), 0) * value for at, to, value in track)


def test_tracks(run_verb, make_records):
    """Their integrals are what the counters grew by; readings are as they were while they came."""
    board = Board(random_profile(random.Random(5), 30 * S), 20 * MS)
    board.throttled = [(4 * S, 6 * S, "power"), (9 * S, 9500 * MS, "thermal")]
    job = Job()
    job.call(1000)
    source = job.source()
    times = job.read(board, source, 50 * MS, 28 * S, 100 * MS)
    for at in times:
        job.sample("device_links", source, at + 1000, at // 10, at // 5, None, None)
        job.sample("device_use", source, at + 2000, 500000, 100000, 2**40, 2**30, None, 2**29, 1)
    job.call(30 * S)
    folder = make_records(job.lines())
    tracks = tracks_of(json.loads(run_verb("merge", folder).stdout))
    span = 30e6
    grown = board.counter(times[-1]) - board.counter(times[0])
    assert integral(tracks["power by energy (W)", "counted"]) / 1e3 == pytest.approx(
        grown, abs=0.05 * span / 1e3)
    trapezoids = sum((b - a) * (board.power(a) + board.power(b)) / 2 / S
                     for a, b in zip(times, times[1:]))
    read = (times[0] / 1000, times[-1] / 1000)
    assert integral(tracks["power (W)", "read"], *read) / 1e3 == pytest.approx(
        trapezoids, abs=0.05 * span / 1e3)
    assert integral(tracks["throttled (%)", "power"]) / 100 == pytest.approx(2e6, abs=2e4)
    assert integral(tracks["throttled (%)", "thermal"]) / 100 == pytest.approx(5e5, abs=2e4)
    read_us = (times[-1] - times[0]) / 1000
    assert integral(tracks["PCIe (GB/s)", "sent"]) == pytest.approx(read_us / 10, rel=0.01)
    for name, level in ((("NVML: busy (%)", "kernels"), 50), (("NVML: memory (MiB)", "used"), 1024),
                        (("NVML: memory (MiB)", "by others"), 512)):
        assert {value for _, _, value in tracks[name]} <= {0, level}
        assert integral(tracks[name], *read) == pytest.approx(level * read_us, rel=0.001)
    assert all(len(track) <= 514 for track in tracks.values())
    assert not tracks_of(json.loads(run_verb("merge", "--no-counters", folder).stdout))


def test_tracks_of_a_piece(run_verb, make_records):
    """Whose memory it is was asked before the piece: there it is as it was."""
    job = Job()
    source = job.source()
    for i in range(100):
        job.call(i * 100 * MS + 1000)
        job.sample("device_use", source, 50 * MS + i * 100 * MS, 500000, 100000, 2**40, 2**30, None,
                   2**29 if i % 10 == 0 else None, 1)
    folder = make_records(job.lines())
    for wishes in (), ("--from=4.35s", "--to=4.95s"):
        tracks = tracks_of(json.loads(run_verb("merge", *wishes, folder).stdout))
        used, others = (tracks["NVML: memory (MiB)", key] for key in ("used", "by others"))
        assert (used[0][2], others[0][2]) == (1024, 512)
        assert 2 * integral(others) == pytest.approx(integral(used), rel=0.05)


def slices_of(trace):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
             if e["name"] == "thread_name"}
    return sorted((e["name"], names[e["pid"], e["tid"]], e["ts"], e["dur"], e["args"])
                  for e in trace["traceEvents"] if e.get("cat") == "throttle")


def test_throttled_slices(run_verb, make_records, tmp_path):
    """Each time that a device was slowed down is a slice of it, in both formats; of the readings
    around it none is left out."""
    board = Board([(0, 700000)])
    board.throttled = [(4 * S, 6 * S, "power"), (9 * S, 9500 * MS, "thermal"),
                       (12 * S, 13 * S, "power")]
    job = Job()
    job.call(1000)
    job.read(board, job.source(), 50 * MS, 18 * S, 100 * MS)
    job.call(20 * S)
    folder = make_records(job.lines())
    trace = json.loads(run_verb("merge", "--no-counters", folder).stdout)
    slices = slices_of(trace)
    assert [(name, row) for name, row, *_ in slices] == [
        ("throttled: power", "throttled"), ("throttled: power", "throttled"),
        ("throttled: thermal", "throttled (thermal)")]
    by_begin = sorted(slices, key=lambda s: s[2])
    for (begin, end, _), (_, _, at, lasts, args) in zip(board.throttled, by_begin):
        assert 0 <= begin / 1000 - at <= 101_000 and 0 <= at + lasts - end / 1000 <= 101_000
        assert args["throttled (us)"] == pytest.approx((end - begin) / 1000)
        assert args["of the time (%)"] == pytest.approx((end - begin) / 10 / lasts, abs=0.1)
    pids = {e["pid"] for e in trace["traceEvents"] if e.get("cat") == "throttle"}
    assert pids == {e["pid"] for e in trace["traceEvents"] if e["name"] == "process_labels" and
                    e["args"]["labels"] == "GPU 0"}
    run_verb("merge", "-o", tmp_path / "t.pftrace", folder)
    read = perfetto_reader.Trace((tmp_path / "t.pftrace").read_bytes())
    assert sorted(name for category, name, *_ in read.slices if category == "throttle") == [
        name for name, *_ in slices]


def test_tracks_of_a_part(run_verb, make_records):
    """A part of a device and the whole have one row in a trace: of the memory it is the part's."""
    job, mib = Job(), 1 << 20
    job.call(1000)
    part, whole = job.source(0, uuid=(7, 7), mig=(1, 2)), job.source(0, uuid=(7, 7))
    for at in range(50 * MS, 5 * S, 100 * MS):
        job.sample("device_use", part, at, None, None, 2**34, 100 * mib, None, 60 * mib, 1)
        job.sample("device_use", whole, at + 1000, None, None, 2**35, 900 * mib, None, None, None)
    job.read(Board([(0, 300000)]), whole, 50 * MS, 5 * S, 100 * MS)
    steps_at(job, S, 2 * S, 3 * S)
    job.call(6 * S)
    folder = make_records(job.lines())
    tracks = tracks_of(json.loads(run_verb("merge", folder).stdout))
    assert max(value for _, _, value in tracks["NVML: memory (MiB)", "used"]) == 100
    said = report(run_verb, folder, "steps,energy,device_counters")
    assert [(row["is_mig"], row["uuid"][:4]) for row in said["device_counters"]] == [
        (True, "MIG-"), (False, "GPU-")]
    assert all(row["energy_mj"] == pytest.approx(300000, rel=0.01) for row in said["steps"][:2])
    text = run_verb("report", "--table=device_counters", folder).stdout
    assert text.count(f"rank {RANK}, GPU 0 (MIG)") == 1 and text.count(f"{RANK}, GPU 0\n") == 2


def test_tracks_are_few(run_verb, make_records):
    job = Job()
    job.call(1000)
    job.read(Board(random_profile(random.Random(6), 400 * S)), job.source(period=20 * MS), 50 * MS,
             400 * S, 20 * MS)
    job.call(400 * S)
    tracks = tracks_of(json.loads(run_verb("merge", make_records(job.lines())).stdout))
    assert 256 < max(map(len, tracks.values())) <= 514


# ---- other outputs -----------------------------------------------------------------------------

def test_database(run_verb, make_records, tmp_path):
    job = use_job()
    run_verb("export", make_records(job.lines()), "-o", tmp_path / "x.sqlite")
    base = sqlite3.connect(tmp_path / "x.sqlite")
    rows = base.execute("SELECT name, deviceId, count(*), min(value), max(value) FROM "
                        "GPUPROF_DEVICE_COUNTERS GROUP BY 1, 2").fetchall()
    said = {(name, device): rest for name, device, *rest in rows}
    assert said["use.used", 0] == [50, 10**9, 10**9 + 49 * 10**7]
    assert said["use.busy", 1] == [50, 0, 490000] and ("use.busy", 0) not in said
    assert said["gpm.sm", 1] == [50, 800000, 800000]
    assert said["links.pcie_received", 1] == [50, 0, 98 * 10**9]


def test_rows_of_readings(run_verb, make_records, tmp_path):
    """export --format=jsonl: each value that the database has, at its time, of its device."""
    job = use_job()
    folder = make_records(job.lines())
    lines = [json.loads(line) for line in
             run_verb("export", folder, "--format=jsonl", "-o", "-").stdout.splitlines()]
    run_verb("export", folder, "-o", tmp_path / "x.sqlite")
    base = sqlite3.connect(tmp_path / "x.sqlite")
    readings = [line for line in lines if line["kind"].startswith("device_")]
    assert sorted(base.execute("SELECT start, deviceId, uuid, name, value FROM "
                               "GPUPROF_DEVICE_COUNTERS")) == sorted(
        (line["start_ns"], line["device"], line["args"]["uuid"], f"{group}.{label}", value)
        for line in readings for group in [line["kind"].removeprefix("device_")]
        for label, value in line["args"].items() if label != "uuid")
    assert {line["kind"] for line in readings} == {"device_use", "device_links", "device_gpm"}
    assert "device_" not in run_verb("export", folder, "--format=csv", "-o", "-",
                                     "--kind=launch", status=2).stdout


def test_csv(run_verb, make_records):
    board = Board([(0, 250000)])
    job = Job()
    times = job.read(board, job.source(), 50 * MS, 10 * S, 100 * MS)
    steps_at(job, 2 * S, 3 * S, 4 * S)
    data = make_records(job.lines())
    rows = csv_tables.check(*(run_verb("report", f"--format={form}", data).stdout
                              for form in ("csv", "json")))
    counted = board.counter(times[-1]) - board.counter(times[0])
    assert [int(rows[name][0]["energy_mj"]) for name in ("device_power", "energy")] == [counted] * 2


def test_diff(run_collector, make_records):
    """Joules a step of two ranks, before and now."""
    sides = []
    for name, powers in (("old", (200000, 300000)), ("new", (220000, 330000))):
        jobs = [Job(RANK), Job(RANK + 1)]
        for job, power in zip(jobs, powers):
            job.read(Board([(0, power)]), job.source(), 50 * MS, 20 * S, 100 * MS)
            steps_at(job, *(S + i * S // 4 for i in range(60)))
        sides.append(make_records([line for job in jobs for line in job.lines()], name))
    done = run_collector("diff", sides[1], "--against", sides[0], "--format=json")
    energy, = (row for row in json.loads(done.stdout)["metrics"] if row["metric"] == "energy_mj")
    assert energy["before"] == pytest.approx(500000 / 4, rel=0.02)
    assert energy["now"] == pytest.approx(550000 / 4, rel=0.02)


def test_a_piece(run_verb, make_records):
    """What is read around it tells the energy of its steps; the rest is of what is in it."""
    board = Board(random_profile(random.Random(8), 20 * S), 100 * MS)
    job = Job()
    job.call(1000)
    job.read(board, job.source(), 50 * MS, 20 * S, 100 * MS)
    steps_at(job, *(second * S for second in range(1, 19)))
    said = report(run_verb, make_records(job.lines()), "steps,energy,device_counters",
                  "--step=5:7")
    assert [row["step"] for row in said["steps"]] == [5, 6]
    for row in said["steps"]:
        truth = board.between((row["step"] + 1) * S, (row["step"] + 2) * S)
        assert abs(row["energy_mj"] - truth) <= row["energy_error_mj"] + MARGIN_MJ
    power, = said["device_power"]
    assert power["span_ns"] == pytest.approx(2 * S, abs=200 * MS)
    truth = board.between(6 * S, 8 * S)
    assert abs(power["energy_mj"] - truth) <= power["energy_error_mj"] + 700 * 200


def test_memory_of_others(run_verb, make_records):
    """What the driver says is used beyond the ledger, and by whom; a call that gets memory while it
    is read is none of that."""
    job, mib = Job(), 1 << 20
    source = job.source()
    job.add("call", MAIN, 1000, 1000, 1, "cudaMalloc",
            args=(4096, 512 * mib, 0))
    used = [(900, 700), (900, 700), (2924, 700), (900, 700), (1412, 700), (1412, 700), (1412, 500)]
    for i, (all_of_it, own) in enumerate(used):
        job.sample("device_use", source, 50 * MS + i * 100 * MS, None, None, 2**35,
                   all_of_it * mib, 0, own * mib, 2)
    folder = make_records(job.lines())
    found = json.loads(run_verb("memory", "--format=json", folder).stdout)["hidden"]
    assert [(row["used_bytes"] // mib, row["hidden_bytes"] // mib, row["others_bytes"] // mib,
             row["said_by"]) for row in found] == [(900, 388, 200, "driver"),
                                                   (1412, 900, 712, "driver")]
    text = run_verb("memory", folder).stdout
    assert re.search(r"hidden +900.0 MiB of device 0 used beyond its allocations, "
                     r"including 712.0 MiB of other", text)


def test_damaged_values(run_verb, make_records):
    """Whatever stands in a file: numbers stay numbers, and sources are bounded."""
    dice = random.Random(3)
    job = Job()
    job.call(1000)
    wild = (0, 1, 2, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
    for source in range(1, 1200):
        job.add("device_source", 2, 1000 + source, args=(source, *(dice.choice(wild)
                                                                   for _ in range(6))), text="x")
    for i in range(4000):
        kind = dice.choice(("device_use", "device_power", "device_clocks", "device_links",
                            "device_gpm", "device_absent", "device_source"))
        job.add(kind, 2, 10000 + i * MS, dice.choice((0, 5, S)),
                args=(dice.randrange(1300),
                      *(dice.choice(wild) for _ in range(dice.randrange(15)))))
    steps_at(job, S, 2 * S, 3 * S)
    folder = make_records(job.lines())
    said = report(run_verb, folder, "steps,energy,device_counters")
    assert len(said["device_counters"]) <= 1024
    for row in said["device_power"] + said["energy"] + said["steps"]:
        assert all(not isinstance(value, float) or math.isfinite(value) for value in row.values())
    json.loads(run_verb("merge", folder).stdout)
    run_verb("report", "--full", folder)
    assert run_verb("report", "-o", folder.parent / "page.html", folder).stdout == ""
