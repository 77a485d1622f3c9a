# SPDX-License-Identifier: Apache-2.0
"""Memory in traces and in the report: from the ledger's books, also where nothing of the device's
work is known."""

import json

import conftest
import pytest

from made_memory import HOST, TYPES, Books, Process, at_random

MIB = 1 << 20


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    maker = conftest.built(conftest.BUILD / "make_raw")

    def make(*processes):
        for process in processes:
            process.write(maker, tmp_path / "data")
        return tmp_path / "data"
    return make


@pytest.fixture(name="merged")
def fixture_merged(run_verb, folder):
    return lambda process, *options: json.loads(run_verb("merge", folder(process),
                                                         *options).stdout)["traceEvents"]


def instants(events):
    return [e for e in events if e["name"] == "[memory]"]


def counters(events, name):
    return [(e["ts"], e["args"]) for e in events if e["ph"] == "C" and e["name"] == name]


def books(process, kinds, device):
    return Books([b for b in process.blocks if b.kind in kinds and b.device == device])


ON_DEVICE = ("linear", "managed", "pooled", "array", "physical")


@pytest.mark.parametrize("seed", range(2))
def test_counters(seed, merged):
    """The highest value of all is the peak, and the last one what is left."""
    process = at_random(seed)
    events = merged(process)
    titles = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert not instants(events)
    for device in range(2):
        pid, = (pid for pid, name in titles.items() if f"GPU {device}:" in name)
        for name, key, kinds in (("GPU memory", "MiB", ON_DEVICE),
                                 ("PyTorch's memory (MiB)", "allocated", ("tensor",))):
            values = [args[key] for _, args in counters([e for e in events if e["pid"] == pid],
                                                        name)]
            own = books(process, kinds, device)
            assert max(values) == pytest.approx(own.peak / MIB, abs=0.051) and own.peak
            assert values[-1] == pytest.approx(own.end / MIB, abs=0.051)
    assert not counters(merged(process, "--no-counters"), "GPU memory")


def test_reserved_of_pytorch(merged):
    process = Process()
    process.get("linear", 1 << 40, 20 * MIB)
    first = process.tensor(1 << 40, 8 * MIB, reserved=20 * MIB)
    process.free(first)
    process.now += 100_000
    process.call("cudaLaunchKernel", [0] * 8)
    events = merged(process)
    values = [args for _, args in counters(events, "PyTorch's memory (MiB)")]
    assert {args["reserved"] for args in values} == {20}
    assert [args["allocated"] for args in values if args["reserved"]][-1] == 0


def test_memory_of_the_host(merged, run_verb, tmp_path):
    """As it was read."""
    process = Process()
    process.call("cudaLaunchKernel", [0] * 8)
    for mib in (300, 500, 100):
        process.now += 10**7
        process.raw(2, TYPES["resident"], [mib * MIB])
        process.call("cudaLaunchKernel", [0] * 8)
    process.raw(2, TYPES["resident"], [200 * MIB])
    values = [args["MiB"] for _, args in counters(merged(process), "resident memory")]
    assert [v for v, before in zip(values, [None, *values]) if v != before] == \
        [300, 500, 200]  # of each piece the highest, at the end the last
    [row] = json.loads(run_verb("memory", tmp_path / "data", "--format=json").stdout)["resident"]
    assert (row["peak_bytes"], row["end_bytes"], row["samples"]) == (500 * MIB, 200 * MIB, 4)


def test_events_of_pytorch(merged):
    """As torch.profiler has them, each where it happened; CUDA's own, in which they lie, are not
    among them."""
    process = Process()
    process.get("linear", 1 << 40, 20 * MIB)
    process.get("pinned", 1 << 20, 64)
    first = process.tensor(1 << 40, 8 * MIB, reserved=20 * MIB, thread=3)
    process.tensor((1 << 40) + 8 * MIB, MIB, reserved=20 * MIB, thread=4)
    process.tensor(1 << 41, 512, device=1)
    process.free(first)
    events = instants(merged(process, "--memory-events"))
    origin = process.blocks[0].since - 50
    pinned, *blocks = [(e["ts"], e["args"]) for e in events]
    assert (pinned[1]["Device Type"], pinned[1]["Device Id"], pinned[1]["Bytes"]) == (0, -1, 64)
    assert [(a["Device Type"], a["Device Id"], a["Addr"], a["Bytes"], a["Total Allocated"],
             a["Total Reserved"]) for _, a in blocks] == [
        (1, 0, 1 << 40, 8 * MIB, 8 * MIB, 20 * MIB),
        (1, 0, (1 << 40) + 8 * MIB, MIB, 9 * MIB, 20 * MIB),
        (1, 1, 1 << 41, 512, 512, 512),
        (1, 0, 1 << 40, -8 * MIB, MIB, 20 * MIB)]
    times = [first.since, process.blocks[3].since, process.blocks[4].since, first.until]
    assert [round(at * 1000) for at, _ in blocks] == [at - origin for at in times]
    assert [e["tid"] - events[0]["tid"] for e in events[1:]] == [2, 3, 0, 0]
    assert all(e["ph"] == "i" and e["s"] == "t" for e in events)


def test_events_without_pytorch(merged):
    """Then they are CUDA's own: when the call returns, and when the block is given back."""
    process = Process()
    block = process.get("linear", 1 << 40, MIB, thread=3)
    process.free(block, thread=4)
    found = instants(merged(process, "--memory-events"))
    assert [(e["args"]["Bytes"], e["args"]["Total Allocated"], e["args"]["kind"])
            for e in found] == [(MIB, MIB, "linear"), (-MIB, 0, "linear")]
    assert round((found[1]["ts"] - found[0]["ts"]) * 1000) == block.until - block.since
    assert found[1]["tid"] == found[0]["tid"] + 1


def test_peak_in_the_report(run_verb, folder):
    """Without CUPTI, too; and where CUPTI and a call tell of the same block it counts once."""
    process = at_random(3)
    text = run_verb("report", folder(process), "--format=json").stdout
    rows = {row["name"]: row["bytes"] for row in json.loads(text)["gpu_memory_peak"]}
    assert rows == {f"rank 0, GPU {device}: most allocated":
                    books(process, ON_DEVICE, device).peak for device in range(2)}
    assert HOST not in rows


def test_a_device_that_nobody_knew(run_verb, folder):
    """It is no argument; of a hint the same number is the host."""
    process = Process()
    for symbol, args in (("cudaMalloc", [0x7000, 100, 2**32 - 1]), ("cudaMalloc", [0x8000, 100, 1]),
                         ("cudaMemPrefetchAsync_v2", [0x7000, 100, 2**32 - 1, 0])):
        process.call(symbol, args)
    data = folder(process)
    trace = json.loads(run_verb("merge", data).stdout)["traceEvents"]
    rows = [json.loads(line) for line in run_verb("export", "--format=jsonl", "--kind=call",
                                                  data).stdout.splitlines()]
    for calls in (trace, rows):
        assert [call["args"].get("device") for call in calls
                if call["name"].startswith("cudaM")] == [None, 1, -1]


def test_both_tell_of_a_block(run_verb, folder):
    process = Process()
    cupti = TYPES["memory"]
    process.call("cudaMallocAsync", [0x7000, 100, 0, 0], ns=500)
    process.raw(2, cupti, [1, 3, 0x7000, 100, 1, 1, 0, 0, 1, 0xa0, 4096 + 1])
    process.now += 1000
    process.call("cudaFreeAsync", [0x7000, 0], ns=500)
    process.raw(2, cupti, [2, 3, 0x7000, 100, 1, 1, 0, 0, 1, 0xa0, 4096 + 1])
    text = run_verb("report", folder(process), "--format=json").stdout
    assert {row["name"]: row["bytes"] for row in json.loads(text)["gpu_memory_peak"]} == \
        {"rank 0, GPU 1: most allocated": 100,
         "rank 0, GPU 1: most reserved, pools included": 4096}
