# SPDX-License-Identifier: Apache-2.0
"""The collector on what was recorded, and other people's loaders on its trace."""

import contextlib
import json
import sqlite3
import sys

import gpu_dump
from gpu_table import (FAILED, bare_environment, collect, find_torch, not_run,
                       recording_environment, row, run, tail)

LAUNCHES = 2000
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
frame = analysis.get_temporal_breakdown(visualize=False)
kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
print(len(frame), "ranks,", len(kernels[1]), "kernels")
"""
TB = """
import sys
from torch_tb_profiler.profiler.data import RunProfileData
data = RunProfileData.parse("worker", 1, sys.argv[1], sys.argv[2])
profile = data.process()
print(len(data.events), "events")
"""


def check_all(folder, program, trained):
    """`program`: (command, settings); `trained`: folder of a recorded training loop, or None."""
    recordings = {}
    if program:
        command, settings = program
        out = folder / "consumed"
        done = run([*command, str(LAUNCHES)], recording_environment(out, **settings))
        if done.status:
            row("merge", FAILED, f"the program ended with {done.status}: {tail(done.stderr)}")
        else:
            recordings["program"] = out
    if trained:
        recordings["training"] = trained
    if not recordings:
        not_run("merge, report, loaders", "nothing was recorded")
    for label, out in recordings.items():
        trace = folder / f"{label}.pt.trace.json"
        if check_merge(label, out, trace):
            check_report(label, out)
            check_pieces(label, out, trace)
            check_export(label, out, folder / f"{label}.sqlite")
            check_loader(f"Holistic Trace Analysis on the {label}'s trace", "hta", HTA, trace)
            check_loader(f"torch_tb_profiler on the {label}'s trace", "torch_tb_profiler", TB,
                         trace, folder)


def check_merge(label, out, trace):
    """Valid JSON with as many events of the device as were recorded."""
    name = f"merge of the {label}"
    done = collect("merge", out, "-o", trace)
    if done.status:
        return row(name, FAILED, f"status {done.status}: {tail(done.stderr)}")
    try:
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except (ValueError, KeyError) as error:
        return row(name, FAILED, f"not a trace: {error}")
    kernels = sum(e.get("ph") == "X" and e.get("cat") == "kernel" for e in events)
    recorded = sum(len(p.done("kernel")) for p in gpu_dump.read(out))
    return row(name, kernels == recorded,
               f"valid JSON, {len(events)} events, {kernels} kernels of {recorded} recorded")


def check_report(label, out):
    done = collect("report", "--format=json", "--strict", out)
    try:
        size = len(json.loads(done.stdout))
    except ValueError as error:
        row(f"report of the {label}", FAILED, f"status {done.status}, not JSON: {error}")
        return
    row(f"report of the {label}", done.status == 0,
        f"--strict ended with {done.status}, JSON with {size} members")


def check_pieces(label, out, trace):
    """What two halves of it have adds up to the whole; in SQL's words, WHERE ts < half."""
    with open(trace, encoding="utf-8") as file:
        begins = [e["ts"] for e in json.load(file)["traceEvents"]
                  if e.get("ph") == "X" and e.get("cat") == "kernel"]
    half = f"{int(sorted(begins)[len(begins) // 2])}us" if begins else "1ms"
    counts = []
    for piece in (["--to", half], ["--from", half], []):
        done = collect("report", "--format=json", *piece, out)
        if done.status:
            return row(f"pieces of the {label}", FAILED, f"status {done.status}: "
                       f"{tail(done.stderr)}")
        counts.append(sum(k["instances"] for k in
                          json.loads(done.stdout)["cuda_gpu_kern_sum"]))
    return row(f"pieces of the {label}", counts[0] + counts[1] == counts[2],
               f"kernels before and from {half} on, and of the whole: {counts}")


def check_export(label, out, path):
    """SQL finds each kernel that was recorded, and the calls of those that the report ties."""
    name = f"SQLite export of the {label}"
    done = collect("export", out, "-o", path)
    if done.status:
        row(name, FAILED, f"status {done.status}: {tail(done.stderr)}")
        return
    with contextlib.closing(sqlite3.connect(path)) as base:
        whole, = base.execute("PRAGMA integrity_check").fetchone()
        kernels, = base.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        called, = base.execute(
            "SELECT count(DISTINCT k.rowid) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN "
            "CUPTI_ACTIVITY_KIND_RUNTIME USING (correlationId)").fetchone()
        losses = dict(base.execute("SELECT name, sum(value) FROM GPUPROF_LOSSES GROUP BY name"))
    recorded = sum(len(p.done("kernel")) for p in gpu_dump.read(out))
    row(name, whole == "ok" and kernels == recorded and
        called >= kernels - losses.get("gpu_unpaired", 0) - losses.get("gpu_given_up", 0),
        f"{kernels} kernels of {recorded} recorded, {called} with their calls; integrity {whole}")


def check_loader(name, module, program, *arguments):
    python = find_torch()[0] or sys.executable  # they are installed where PyTorch is
    if run([python, "-c", f"import {module}"], bare_environment()).status:
        not_run(name, f"{module} is not installed")
        return
    done = run([python, "-c", program, *arguments], bare_environment())
    row(name, done.status == 0, tail(done.stderr if done.status else done.stdout))
