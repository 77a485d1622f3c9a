# SPDX-License-Identifier: Apache-2.0
"""Energy and use of a device from end to end: a program under --device, the report, and what the
simulated CUDA's own log says that its device did. Power is some, and more for each piece of work.
"""

import bisect
import json
import shutil

import pytest
import stream_reader
from test_device import ACTIVE_MW, IDLE_MW, S, fixture_device  # noqa: F401

WINDOW_NS = 166_666_667  # that the simulated NVML's utilisation is of
WORDS = ("get=64", "idle=150", "begin=launches", "run=1200", "end", "begin=graphs", "graphs=1200",
         "end", "begin=blip", "run=45", "end", "idle=150")


class Work:
    """When a device had work of a process, by its log: pieces, one after another on one stream at a
    time."""

    def __init__(self, folder, pid="", device=0):
        self.pieces = []
        for path in folder.glob(f"{pid}*.log"):
            for line in path.read_bytes().translate(None, b"\0").decode().splitlines():
                parts = line.split("\t")
                if len(parts) > 8 and parts[2] == "G" and parts[4] != "graph" and \
                        f"device={device}" in parts:
                    self.pieces.append((int(parts[5]), int(parts[6])))
        self.pieces.sort()
        self.begins = [begin for begin, _ in self.pieces]
        assert all(a[1] <= b[0] for a, b in zip(self.pieces, self.pieces[1:]))

    def ns(self, begin, end):
        first = max(0, bisect.bisect_right(self.begins, begin) - 1)
        last = bisect.bisect_left(self.begins, end)
        return sum(max(0, min(end, b) - max(begin, a)) for a, b in self.pieces[first:last])

    def energy_mj(self, begin, end):
        return ((end - begin) * IDLE_MW + self.ns(begin, end) * ACTIVE_MW) / S


class Seen:
    def __init__(self, done, run_verb):
        folder = done.cuda_log.parent / "out"
        self.done, self.work = done, Work(done.cuda_log)
        self.said = json.loads(run_verb("report", "--format=json",
                                        "--table=device_counters,energy", folder).stdout)
        self.text = run_verb("report", "--table=device_counters,energy", folder).stdout
        self.rows = {row["name"].split(",")[0]: row for row in self.said["energy"]}
        self.spans = {name: (int(begin), int(end)) for name, begin, end in
                      map(str.split, done.stdout.splitlines())}
        monotonic = done.process.monotonic()
        self.reads = [(monotonic(r.begin) + monotonic(r.end)) / 2
                      for r in done.process.of_type(stream_reader.DEVICE_POWER)]

    def check(self, name):
        row, truth = self.rows[name], self.work.energy_mj(*self.spans[name])
        assert row["why_not"] is None and row["energy_error_mj"] <= row["energy_mj"]
        assert abs(row["energy_mj"] - truth) <= row["energy_error_mj"] + 3

    def check_none(self, name, why):
        row = self.rows[name]
        assert {row[key] for key in ("energy_mj", "energy_error_mj", "mean_mj", "power_mw")} == {
            None}
        assert row["why_not"] == why and row["count"] == 0 and row["left_out"] == 1
        assert why in self.text


@pytest.fixture(name="seen")
def fixture_seen(device, run_verb):
    def seen(**settings):
        return Seen(device(*WORDS, SIMCUDA_KERNEL_NS=1_500_000, GPUPROF_DEVICE_PERIOD="20ms",
                           **settings), run_verb)
    return seen


def test_energy_and_use_are_those_of_the_log(seen):
    run = seen()
    for name in ("launches", "graphs"):
        run.check(name)
    run.check_none("blip", "too short")
    truth = run.work.energy_mj(run.reads[0], run.reads[-1])
    assert run.rows["the run"]["energy_mj"] == pytest.approx(truth, rel=0.005)
    # Utilisation: each answer, and that of kernels over the same time.
    answers = [a for a in run.done.log if a.name == "nvmlDeviceGetUtilizationRates"]
    busy = run.done.of(stream_reader.DEVICE_USE)
    assert len(answers) == len(busy) > 8
    for answer, record in zip(answers, busy):
        now = answer.values["now"]
        share = run.work.ns(now - WINDOW_NS, now) / WINDOW_NS
        assert (record.args[1] - 1) / 1e6 == pytest.approx(share, abs=0.011)
    [row] = run.said["device_counters"]
    read_busy = run.work.ns(run.reads[0], run.reads[-1]) / (run.reads[-1] - run.reads[0])
    assert row["busy_share"] == pytest.approx(read_busy, abs=0.12)  # its window lags
    assert row["kernels_busy_share"] == pytest.approx(read_busy, abs=0.12)


@pytest.mark.parametrize("how", ["SIMNVML_JUMP", "SIMNVML_LEAP"])
def test_a_counter_that_jumps(seen, how):
    """Of what is around the jump there is no number, of the rest it is right; of the run it is what
    was counted, which is less than the truth."""
    run = seen(**{how: 12})
    jump = run.reads[11]
    assert run.spans["launches"][0] < jump < run.spans["launches"][1]
    run.check_none("launches", "began anew")
    run.check("graphs")
    truth = run.work.energy_mj(run.reads[0], run.reads[-1])
    lost = run.work.energy_mj(run.reads[10], jump)
    row, [power] = run.rows["the run"], run.said["device_power"]
    assert power["energy_jumps"] == 1 and row["energy_mj"] == power["energy_mj"]
    assert row["energy_mj"] == pytest.approx(truth - lost, rel=0.01)
    assert f">{row['energy_mj'] / 1000:.3f} J" in run.text
    assert f">{row['power_mw'] / 1000:.1f} W" in run.text
    assert row["at_least"] is True and run.rows["graphs"]["at_least"] is False
    assert run.rows["launches"]["at_least"] is None
    assert run.text.count("'>': a counter restarted or jumped") == 2  # below each of both tables
    assert "'began anew': a counter restarted or jumped, in it or close to it" in run.text


STEPS = ("device=0", "run=300", "device=1", "run=200")


@pytest.mark.long
@pytest.mark.parametrize("ranks, words, under", [
    (2, ("run=500",), ("sh", "-c", 'RANK=0 CUDA_VISIBLE_DEVICES=0 "$@" & '
                       'RANK=1 CUDA_VISIBLE_DEVICES=1 "$@"; wait', "sh")),
    (1, STEPS, ())])
def test_energy_of_several_devices(device, run_verb, ranks, words, under):
    """A device for each of two processes, and both for one: each step, the run, and what diff has
    of a step, is by the log of the work on all devices."""
    done = device("get=1", *(["device=1", "get=1", "device=0"] if ranks == 1 else []), "idle=200",
                  *(word for _ in range(4) for word in ("step", *words)), "step", "idle=200",
                  under=under, SIMCUDA_KERNEL_NS=1_500_000, GPUPROF_DEVICE_PERIOD="20ms")
    folder = done.cuda_log.parent / "out"
    said = json.loads(run_verb("report", "--format=json", "--table=steps,energy,device_counters",
                               folder).stdout)
    truth = {}  # of each process's steps
    for process in stream_reader.read_folder(folder):
        monotonic = process.monotonic()
        marks = [monotonic(r.begin) for r in process.of_type(stream_reader.TYPE_NUMBERS["step"])]
        work = [Work(done.cuda_log, process.header.pid, number) for number in range(3 - ranks)]
        truth[process.header.pid] = [sum(w.energy_mj(begin, end) for w in work)
                                     for begin, end in zip(marks, marks[1:])]
    assert len(truth) == ranks and all(len(steps) == 4 for steps in truth.values())
    rows = [row for row in said["steps"] if not row["partial"]]
    assert len(rows) == 4 * ranks
    for row in rows:
        assert abs(row["energy_mj"] - truth[row["pid"]][row["step"]]) <= \
            row["energy_error_mj"] + 3, row
    steps = [row for row in said["energy"] if row["kind"] == "step"]
    assert len(steps) == ranks
    for row in steps:
        assert abs(row["energy_mj"] - sum(truth[row["pid"]])) <= row["energy_error_mj"] + 3
    assert len(said["device_counters"]) == 2
    assert len({row["uuid"] for row in said["device_counters"]}) == 2
    before = shutil.copytree(folder, folder.parent / "before")
    compared = json.loads(run_verb("diff", folder, "--against", before, "--format=json",
                                   status=3).stdout)
    [energy] = [row for row in compared["metrics"] if row["metric"] == "energy_mj"]
    everything = sum(map(sum, truth.values())) / 4
    assert energy["before"] == energy["now"] == pytest.approx(everything, rel=0.1)
