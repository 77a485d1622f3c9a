# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators in reports, held against what the records say, one by one."""

import itertools
import json
import os

import csv_tables
import pytest
import stream_reader
import toolchain

from op_truth import (Expected, check_arrows, check_owners, check_projected,
                      check_tables, check_trace)

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("by,seed", itertools.product(("name", "shape", "stack", "range"), SEEDS))
def test_tables(make_ops, run_verb, by, seed):
    folder = make_ops(1 + seed % 3, 700, seed)
    expected = Expected(stream_reader.read_folder(folder), by)
    assert expected.under_none and expected.traced and len(expected.rows) > 12
    assert any(sums.backward_gpu for sums in expected.rows.values())
    report = json.loads(run_verb("report", "--format=json", f"--by={by}", folder).stdout)
    check_tables(report, expected)
    assert report["losses"]["unmatched_ops"] > 0


def test_text(make_ops, run_verb):
    folder = make_ops(1, 700, 2)
    expected = Expected(stream_reader.read_folder(folder))
    lines = run_verb("report", "--table=ops", folder).stdout.splitlines()
    title = lines.index("PyTorch's operators")
    share = 100 * expected.under_none / expected.gpu
    assert lines[title + 1].startswith(f"GPU time under no operator: {share:.1f}% (")
    assert lines[title + 2].startswith("FLOPs known for ")
    assert lines[title + 3].split() == \
        ("of GPU self GPU GPU of CPU self CPU CPU calls backward GPU backward CPU FLOPs "
         "FLOPs (fc) TFLOP/s name").split()
    assert any(line.endswith("  (under no operator)") for line in lines[title + 4:])
    assert "GPU time under no operator" in lines[title + 4:]
    assert "PyTorch's labels (the table above includes their operators)" not in lines


def test_csv(make_ops, run_verb):
    folder = make_ops(1, 700, 2)
    expected = Expected(stream_reader.read_folder(folder))
    tables = csv_tables.check(*(run_verb("report", f"--format={form}", folder).stdout
                                for form in ("csv", "json")))
    assert sum(int(row["gpu_ns"]) for row in tables["ops_under_none"]) == expected.under_none
    assert int({row["name"]: row for row in tables["ops"]}["aten::mm"]["flops_calls"]) > 0
    keys = ("calls", "self_cpu_ns", "cpu_ns", "self_gpu_ns", "gpu_ns", "backward_cpu_ns",
            "backward_gpu_ns")
    found = {(is_label, row["name"]): tuple(int(row[key] or 0) for key in keys)
             for is_label, name in enumerate(("ops", "labels")) for row in tables[name]}
    assert found.pop((0, "(under no operator)"))[3:5] == (expected.under_none,) * 2
    assert found == {(is_label, name): sums.all_values()
                     for (is_label, name, _), sums in expected.rows.items()}


def peak_mib(*command):
    return toolchain.peak_kib(*command) / 1024


@pytest.mark.parametrize("kind,count,most", (
    ("deep", 300_000, 40), ("open", 300_000, 40), ("names", 100_000, 40), ("inputs", 20_000, 60),
    ("numbers", 100_000, 20), ("crossing", 100_000, 20)))
def test_memory_of_a_hostile_file(make_ops, collector, kind, count, most):
    """A file of less than a MiB that is made for it; GUIDE has the bounds of larger ones."""
    folder = make_ops("hostile", kind, count)
    assert peak_mib(collector, "report", "--by=shape", folder) < most
    assert peak_mib(collector, "merge", "-o", os.devnull, folder) < most


@pytest.mark.long
@pytest.mark.parametrize("kind,count", (
    ("deep", 4_000_000), ("open", 3_000_000), ("names", 6_000_000), ("inputs", 500_000)))
def test_memory_of_a_large_hostile_file(make_ops, collector, kind, count):
    folder = make_ops("hostile", kind, count)
    most = 300 + 8 * sum(path.stat().st_size for path in folder.iterdir()) / (1 << 20)
    assert peak_mib(collector, "report", "--by=shape", folder) < most
    assert peak_mib(collector, "merge", "-o", os.devnull, folder) < most


def test_none(make_gpu, run_verb):
    """A recording without operators says nothing of them, unless asked."""
    folder = make_gpu("train", 1, 1)
    text = run_verb("report", folder).stdout
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert "operator" not in text and not [key for key in report if key.startswith("ops")]
    text = run_verb("report", "--table=ops", folder).stdout
    assert text == ("\nPyTorch's operators\n  none: no operators were recorded; "
                    "'gpuprof run --pytorch=shapes' records them\n")
    folder = make_gpu("train", 1, 3, name="steps")
    for table, hint in (("labels", "no labels were recorded"), ("phases", "no phase is known")):
        text = run_verb("report", f"--table={table}", folder).stdout
        assert hint in text and "gpuprof run --pytorch=names" in text
        assert "0.0%" not in text  # rows of nothing are no answer
    phases = json.loads(run_verb("report", "--table=phases", "--format=json", folder).stdout)
    assert [row["host_share"] for row in phases["phases"]] == [0] * 6 + [1]
    named = json.loads(run_verb("report", "--table=ops", "--format=json", folder).stdout)
    assert named["ops"] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_trace(make_ops, run_verb, seed):
    folder = make_ops(1, 1500, seed)
    [process] = stream_reader.read_folder(folder)
    trace = json.loads(run_verb("merge", folder).stdout)
    events, ops, ids, slices = check_trace(trace, process)
    assert check_owners(events, ops, ids, process) > 100
    assert check_arrows(trace, ops, ids, slices)


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_on_the_device(make_ops, run_verb, seed):
    """From the first to the last work begun in it, with ranges of NVTX between them."""
    folder = make_ops(1, 1500, seed, "tidy")
    [process] = stream_reader.read_folder(folder)
    trace = json.loads(run_verb("merge", folder).stdout)
    check_trace(trace, process)
    assert check_projected(trace, process) > 50


def test_head(make_ops, run_verb):
    """What torch.profiler says of a trace, where it is so of ours."""
    folder = make_ops(2, 100, 1)
    both = json.loads(run_verb("merge", folder).stdout)
    one = json.loads(run_verb("merge", folder / "0.gpuprof").stdout)
    for trace in both, one:
        assert trace["record_shapes"] == 1
        assert trace["cupti_version"] == 130001 and trace["cuda_driver_version"] == 13000
        assert not {"with_flops", "with_modules", "with_stack", "profile_memory",
                    "cuda_runtime_version"} & set(trace)
    # A trace of two processes has no id: each of them has one.
    process = stream_reader.read_stream(folder / "0.gpuprof")
    assert "trace_id" not in both and one["trace_id"] == process.header.process_id.hex()
    labels = {e["pid"]: e["args"]["labels"] for e in one["traceEvents"]
              if e["name"] == "process_labels"}
    named = {e["pid"] for e in one["traceEvents"] if e["name"] == "process_name"}
    assert set(labels) == named and sorted(labels.values()) == ["CPU", "GPU 0"]


def test_head_without_inputs(make_gpu, run_verb):
    trace = json.loads(run_verb("merge", make_gpu("train", 1, 1)).stdout)
    assert not {"record_shapes", "cupti_version", "cuda_driver_version"} & set(trace)
