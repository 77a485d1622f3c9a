# SPDX-License-Identifier: Apache-2.0
"""The report's tables of GPU work and ranges, and dump's lines of such records."""

import json
import pathlib
import re
import subprocess

import csv_tables
import pytest
import toolchain

from conftest import BUILD, ROOT, built

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def report(run_collector, make_gpu):
    def make(scenario, ranks, steps, *options):
        result = run_collector("report", "--format=json", *options,
                               make_gpu(scenario, ranks, steps))
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)
    return make


def by_name(table):
    rows = {row["name"]: row for row in table}
    assert len(rows) == len(table)
    return rows


def test_kernels(report):
    table = report("train", 2, 3)["cuda_gpu_kern_sum"]
    rows = by_name(table)
    native = rows["void at::native::kernel_number<1, float>(float*, float, int)"]
    assert native["instances"] == 18 and native["total_ns"] == 90000
    for key in ("mean_ns", "median_ns", "min_ns", "p95_ns", "max_ns"):
        assert native[key] == 5000
    assert rows["graph_kernel"]["instances"] == 24
    assert rows["ncclKernel_AllReduce"]["total_ns"] == 120000
    assert abs(sum(row["share"] for row in table) - 1) < 0.001
    assert [row["total_ns"] for row in table] == sorted((row["total_ns"] for row in table),
                                                       reverse=True)


def test_kernels_by_grid(report):
    names = by_name(report("train", 1, 1, "--by=grid")["cuda_gpu_kern_sum"])
    assert "graph_kernel <<<264x1x1, 256x1x1>>>" in names and len(names) == 3


def test_copies(report):
    made = report("train", 2, 3)
    rows = by_name(made["cuda_gpu_mem_time_sum"])
    host = rows["[CUDA memcpy Host-to-Device]"]
    assert host["instances"] == 6 and host["bytes"] == 48000 and host["bandwidth_gb_s"] == 2
    assert rows["[CUDA memcpy Peer-to-Peer]"]["bandwidth_gb_s"] == 500
    assert rows["[CUDA memset]"]["total_ns"] == 6000
    sizes = by_name(made["cuda_gpu_mem_size_sum"])
    assert sizes["[CUDA memcpy Host-to-Device]"]["mean_bytes"] == 8000
    assert sizes["[CUDA memset]"]["total_bytes"] == 6 * 4096


def test_devices(report):
    rows = by_name(report("train", 2, 3)["gpu_time_util"])
    for rank in range(2):
        found = {name.partition(": ")[2]: row["total_ns"] for name, row in rows.items()
                 if name.startswith(f"rank {rank}, GPU {rank}: ")}
        # Of each step: copy 4, kernels 15, nccl 20 with the others within, peer 2, graph 3.
        assert found == {"from first to last work": 270000, "busy": 3 * 44000,
                         "idle": 270000 - 132000, "in kernels": 3 * 38000,
                         "in copies and sets": 3 * 7000,
                         "copies and sets during kernels": 3 * 1000}


def test_launches_and_ranges(report):
    made = report("train", 1, 2)
    launches = by_name(made["cuda_kern_exec_sum"])
    # Of eight kernels a step, four have one launch, of a graph: it is one call.
    assert {name: row["instances"] for name, row in launches.items()} == \
        {"launch latency": 16, "queue time": 16, "call": 10}
    assert launches["launch latency"]["min_ns"] == 6000
    assert launches["launch latency"]["max_ns"] == 24000
    assert launches["queue time"]["min_ns"] == 5500 and launches["call"]["min_ns"] == 400
    ranges = by_name(made["nvtx_sum"])
    assert ranges["forward"]["instances"] == 2 and ranges["forward"]["total_ns"] == 2 * 7980
    assert ranges["epoch"]["instances"] == 1
    projected = by_name(made["nvtx_gpu_proj_sum"])
    assert projected["forward"]["instances"] == 2 and projected["forward"]["total_ns"] == 2 * 20000
    # On two streams, one of them with a collective: from the first work to the end of the last.
    assert projected["backward"]["instances"] == 2
    assert projected["backward"]["total_ns"] == 2 * (75000 - 26000)
    assert by_name(made["overhead_sum"])["Lazy Function Loading"]["total_ns"] == 600
    assert by_name(made["cuda_sync_sum"])["Stream Sync"]["max_ns"] == 44800
    assert by_name(made["cuda_gpu_graph_sum"])["CUDA graph 9"]["instances"] == 2
    memory, = made["gpu_memory_peak"]
    assert memory == {"name": "rank 0, GPU 0: most allocated", "bytes": 2 * 2**20}
    assert made["threads"] == 2 and made["gpu_rows"] == "present"


def test_memory_of_pools(report):
    rows = by_name(report("pools", 1, 1)["gpu_memory_peak"])
    assert {name: row["bytes"] for name, row in rows.items()} == {
        "GPU 0: most allocated": 9492, "GPU 0: most reserved, pools included": 11240}


def test_ranges_of_threads_that_share_a_stream(report):
    rows = by_name(report("shared", 1, 1)["nvtx_gpu_proj_sum"])
    assert {name: (row["instances"], row["total_ns"]) for name, row in rows.items()} == {
        "step": (1, 13000), "inner": (1, 9000), "backward": (1, 9000)}


def test_summary_of_a_run(run_collector, program, library):
    """What the devices did in a line, or why nothing of it is known."""
    assert library.exists()
    done = run_collector("run", "-o", "on", program("demo"))
    assert done.returncode == 0, done.stderr
    shown = re.search(r"^  GPU time   compute ([0-9.]+)%  communication ([0-9.]+)%  "
                      r"copies ([0-9.]+)%  idle ([0-9.]+)%$", done.stderr, re.MULTILINE)
    made = json.loads(run_collector("report", "--format=json", "on").stdout)
    rows = made["gpu_time"]
    for share, key in zip(shown.groups(), ("compute_ns", "communication_ns", "copies_ns",
                                           "idle_ns")):
        own = [row["idle_start_up_ns"] for row in rows]
        exact = (sum(row[key] for row in rows) - (key == "idle_ns") * sum(own)) / \
            (sum(row["window_ns"] for row in rows) - sum(own))
        assert abs(float(share) - 100 * exact) < 0.06
    rows = made["gpu_time_util"]
    idle, = [row for row in rows if re.search("GPU 0: idle$", row["name"])]
    whole, = [row for row in rows if re.search("GPU 0: from first to last work$", row["name"])]
    assert abs(idle["share"] - idle["total_ns"] / whole["total_ns"]) < 0.0001
    assert "share" not in whole
    text = run_collector("report", "--full", "on").stdout
    shown = re.search(r"^ +([0-9.]+)% .*GPU 0: idle$", text, re.MULTILINE)
    assert shown and abs(float(shown[1]) - 100 * idle["share"]) < 0.06
    done = run_collector("run", "-o", "off", "--gpu=off", program("demo"))
    assert done.returncode == 0
    assert "\n  GPU        rows absent: turned off (GPUPROF_GPU)\n" in done.stderr


def test_text(run_collector, make_gpu):
    data = make_gpu("train", 1, 2)
    text = run_collector("report", data).stdout
    shown = ("GPU kernels", "GPU copies and sets", "GPU graphs", "calls", "ranges (host)",
             "GPU memory")
    further = {"cuda_sync_sum": "synchronizations",
               "cuda_kern_exec_sum": "time from launch to kernel",
               "nvtx_gpu_proj_sum": "ranges (projected on the GPU)",
               "overhead_sum": "overhead of CUDA and CUPTI", "gpu_time_util": "GPU utilization"}
    places = [text.index(f"\n{heading}\n") for heading in shown]
    assert places == sorted(places), "what tells most comes first"
    others = text.partition("\nmore, with --full or --table=NAME:\n")[2].partition("\n\n")[0]
    whole = run_collector("report", "--full", data).stdout
    for name, heading in further.items():
        assert f"\n{heading}\n" not in text and f"\n{heading}\n" in whole
        assert name in others.split()
    assert not set(others.split()) & {"cuda_gpu_kern_sum", "functions", "ops", "steps"}
    assert max(map(len, others.splitlines())) <= 80 and "more, with --full" not in whole
    assert "2.0 MiB  rank 0, GPU 0: most allocated" in text and "losses" not in text


def test_csv(run_collector, make_gpu):
    """A block for each table that has rows."""
    text = run_collector("report", "--format=csv", make_gpu("loss", 1, 2)).stdout
    tables = csv_tables.tables(text)
    assert set(tables) - {"findings"} == {
        "functions", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum",
        "cuda_gpu_graph_sum", "cuda_sync_sum", "cuda_kern_exec_sum", "nvtx_sum",
        "nvtx_gpu_proj_sum", "overhead_sum", "gpu_time_util", "gpu_memory_peak", "losses",
        "gpu_time", "idle", "ranks", "clocks"}
    [copy] = [row for row in tables["cuda_gpu_mem_time_sum"]
              if row["name"] == "[CUDA memcpy Host-to-Device]"]
    assert (copy["instances"], copy["bytes"]) == ("2", "16000")
    assert {row["name"]: row["count"] for row in tables["losses"]} == \
        {"gpu_missing": "1", "gpu_unpaired": "1", "gpu_untied": "1"}
    text = run_collector("report", "--table=losses", make_gpu("loss", 1, 2, name="text")).stdout
    assert "\nlosses and notes\n         count  what\n" in text
    assert "1  launches without a correlation ID\n" in text  # some may be missing
    assert "1  GPU work whose call is not recorded (nothing is missing)\n" in text


def test_wrong_usage(run_collector):
    result = run_collector("report", "--by=stream", "x")
    assert result.returncode == 2 and "--by: 'stream' is not one of name|grid" in result.stderr


def test_dump(run_collector, make_gpu):
    """Every kind of record, as it has been shown and looked at once."""
    made = run_collector("dump", make_gpu("loss", 1, 1)).stdout.splitlines()
    lines = [line for line in made if line.split()[0] not in ("file", "header", "block", "api")]
    golden = HERE / "gpu.dump"
    assert lines == golden.read_text().splitlines()
    assert {line.split()[0] for line in lines} >= {
        "kernel", "copy", "set", "sync", "graph", "overhead", "memory", "device", "context",
        "stream", "kernel_name", "push", "pop", "range_start", "range_end", "mark", "label", "step",
        "pause"}


def test_memory_is_flat(make_gpu):
    """With more launches than the correlation keeps in memory."""
    peaks = []
    for calls in (200_000, 1_600_000):
        folder = make_gpu("bench", calls, name=f"bench{calls}")
        peaks.append(toolchain.peak_kib(built(BUILD / "gpuprof-collector"), "merge",
                                        "-o", "/dev/null", folder))
    assert peaks[1] < 1.2 * peaks[0] + 1024, peaks


def test_devices_of_many_processes(run_verb, make_gpu):
    """The text shows those of 16; --limit and the other forms have all."""
    folder = make_gpu("train", 40, 1)
    def table(title, *options):
        text = run_verb("report", folder, *options).stdout
        return text.partition(f"\n\n{title}\n")[2].partition("\n\n")[0].splitlines()
    use, memory = table("GPU utilization", "--full"), table("GPU memory", "--full")
    assert len(use) == 16 * 6 + 1 and "rank 15, GPU 15: copies and sets" in use[-2]
    assert use[-1].split() == "... and 144 more rows; --limit=N shows more of them".split()
    assert len(memory) == 33 and memory[-1].strip().startswith("... and 8 more rows; --limit=N")
    for title, rows in (("GPU utilization", 240), ("GPU memory", 40)):
        assert len(table(title, "--full", "--limit=1000")) == rows
    assert len(table("GPU memory")) == 11 and "... and 30 more: --full" in table("GPU memory")[-1]
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert (len(report["gpu_time_util"]), len(report["gpu_memory_peak"])) == (240, 40)


def test_rows_left_out_of_one_device(run_verb, make_gpu):
    text = run_verb("report", "--full", "--limit=3", make_gpu("train", 1, 1)).stdout
    use = text.partition("\n\nGPU utilization\n")[2].partition("\n\n")[0].splitlines()
    assert len(use) == 4 and "... and 3 more rows" in use[-1]
