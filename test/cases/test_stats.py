# SPDX-License-Identifier: Apache-2.0
"""gpuprof stats: tables by nsys' names; each known name prints what `report` does, or says why
not."""

import re

import pytest

import csv_tables
from conftest import ROOT

ROW = re.compile(r'STATS_REPORT\((\w+), "(\w*)",\s+"([\w,]*)", BY_(\w+),\s+"(.*)"\)')
REPORTS = [match.groups() for match in ROW.finditer(
    (ROOT / "collector/export/stats_reports.def").read_text())]
THERE = [row for row in REPORTS if row[2]]


@pytest.fixture(name="folder")
def fixture_folder(make_gpu):
    return make_gpu("train", 2, 6)


def test_each_name_is_the_reports_table(folder, run_collector):
    """Nobody but the table's own row says which; the list of names is nsys'."""
    assert {"cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum",
            "nvtx_sum", "nvtx_pushpop_sum", "nvtx_gpu_proj_sum", "gpu_gaps", "gpu_time_util",
            "cuda_kern_exec_sum", "nccl_sum", "nccl_gpu_proj_sum"} <= {row[0] for row in THERE}
    for name, old_name, tables, by, note in THERE:
        stats = run_collector("stats", name, folder)
        report = run_collector("report", f"--table={tables}", f"--by={by.lower()}", folder)
        assert stats.returncode == report.returncode == 0 and report.stdout.strip(), name
        assert stats.stdout == report.stdout, name
        assert stats.stderr == (f"gpuprof: stats: {name}: {note}\n" if note else ""), name
        by_option = run_collector("stats", folder, "--report", name)
        assert (by_option.stdout, by_option.stderr) == (stats.stdout, stats.stderr), name
        if old_name:
            assert run_collector("stats", old_name, folder).stdout == stats.stdout
    kernels = run_collector("stats", "cuda_gpu_kern_sum", folder, "--format=csv").stdout
    assert "graph_kernel" in kernels and "cudaLaunchKernel" not in kernels
    assert "cudaLaunchKernel" in run_collector("stats", "cuda_api_sum", folder).stdout
    gaps = run_collector("stats", "gpu_gaps", folder).stdout
    assert "GPU idle time by cause" in gaps and "GPU time by activity" in gaps
    grids = run_collector("stats", "cuda_gpu_kern_gb_sum", "--format=csv", folder).stdout
    assert grids != kernels and "264" in grids


def test_what_is_not_there_is_said(folder, run_collector):
    for name, _, tables, _, note in REPORTS:
        if not tables:
            result = run_collector("stats", name, folder)
            assert (result.returncode, result.stdout) == (2, "") and note, name
            assert result.stderr == f"gpuprof: stats: {name} is not available: {note}\n"
    result = run_collector("stats", "cuda_gpu_kern_summ", folder)
    assert result.returncode == 2 and "(did you mean cuda_gpu_kern_sum?)" in result.stderr
    there = re.findall(r"\w+", result.stderr.rpartition("the reports are ")[2])
    assert all((name in there) == bool(tables) for name, _, tables, *_ in REPORTS)


def test_how_names_are_shown(folder, run_collector):
    """nsys' suffixes change nothing here."""
    for name in ("cuda_gpu_kern_sum", "cuda_gpu_trace"):
        plain = run_collector("stats", name, folder)
        for suffix in (":base", ":mangled", ":base:mangled"):
            done = run_collector("stats", name + suffix, folder)
            assert done.returncode == 0 and done.stdout == plain.stdout
    both = run_collector("stats", "cuda_gpu_kern_sum:base,cuda_api_sum", folder)
    assert both.stdout == run_collector("stats", "cuda_gpu_kern_sum,cuda_api_sum", folder).stdout


@pytest.mark.parametrize("words, error", [
    (["{}"], "; the reports are cuda_gpu_kern_sum, "),
    (["nvtx_sum"], "name recordings (folders or files) after"),
    (["nvtx_sum,", "{}"], "unknown report ''"),
    (["-q", "nvtx_sum", "{}"], "unknown option '-q'"),
    (["nvtx_sum,cuda_gpu_kern_gb_sum", "{}"], "cannot be combined with the others"),
    (["nvtx_sum", "{}", "-o", "x.html"], "cannot write a page; use"),
    (["nvtx_sum,cuda_gpu_trace", "{}"],
     "cuda_gpu_trace is not a table, and cannot be combined with others; ask"),
    (["cuda_gpu_trace"], "name recordings (folders or files) after"),
    (["-r", "cuda_gpu_kern_sum"], "name a data folder or a recording"),
    (["cuda_gpu_trace", "--limit=3", "{}"], "--sort, --limit and --kind do not apply"),
    (["-f", "table", "-r", "cuda_gpu_trace", "{}"], "one row per event of the kinds work, as csv"),
    (["cuda_gpu_trace", "--format=column", "{}"], "cuda_gpu_trace has one row per event"),
    (["cuda_gpu_trace", "--kind=call", "{}"], "of the kinds work, as csv")],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value))
def test_what_cannot_be_meant(folder, run_collector, words, error):
    result = run_collector("stats", *(word.format(folder) for word in words))
    assert result.returncode == 2 and error in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_options_of_the_report(folder, run_collector, tmp_path):
    whole, piece = (run_collector("stats", "cuda_api_sum,nvtx_sum", "--format=csv", *words,
                                  folder).stdout for words in ([], ["--step=2"]))
    assert whole != piece
    assert list(csv_tables.tables(whole)) == list(csv_tables.tables(piece)) == \
        ["functions", "nvtx_sum"]
    rows = run_collector("stats", "-r", "cuda_api_sum,nvtx_sum", "-f", "csv", folder)
    text = run_collector("stats", "-fcolumn", "nvtx_sum", folder)
    assert rows.stdout == whole and text.stdout == run_collector("stats", "nvtx_sum", folder).stdout
    assert run_collector("stats", "nvtx_sum", folder, "-o", "x.json", "--limit=1").returncode == 0
    assert (tmp_path / "x.json").read_text().startswith("{")


@pytest.mark.parametrize("name, old_name, kinds", [
    ("cuda_gpu_trace", "gputrace", "work"), ("cuda_api_trace", "cudaapitrace", "call"),
    ("cuda_kern_exec_trace", "kernexectrace", "launch,kernel"),
    ("nvtx_pushpop_trace", "nvtxpptrace", "range")])
def test_a_row_an_event(folder, run_collector, tmp_path, name, old_name, kinds):
    stats, old, export = (run_collector(*words, folder) for words in (
        ("stats", name), ("stats", old_name),
        ("export", "--format=csv", f"--kind={kinds}", "-o", "-")))
    assert stats.returncode == export.returncode == 0 and stats.stdout == export.stdout
    assert stats.stdout.count("\n") > 20 and old.stdout == stats.stdout
    assert stats.stderr.startswith(f"gpuprof: stats: {name}: ")
    assert run_collector("stats", name, folder, "-o", "x.json").returncode == 0
    assert (tmp_path / "x.json").read_text().startswith('{"kind":')
