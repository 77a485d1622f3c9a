# SPDX-License-Identifier: Apache-2.0
"""What the simulated CUDA's own log says of the programs of src/faults.py: how long their devices
worked, how long they stood idle, and what their fault cost."""

import collections
import dataclasses
import json
import pathlib
import re
import signal

import conftest
import toolchain
import truth

NEAR_NS = 50_000  # GUIDE: calls that are closer follow each other at once
ASKED = "cuDeviceGet", "cuDeviceTotalMem"  # by gpuprof itself, on a thread of its own


@dataclasses.dataclass(slots=True)
class Span:
    """Work of a device, or a call: `values` are its arguments."""
    what: str
    begin: int
    end: int
    values: dict

    @property
    def ns(self):
        return self.end - self.begin


class Process:
    """One process's log: its device's work in the order of its begins, and the calls of its
    program. A call that has not returned ends with 0."""

    def __init__(self, path):
        self.pid = int(pathlib.Path(path).name.partition(".")[0])
        self.work, self.calls = [], []
        for text in truth.log_lines(path):
            _, _, layer, depth, what, begin, end, _, _, *args = text.split("\t")
            span = Span(what, int(begin), int(end), dict(a.split("=", 1) for a in args))
            if layer == "G" and what != "graph":
                self.work.append(span)
            elif layer in "RD" and depth == "0" and not what.startswith(ASKED):
                self.calls.append(span)
        self.work.sort(key=lambda span: (span.begin, span.end))

    def kernels(self, *words):
        return [span for span in self.work if span.what == "kernel" and
                (not words or any(word in span.values["name"] for word in words))]

    def computing(self):
        return [kernel for kernel in self.kernels() if "nccl" not in kernel.values["name"]]

    def copies(self):
        return [span for span in self.work if span.what == "memcpy"]


def union(spans):
    """Disjoint (begin, end) that cover the same time, in order."""
    parts = []
    for begin, end in sorted((span.begin, span.end) for span in spans):
        if parts and begin <= parts[-1][1]:
            parts[-1][1] = max(parts[-1][1], end)
        else:
            parts.append([begin, end])
    return parts


def total(parts):
    return sum(end - begin for begin, end in parts)


def alone(spans, others):
    """Nanoseconds in which one of the spans runs and none of the others does."""
    return total(union([*spans, *others])) - total(union(others))


def gaps(spans):
    parts = union(spans)
    return [(before[1], after[0]) for before, after in zip(parts, parts[1:])]


def overlap(spans, parts):
    """Nanoseconds that both cover."""
    ours = union(spans)
    theirs = [Span("", begin, end, {}) for begin, end in parts]
    return total(ours) + total(union(theirs)) - total(union([*spans, *theirs]))


def between(calls):
    """The program's own code, between calls that do not follow each other at once."""
    return [Span("", before.end, after.begin, {}) for before, after in zip(calls, calls[1:])
            if after.begin - before.end >= NEAR_NS]


def calls_of(process, *words):
    return [call for call in process.calls if any(word in call.what for word in words)]


def launches(process):
    idle = gaps(process.work)
    return total(idle) - overlap(between(process.calls), idle)


def own_code(process):
    return overlap(between(process.calls), gaps(process.work))


def waited(process, word):
    """Behind calls that waited for the device: of each gap what is in the call, and of the rest as
    much as the wait took, since that long the host could have gone on."""
    waits, cost = calls_of(process, word), 0
    for begin, end in gaps(process.work):
        cost += sum(min(call.end, end) - begin + min(max(end - call.end, 0), begin - call.begin)
                    for call in waits if call.begin < begin < call.end)
    return cost


def within(process, *words):
    """Idle in such calls."""
    return overlap(calls_of(process, *words), gaps(process.work))


def copies_alone(process):
    return alone(process.copies(), process.kernels())


def chains(process):
    """All but the longest kernel of each run of element-wise ones."""
    cost, run = 0, []
    for kernel in [*process.kernels(), None]:
        if kernel and "elementwise" in kernel.values["name"]:
            run.append(kernel.ns)
        else:
            cost += sum(run) - max(run, default=0)
            run = []
    return cost


def collectives(processes):
    """Of each, the kernels of all ranks, in their order."""
    return list(zip(*(process.kernels("nccl") for process in processes)))


def waits(processes):
    """By rank: how long its communication stood alone and waited for ranks that had not come."""
    rows = collectives(processes)
    last = [max(kernel.begin for kernel in row) for row in rows]
    return [alone([Span("", row[rank].begin, begin, {}) for row, begin in zip(rows, last)],
                  process.computing()) for rank, process in enumerate(processes)]


def late(processes):
    """The rank that the others wait for longest, and how long in the mean."""
    cost = collections.Counter()
    for row in collectives(processes):
        begins = [kernel.begin for kernel in row]
        cost[begins.index(max(begins))] += sum(max(begins) - begin for begin in begins)
    rank, ns = cost.most_common(1)[0]
    return rank, ns / (len(processes) - 1)


def exposed(processes):
    """By rank: communication beside which nothing computes, but for those waits."""
    return [alone(process.kernels("nccl"), process.computing()) - wait
            for process, wait in zip(processes, waits(processes))]


PYTHON = "/usr/bin/python3"
WORLD = {"SIMCUDA_DEVICES": 4, "SIMCUDA_KERNEL_NS": 0, "SIMCUDA_BLOCK_NS": 1000,
         "SIMCUDA_COPY_BYTES_PER_US": 500, "SIMCUDA_LOG_GPU": 1,
         "GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.13"}
# Of the faulty program and the healthy one; CUDA_LAUNCH_BLOCKING is the fault itself.
SETTINGS = {"launch-bound": {"SIMCUDA_LAUNCH_NS": 40_000},
            "allocation-churn": {"SIMCUDA_ALLOC_NS": 1_500_000},
            "waiting-free": {"SIMCUDA_ALLOC_WAITS": 1}}
FAULTY = {"launch-blocking": {"CUDA_LAUNCH_BLOCKING": 1}}


class Run:
    """One scene, what its processes said of themselves, and their logs, by rank.
    `options` are those of gpuprof run, under which it is recorded; None: it is not. `program` is
    faults.py, or what was built of `source`."""

    def __init__(self, folder, scene, *words, options=None,
                 program=(PYTHON, toolchain.SOURCES / "faults.py"), source="faults.py"):
        self.data, log, meet = folder / "data", folder / "log", folder / "meet"
        log.mkdir()
        meet.mkdir()
        torch = toolchain.torch_ops()[1].rpartition(":")[2]
        settings = {**WORLD, **SETTINGS.get(scene, {}), **({} if words else FAULTY.get(scene, {})),
                    "SIMCUDA_LOG": log, "SIMCUDA_NCCL": folder / "board", "MEET": meet,
                    "LD_LIBRARY_PATH": f"{toolchain.SIM}:{torch}"}
        command = [*program, scene, *words]
        if options is not None:
            command = [conftest.ROOT / "scripts" / "gpuprof", "run", "--quiet", "-o", self.data,
                       *options, "--", *command]
        dies = scene == "hang" and not words
        done = toolchain.run(command, toolchain.environment(None, **settings),
                             status=-signal.SIGALRM if dies else 0)
        said = sorted(map(json.loads, done.stdout.splitlines()), key=lambda one: one["rank"])
        self.said = {one["pid"]: one for one in said}
        found = {process.pid: process for process in map(Process, log.iterdir())}
        self.processes = [found[pid] for pid in self.said]
        text = (toolchain.SOURCES / source).read_text().splitlines()
        self.lines = [f"{source}:{number}" for number, line in enumerate(text, 1)
                      if re.search(rf"(#|//) fault {scene}$", line)]

    def start_up(self, process):
        """From its begin to its first work."""
        return process.work[0].begin - self.said[process.pid]["began_ns"]
