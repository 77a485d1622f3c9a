# SPDX-License-Identifier: Apache-2.0
"""Traces with GPU work: what HTA, TensorBoard, Perfetto and catapult's viewer need of them, and the
traps of the format. The recordings come from make_gpu; what they hold is computed here again.
`make check-consumers` runs the readers themselves. What is of ranks, or of ranges and steps, is
tested in test_rank_traces.py and test_trace_ranges.py.

What a reader needs                               is tested by
`"rank": N`, white space, before any event        test_head, test_per_rank
a file for each rank, *.pt.trace.json[.gz]        test_per_rank, test_archive
category and name, integer pid and tid            test_every_event_has_what_readers_need
stream and correlation of GPU events              test_gpu_events_have_stream_and_correlation_...
no stream, no correlation 0 on calls              the same, test_recorded
ProfilerStep#k                                    test_steps, test_steps_of_a_range, test_one_...
device: an ordinal, its properties at its place   test_kernels, test_pids_..., test_head
occupancy, blocks per SM; bytes, bandwidth        test_kernels; test_copies_and_sets
gpu_user_annotation, none of steps                test_ranges_on_the_device, test_ranges_of_...
a call named cudaLaunchKernel                     test_gpu_events_have_stream_and_correlation_...
External id that leads to a cpu_op                test_operators
[memory] with totals                              test_memory, test_memory_of_pools
flows with bp; names and order of rows            test_flows; test_rows_are_named_and_in_order
default stream 7, synchronisations apart          test_default_stream, test_synchronisations_...
a trap                                            is tested by
one base of time for all ranks                    test_per_rank
pid and tid of 32 bits, numbers below 2^53        test_extreme_numbers
slices of a row nest and do not touch             test_rows, test_slices_that_touch_are_apart
flow ids unique over ranks                        test_flows
raw UTF-8, no escaped surrogates                  test_extreme_numbers, test/unit/test_text.c
a file that is cut does not load                  test_collector.py: it appears when it is whole
an archive with a manifest; beyond 4 GiB          test_archive; test_zip.py
"""

import collections
import json
import pathlib
import re
import subprocess

import pytest
from conftest import BUILD, built
from merged_trace import GPU_CATEGORIES, at, check_rows, merged, names, of_category

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.parametrize("begin", [1000, 123456789, 987654321987654])
def test_slices_that_end_together_nest(run_verb, make_stacks, begin):
    """1 ns is between the ends of an inner and an outer one, or their sums may cross."""
    lines = ["process 0", "meta gpu_rows=present", "name 1 k"]
    for k in range(200):
        t = begin + 1000 * k
        lines += [f"push {t} a", f"push {t + 1} b",
                  f"call cudaLaunchKernel {t + 7 * k % 13 + 3} {600 - 7 * k % 13} {k + 1} 0 0",
                  f"call cuLaunchKernel {t + 203} 400 {k + 1} 0 0 nested",
                  f"call cuMemAlloc {t + 303} 300 0 0 0 nested",
                  f"call cuMemAlloc {t + 602} 1 0 0 0 nested",
                  f"pop {t + 603}", f"pop {t + 603}", f"kernel 1 {t + 700} 300 {k + 1}"]
    trace = json.loads(run_verb("merge", make_stacks(*lines), "--strict").stdout)
    assert check_rows(trace) >= 3
    assert len([e for e in trace["traceEvents"] if e["ph"] == "X"]) >= 1400


def test_arrow_to_work_that_begins_at_once(run_verb, make_stacks):
    """It may not point back in time: then it binds to nothing."""
    delays = (0, 1, 50, 99, 100, 500)
    lines = ["process 0", "meta gpu_rows=present", "name 1 k"]
    for k, delay in enumerate(delays):
        lines += [f"call cudaLaunchKernel {10000 * k + 1000} 800 {k + 1} 0 0",
                  f"kernel 1 {10000 * k + 1000 + delay} 300 {k + 1}"]
    events = json.loads(run_verb("merge", make_stacks(*lines)).stdout)["traceEvents"]
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    begins = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    apart = [round(1000 * (ends[number] - begins[number])) for number in sorted(ends)]
    assert apart == [max(0, delay - 100) for delay in delays]


def test_every_event_has_what_readers_need(merged):
    for event in merged("train", 2, 3)["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"]
        for key in ("pid", "tid"):
            assert isinstance(event[key], int) and 0 <= event[key] < 2**32
        if event["ph"] == "X":
            assert event["cat"] and event["ts"] >= 0 and event["dur"] >= 0
        assert event["ph"] in "XMisfC"


def test_head(run_collector, make_gpu):
    folder = make_gpu("train", 2, 1)
    text = run_collector("merge", "-o", "-", folder / "rank0.gpuprof").stdout
    head = text[:text.index('"traceEvents"')]
    # HTA's pattern: white space behind the colon, the first match of the file.
    assert re.search(r'"rank":\s+(\d+)', text).group(1) == "1"
    assert '"rank": 1' in head
    trace = json.loads(text)
    assert trace["schemaVersion"] == 1 and trace["displayTimeUnit"] == "ns"
    assert trace["baseTimeNanoseconds"] == 1700000000000000000 + 200
    assert trace["distributedInfo"] == {"rank": 1}
    # Each at the place of its ordinal, as readers look it up.
    unknown, device = trace["deviceProperties"]
    assert unknown == {"id": 0}
    assert device["id"] == 1 and device["name"] == "Made GPU" and device["numSms"] == 132
    assert device["computeMajor"] == 9 and device["warpSize"] == 32
    assert device["uuid"] == "GPU-01234567-89ab-cdef-fedc-ba9876543211"
    assert device["totalGlobalMem"] == 85899345920 and device["regsPerMultiprocessor"] == 65536
    assert trace["otherData"]["gpu_rows"] == "present"
    result = run_collector("merge", "-o", "a.json", folder / "rank0.gpuprof")
    assert result.returncode == 0 and result.stderr == ""
    written = json.loads((folder.parent / "a.json").read_text())
    assert written["traceName"] == "a.json"


def test_devices_of_all_processes(run_collector, make_gpu):
    """Each once, where processes describe the same ones."""
    files = [make_gpu("train", 2, 1) / "rank1.gpuprof",
             make_gpu("pools", 1, name="pools") / "pools.gpuprof"]
    each = [json.loads(run_collector("merge", "-o", "-", path).stdout) for path in files]
    both = json.loads(run_collector("merge", "-o", "-", *files).stdout)
    assert len(both["deviceProperties"]) == 1
    assert all(one["deviceProperties"] == both["deviceProperties"] for one in each)


def test_kernels(merged):
    trace = merged("train", 1, 3)
    kernels = of_category(trace, "kernel")
    assert len(kernels) == 3 * 8
    for step in range(3):
        first = next(e for e in kernels if e["args"]["correlation"] == 100 * (step + 1) + 2)
        assert first["name"] == "void at::native::kernel_number<1, float>(float*, float, int)"
        assert (first["ts"], first["dur"]) == (at(step, 10), 5)
        assert first["pid"] == 0 and first["tid"] == 7
        args = first["args"]
        assert args["device"] == 0 and args["context"] == 1 and args["stream"] == 7
        assert args["grid"] == [264, 1, 1] and args["block"] == [256, 1, 1]
        assert args["registers per thread"] == 32 and args["shared memory"] == 3072
        assert args["static shared memory"] == 1024 and args["local memory"] == 4096
        # 264 blocks of 8 warps on 132 multiprocessors that hold 2048 threads each
        assert args["blocks per SM"] == 2 and args["warps per SM"] == 16
        assert args["est. achieved occupancy %"] == 25
        assert args["theoretical occupancy %"] == 100
        assert args["queued"] == 0.7 and args["submitted"] == 0.3
        assert args["launch latency (us)"] == 6 and args["queue time (us)"] == 5.5
    nccl = [e for e in kernels if e["name"] == "ncclKernel_AllReduce"]
    assert [e["args"]["stream"] for e in nccl] == [13] * 3 and {e["tid"] for e in nccl} == {13}
    assert names(trace)[0, 7] == "stream 7" and names(trace)[0, 13] == "stream 13"
    assert names(trace, "process_name")[0, 0].startswith("rank 0: GPU 0 Made GPU: ")


def test_graph_kernels_share_their_launch(merged):
    trace = merged("train", 1, 2)
    for step in range(2):
        of_graph = [e for e in of_category(trace, "kernel")
                    if e["args"]["correlation"] == 100 * (step + 1) + 10]
        assert [e["args"]["graph node id"] for e in of_graph[1:]] == [71, 72, 73]
        assert {e["args"]["launch latency (us)"] for e in of_graph} == {21, 22, 23, 24}
        assert [e["ts"] for e in of_graph] == [at(step, 30 + i) for i in range(4)]
        # They overlap on one stream: each has a row of its own, and all say their stream.
        assert len({e["tid"] for e in of_graph}) == 4 and of_graph[0]["tid"] == 7
        assert {e["args"]["stream"] for e in of_graph} == {7}
        for e in of_graph[1:]:
            assert names(trace)[e["pid"], e["tid"]].startswith("stream 7 (overlapping ")
    graph = of_category(trace, "gpu_graph")
    assert [e["name"] for e in graph] == ["CUDA graph 9"] * 2
    assert [(e["args"]["graph id"], e["dur"]) for e in graph] == [(9, 3)] * 2


def test_slices_that_touch_are_apart(merged):
    trace = merged("train", 1, 1)
    begins = [(e["ts"], e["dur"]) for e in of_category(trace, "kernel")
              if 102 <= e["args"]["correlation"] <= 104]
    assert begins == [(at(0, 10), 5), (round(at(0, 15) + 0.001, 3), 4.999),
                      (round(at(0, 20) + 0.001, 3), 4.999)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rows(merged, ranks):
    assert check_rows(merged("train", ranks, 4)) >= 10 * ranks


def test_copies_and_sets(merged):
    trace = merged("train", 2, 2)
    copies = of_category(trace, "gpu_memcpy")
    assert len(copies) == 2 * 2 * 2
    host = [e for e in copies if e["name"] == "Memcpy HtoD (Pinned -> Device)"]
    assert len(host) == 4
    for e in host:
        assert e["dur"] == 4 and e["args"]["bytes"] == 8000
        assert e["args"]["memory bandwidth (GB/s)"] == 2
        assert e["args"]["launch latency (us)"] == 4 and "fromDevice" not in e["args"]
    for e in copies:
        if e in host:
            continue
        assert e["name"] == "Memcpy PtoP (Device -> Device)"
        assert e["args"]["memory bandwidth (GB/s)"] == 500
        assert e["args"]["fromDevice"] == e["args"]["device"] == 1 - e["args"]["toDevice"]
    sets = of_category(trace, "gpu_memset")
    assert len(sets) == 4
    for e in sets:
        assert e["name"] == "Memset (Device)" and e["args"]["bytes"] == 4096
        assert e["args"]["memory bandwidth (GB/s)"] == 4.096 and e["args"]["value"] == 0


def test_bandwidth_is_rounded(run_verb, make_stacks):
    folder = make_stacks("process 0", "meta gpu_rows=present", "copy 1000 1201 0 1799")
    copy, = of_category(json.loads(run_verb("merge", folder).stdout), "gpu_memcpy")
    assert copy["args"]["memory bandwidth (GB/s)"] == 1.498  # 1.49791...


@pytest.mark.parametrize("options", [[], ["--sync-streams"]])
def test_synchronisations_have_rows_of_their_own(merged, options):
    trace = merged("train", 1, 2, *options)
    syncs = of_category(trace, "cuda_sync")
    streams = {e["tid"] for c in GPU_CATEGORIES[:4] for e in of_category(trace, c)}
    assert not {e["tid"] for e in syncs} & streams
    assert collections.Counter(e["name"] for e in syncs) == {"Stream Sync": 2, "Context Sync": 2}
    for e in syncs:
        assert {"stream", "correlation", "device"} <= set(e["args"])
        # With a stream HTA takes the wait for work, but for its critical path, which needs it.
        assert e["args"]["stream"] == (7 if options and e["name"] == "Stream Sync" else -1)
        assert e["args"].get("synchronized stream") == (7 if e["name"] == "Stream Sync" else None)
        assert names(trace)[e["pid"], e["tid"]].startswith("synchronisation")


def test_gpu_events_have_stream_and_correlation_and_calls_have_no_stream(merged):
    trace = merged("train", 2, 2)
    for category in GPU_CATEGORIES:
        found = of_category(trace, category)
        assert found, category
        for e in found:
            assert {"stream", "correlation", "device", "context"} <= set(e["args"])
            assert e["args"]["stream"] != 0
    calls = of_category(trace, "cuda_runtime") + of_category(trace, "cuda_driver")
    for e in calls:
        assert "stream" not in e["args"] and e["args"]["correlation"] > 0
        assert "External id" in e["args"]
    assert any(e["name"] == "cudaLaunchKernel" for e in calls)
    assert any(e["name"] == "cuLaunchKernel" and e["cat"] == "cuda_driver" for e in calls)


def test_pids_of_one_process_are_device_ordinals(run_collector, make_gpu):
    folder = make_gpu("train", 3, 1)
    for rank in range(3):
        trace = json.loads(run_collector("merge", folder / f"rank{rank}.gpuprof").stdout)
        assert {e["pid"] for c in GPU_CATEGORIES for e in of_category(trace, c)} == {2 - rank}


def test_pids_of_many_processes_are_unique(merged):
    trace = merged("train", 3, 1)
    pids = {(e["pid"], e["args"]["device"]) for c in GPU_CATEGORIES for e in of_category(trace, c)}
    assert len(pids) == 3 and len({pid for pid, _ in pids}) == 3
    assert {device for _, device in pids} == {0, 1, 2}
    assert not {pid for pid, _ in pids} & {1000, 1001, 1002}
    assert all(pid == device for pid, device in pids)  # viewers show the number
    for pid, device in pids:  # a rank's device is its number here; viewers cut the end off
        assert names(trace, "process_name")[pid, pid].startswith(f"rank {device}: GPU {device} ")


def test_pids_of_devices_that_share_an_ordinal(run_verb, make_stacks):
    """Three ranks have a device 0 each: one has the number, the others some that nothing has."""
    lines = [line for rank in range(3) for line in (
        f"process {rank}", "meta gpu_rows=present", "name 1 k",
        "call cudaLaunchKernel 1000 600 1 0 0", "kernel 1 2000 500 1")]
    trace = json.loads(run_verb("merge", make_stacks(*lines)).stdout)
    titles = names(trace, "process_name")
    assert len(titles) == len({pid for pid, _ in titles}) == 6
    devices = sorted(pid for (pid, _), title in titles.items() if ": GPU 0" in title)
    assert devices == [0, 5000065, 5000130]


@pytest.mark.parametrize("ranks", [1, 2])
def test_flows(merged, ranks):
    trace = merged("train", ranks, 3)
    begins = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = [e for e in trace["traceEvents"] if e["ph"] == "f"]
    assert len(begins) == len(ends) == len({e["id"] for e in ends})
    assert max(begins) < 2**53
    assert {e["cat"] for e in ends} == {"ac2g"} and {e["bp"] for e in ends} == {"e"}
    slices = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append(e)

    def around(point):
        return [e for e in slices[point["pid"], point["tid"]]
                if e["ts"] - 1e-9 <= point["ts"] <= e["ts"] + e["dur"] + 1e-9]
    for end in ends:
        begin = begins[end["id"]]
        call, = [e for e in around(begin) if e["cat"].startswith("cuda_")]
        work = [e for e in around(end) if e["ts"] == end["ts"]]
        assert call["args"]["correlation"] in [e["args"]["correlation"] for e in work]
    work = [e for c in GPU_CATEGORIES for e in of_category(trace, c) if e["args"]["correlation"]]
    assert len(ends) == len(work)


def test_default_stream(merged):
    """HTA takes stream 0 for none."""
    trace = merged("shared", 1, 1)
    kernel, = (e for e in of_category(trace, "kernel") if e["args"]["correlation"] == 99)
    assert kernel["args"]["stream"] == 7 and kernel["tid"] == 7


def test_rows_are_named_and_in_order(merged):
    """Of a device: ranges above their stream, what overlaps below it, synchronisations last."""
    trace = merged("train", 2, 1)
    used = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] in "Xi"}
    assert used <= set(names(trace))
    order = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in trace["traceEvents"]
             if e["ph"] == "M" and e["name"] == "thread_sort_index"}
    assert used <= set(order)
    for pid in {e["pid"] for e in of_category(trace, "kernel")}:
        rows = sorted((place, names(trace)[row]) for row, place in order.items() if row[0] == pid)
        assert [name for _, name in rows] == [
            "ranges on stream 7", "stream 7", "stream 7 (overlapping 1)",
            "stream 7 (overlapping 2)", "stream 7 (overlapping 3)", "ranges on stream 13",
            "stream 13", "synchronisation", "synchronisation (overlapping 1)"]
        assert len({place for place, _ in rows}) == len(rows)
        # Perfetto's order is that of the tids.
        by_tid = [names(trace)[row] for row in sorted(order) if row[0] == pid]
        assert by_tid == [
            "stream 7", "stream 13", "ranges on stream 7", "stream 7 (overlapping 1)",
            "stream 7 (overlapping 2)", "stream 7 (overlapping 3)", "ranges on stream 13",
            "synchronisation", "synchronisation (overlapping 1)"]
    processes = {e["pid"]: e["args"]["sort_index"] for e in trace["traceEvents"]
                 if e["ph"] == "M" and e["name"] == "process_sort_index"}
    assert {pid for pid, _ in used} <= set(processes)
    # A process, its GPU, the next process: rank 0 has pid 1001 here.
    assert sorted(processes, key=processes.get) == [1001, 0, 1000, 1]
    for pid in (1000, 1001):
        rows = {names(trace)[row]: place for row, place in order.items() if row[0] == pid}
        assert min(rows, key=rows.get) == "steps" and max(rows, key=rows.get).startswith("over")
        steps, = (tid for (at, tid), name in names(trace).items() if at == pid and name == "steps")
        assert steps == 1  # Perfetto's order


def numbers_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


@pytest.mark.parametrize("name", ["gpu-extreme", "gpu-overlap", "extreme-times", "texts"])
def test_extreme_numbers(run_collector, name):
    """Whatever a file says: ids of 32 bits, numbers that a double holds, text that is UTF-8."""
    result = run_collector("merge", HERE.parent / "corpus" / f"{name}.gpuprof")
    assert "\\ud" not in result.stdout.lower()
    trace = json.loads(result.stdout)
    for e in trace["traceEvents"]:
        assert 0 <= e["pid"] < 2**32 and 0 <= e["tid"] < 2**32
        assert all(abs(number) <= 2**53 for number in numbers_in(e)), e


def test_memory(merged):
    trace = merged("train", 1, 2)
    events = [e for e in trace["traceEvents"] if e["name"] == "[memory]"]
    assert [e["args"]["Bytes"] for e in events] == [2**20, 2**20, -2**20]
    assert [e["args"]["Total Allocated"] for e in events] == [2**20, 2**21, 2**20]
    for e in events:
        assert e["ph"] == "i" and e["s"] == "t" and (e["pid"], e["tid"]) == (1000, 1000)
        assert e["args"]["Device Type"] == 1 and e["args"]["Device Id"] == 0
        assert e["args"]["Addr"] > 2**46 and "Total Reserved" in e["args"]


def test_memory_of_pools(merged):
    """Reserved is what pools have, used or not, and what is allocated outside of them."""
    trace = merged("pools", 1, 1)
    found = [(e["args"]["Device Type"], e["args"]["Total Allocated"], e["args"]["Total Reserved"])
             for e in trace["traceEvents"] if e["name"] == "[memory]"]
    assert found == [
        (1, 1000, 1000), (0, 64, 64),
        (1, 5096, 9192), (1, 9192, 9192),   # the pool has 8192 bytes
        (1, 9492, 11240), (1, 5396, 11240),  # what was freed stays reserved
        (1, 5406, 8058),                     # trimmed; 10 bytes in a pool of unknown size
        (1, 1310, 8058),
        (1, 310, 2058),                      # the pool was destroyed, its 5000 bytes are gone
        (1, 10, 10)]                         # what nobody allocated cannot be released


def test_overhead(merged):
    trace = merged("train", 1, 2)
    found = of_category(trace, "overhead")
    assert collections.Counter(e["name"] for e in found) == \
        {"Lazy Function Loading": 2, "Buffer Flush": 2}
    assert {names(trace)[e["pid"], e["tid"]] for e in found} == {"overhead of CUDA and CUPTI"}
    # HTA takes whatever has a correlation for the call that made the work of that number.
    assert not any("correlation" in e["args"] for e in found)


def test_overheads_that_overlap(run_collector):
    """They have one row; what is cut off of one, it says."""
    path = HERE.parent / "corpus" / "gpu-extreme.gpuprof"
    trace = json.loads(run_collector("merge", path).stdout)
    found = of_category(trace, "overhead")
    rows = {(e["pid"], e["tid"]) for e in found}
    assert {names(trace)[row] for row in rows} == {"overhead of CUDA and CUPTI"}
    assert len(found) > len(rows) == len({e["pid"] for e in found})
    assert any(e["args"].get("took (us)", 0) > e["dur"] for e in found)
    check_rows({"traceEvents": [e for e in found if e["ts"] < 1e6]})


def test_losses(run_collector, make_gpu):
    folder = make_gpu("loss", 1, 1)
    result = run_collector("merge", folder)
    assert result.returncode == 0
    assert "kernels, copies and fills that are not recorded: 1" in result.stderr
    trace = json.loads(result.stdout)
    # The captured launch of each step makes no kernel, and is no loss.
    assert trace["otherData"]["losses"] == {"gpu_unpaired": 1, "gpu_missing": 1,
                                            "gpu_untied": 1}
    assert any(e["ph"] == "i" and e["name"].startswith("lost: ") for e in trace["traceEvents"])
    lone = next(e for e in of_category(trace, "kernel") if e["args"]["correlation"] == 90002)
    assert "launch latency (us)" not in lone["args"]
    assert run_collector("merge", "--strict", folder).returncode == 3


def test_without_gpu_work_nothing_changes(run_collector, tmp_path):
    folder = tmp_path / "host"
    folder.mkdir()
    subprocess.run([built(BUILD / "make_stream"), folder, "1000"], check=True, timeout=60)
    text = run_collector("merge", folder).stdout
    trace = json.loads(text)
    assert text.startswith('{"schemaVersion":1,"displayTimeUnit":"ns","baseTimeNanoseconds":')
    assert list(trace) == ["schemaVersion", "displayTimeUnit", "baseTimeNanoseconds",
                           "traceEvents", "otherData"]
    assert "gpu_events" not in trace["otherData"]
    assert trace["otherData"]["gpu_rows"].startswith("absent: ")
    assert {e["cat"] for e in trace["traceEvents"] if e["ph"] == "X"} == {"cuda_runtime"}


def callback_names(domain):
    """The simulated CUPTI's numbers, which are the real one's, and the symbols they stand for."""
    text = (HERE.parent / "sim" / f"sim_cupti_{domain}_cbids.def").read_text()
    return {int(number): re.sub(r"_v\d{4,}$", "", name)
            for number, name in re.findall(r"^\w+\((\d+), (\w+)", text, re.MULTILINE)}


def test_recorded(run_collector, program, library):
    """What the library records of the simulated CUPTI comes out whole and tied together."""
    assert library.exists()
    done = run_collector("run", "-o", "data", "--quiet", program("demo"))
    assert done.returncode == 0, done.stderr
    result = run_collector("merge", "--strict", "data")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    trace = json.loads(result.stdout)
    assert not trace["otherData"]["gpu_rows"].startswith("absent")
    assert check_rows(trace) > 8 and trace["otherData"]["losses"] == {}
    kernels = of_category(trace, "kernel")
    calls = of_category(trace, "cuda_runtime") + of_category(trace, "cuda_driver")
    assert not any(e["args"].get("correlation") == 0 or "stream" in e["args"] and
                   isinstance(e["args"]["stream"], int) for e in calls)
    flows = [e for e in trace["traceEvents"] if e["ph"] == "f"]
    assert len(kernels) > 1000 and len(flows) >= len(kernels)
    assert {e["args"]["launch latency (us)"] > -1000 for e in kernels} == {True}
    names_of = {f"cuda_{domain}": callback_names(domain) for domain in ("runtime", "driver")}
    assert all(names_of[e["cat"]][e["args"]["cbid"]] == e["args"].get("symbol", e["name"])
               for e in calls if e["name"] != "cudaStreamDestroy")  # which has two numbers
    assert trace["cuda_driver_version"] == trace["cupti_version"] // 10000 * 1000
    devices = {(e["pid"], e["args"]["device"]) for e in kernels}
    assert len(devices) == 2 and {device for _, device in devices} == {0, 1}
