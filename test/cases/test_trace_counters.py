# SPDX-License-Identifier: Apache-2.0
"""Counter tracks of a trace: their integrals are the sums of the events beside them, computed here
from those events; however much is recorded there are few of them."""

import collections
import json
import random

import pytest


def tracks_of(trace, begin=0):
    """(pid, name, key) -> [(from us, to us, value)], from `begin` to the end of the trace."""
    points = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "C":
            assert e["tid"] == e["pid"]
            for key, value in e["args"].items():
                points[e["pid"], e["name"], key].append((e["ts"], value))
    end = max(e["ts"] + e.get("dur", 0) for e in trace["traceEvents"])
    tracks = {}
    for name, row in points.items():
        assert row == sorted(row) and len({at for at, _ in row}) == len(row) and row[0][0] == begin
        ends = [at for at, _ in row[1:]] + [end]
        tracks[name] = [(at, to, value) for (at, value), to in zip(row, ends)]
    return tracks


def integral(track):
    return sum((to - at) * value for at, to, value in track)


def union(spans):
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def spans_of(trace, *categories):
    return [(e["ts"], e["ts"] + e["dur"]) for e in trace["traceEvents"]
            if e.get("cat") in categories]


WORK = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph")


@pytest.mark.parametrize("seed", range(3))
def test_integrals(run_verb, make_stacks, seed):
    """Kernels that overlap, queue for long or last for long; copies of all speeds."""
    dice = random.Random(seed)
    lines, at, launches, flying, moved = ["process 0", "meta gpu_rows=present", "name 1 k"], 1000, \
        0, 0, 0
    for number in range(1, 400):
        at += dice.choice((700, 3000, 40000, 900000))
        delay, length = dice.choice((200, 5000, 3000000)), dice.choice((300, 9000, 2500000))
        if dice.random() < 0.3:
            size = dice.randrange(1 << 24)
            lines += [f"call cudaMemcpyAsync {at} 500 {number} 0 {size}",
                      f"copy {at + delay} {length} {number} {size}"]
            moved += size
        else:
            lines += [f"call cudaLaunchKernel {at} 600 {number} 0 0",
                      f"kernel 1 {at + delay} {length} {number}"]
            launches, flying = launches + 1, flying + delay + length
    trace = json.loads(run_verb("merge", make_stacks(*lines)).stdout)
    tracks = {name: track for (_, *name), track in
              ((name, track) for name, track in tracks_of(trace).items()) for name in [tuple(name)]}
    assert set(tracks) == {("GPU busy", "%"), ("kernels launched, not finished", "mean"),
                           ("copies (GB/s)", "HtoD"), ("copies (GB/s)", "DtoH"),
                           ("copies (GB/s)", "other"), ("launches", "per second")}
    assert all(0 <= value <= 100 for _, _, value in tracks["GPU busy", "%"])
    span = max(to for _, to, _ in tracks["GPU busy", "%"])
    # Half of the last digit that is shown, everywhere.
    assert integral(tracks["GPU busy", "%"]) / 100 == pytest.approx(
        union(spans_of(trace, *WORK)), abs=0.0005 * span + 1)
    assert integral(tracks["kernels launched, not finished", "mean"]) == pytest.approx(
        flying / 1000, abs=0.005 * span)
    assert sum(integral(tracks["copies (GB/s)", key]) for key in ("HtoD", "DtoH", "other")) == \
        pytest.approx(moved / 1000, abs=3 * 0.0005 * span)
    assert integral(tracks["launches", "per second"]) / 1e6 == pytest.approx(
        launches, abs=0.5 * span / 1e6)


def test_memory(run_collector, make_gpu):
    """Of each bucket the peak; behind the last one what is left."""
    trace = json.loads(run_collector("merge", make_gpu("train", 1, 3)).stdout)
    track, = (track for (_, name, _), track in tracks_of(trace).items() if name == "GPU memory")
    said = [(e["ts"], e["args"]["Total Allocated"] / 2**20) for e in trace["traceEvents"]
            if e["name"] == "[memory]" and e["args"]["Device Type"] == 1]
    for at, to, value in track:
        inside = [mib for when, mib in said if at <= when < to]
        before = [mib for when, mib in said if when < at][-1:]
        assert value == max([*inside, *before, 0]), (at, to, said)
    assert track[-1][2] >= said[-1][1] > 0


@pytest.mark.parametrize("wish", ("--from/--to", "--step"))
def test_of_a_piece(run_collector, make_gpu, wish):
    """They begin with it, are as fine as those of a short recording, and know what was allocated
    before."""
    folder, begin = make_gpu("train", 1, 200), 18100
    wishes = ("--from=0.0181", "--to=0.0183") if wish != "--step" else ("--step=180:182",)
    whole = json.loads(run_collector("merge", folder).stdout)
    trace = json.loads(run_collector("merge", *wishes, folder).stdout)
    if wish == "--step":
        begin = min(e["ts"] for e in whole["traceEvents"] if e["name"] == "ProfilerStep#180")
    tracks = {name: track for (_, name, _), track in tracks_of(trace, begin).items()}
    assert len(tracks["GPU busy"]) > 5
    assert integral(tracks["GPU busy"]) / 100 == pytest.approx(
        union(spans_of(trace, *WORK)), abs=0.0005 * 200 + 1)
    said = [(e["ts"], e["args"]["Total Allocated"] / 2**20) for e in whole["traceEvents"]
            if e["name"] == "[memory]" and e["args"]["Device Type"] == 1 and e["ts"] < 18300]
    for at, to, value in tracks["GPU memory"][:-1]:
        inside = [mib for when, mib in said if at <= when < to]
        assert value == max(*inside, *[mib for when, mib in said if when < at][-1:], 0)
    launches = json.loads(run_collector("merge", *wishes, "--kind=kernel", folder).stdout)
    assert "GPU memory" not in {e["name"] for e in launches["traceEvents"]}


@pytest.mark.parametrize("options, end", [
    ("--step-range=forward", 400.3), ("--from=300us --to=350us", 357.8),
    ("--step-range=forward --from=50us --to=200us", 200)])
def test_they_end_with_the_last_event(run_collector, make_gpu, options, end):
    """And not where a step did whose row has its name then, nor behind a piece where a range does
    that reaches into it. So is what was lost."""
    done = run_collector("merge", *options.split(), make_gpu("loss", 1, 3))
    events = json.loads(done.stdout)["traceEvents"]
    assert max(e["ts"] for e in events if e["ph"] == "C") == end
    assert [e["ts"] for e in events if e["name"].startswith("lost: ")] == \
        [end] * ("--from" not in options)


def test_launches_of_a_recording_without_gpu_work(run_verb, make_stacks):
    lines = [f"call {'cudaLaunchKernel' if n % 2 else 'cudaMalloc'} {n * 1000} 100 {n} 0 64"
             for n in range(1, 101)]
    trace = json.loads(run_verb("merge", make_stacks("process 0", *lines)).stdout)
    (name, track), = tracks_of(trace).items()
    assert name == (1000, "launches", "per second")
    assert integral(track) / 1e6 == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize("calls", (300, 60000))
def test_there_are_few(run_collector, make_gpu, calls):
    folder = make_gpu("bench", calls)
    sizes = {}
    for option in ([], ["--no-counters"]):
        text = run_collector("merge", *option, folder).stdout
        counters = [line for line in text.splitlines() if line.startswith('{"ph":"C"')]
        sizes[len(option)] = len(text)
        assert bool(counters) == (not option)
        assert len(counters) <= max(3 * (16 + 2), 2 * calls / 10 + 6), len(counters)
    assert sizes[0] < 1.04 * sizes[1]


def test_many_devices(run_collector, make_gpu):
    """They share a bound: with so many there are 16 buckets of each, or a little more."""
    trace = json.loads(run_collector("merge", make_gpu("train", 200, 1)).stdout)
    tracks = tracks_of(trace)
    assert len({pid for pid, name, _ in tracks if name == "GPU busy"}) == 200
    assert max(map(len, tracks.values())) <= 40
