# SPDX-License-Identifier: Apache-2.0
"""Waits that only a real device has, and what gpuprof's threads and CUPTI's callbacks do meanwhile
(habits_work.py)."""

import json
import sys

import gpu_dump
from gpu_table import HERE, collect, recording_environment, row, run, tail

KERNELS, LAUNCHES = 4, 100  # of a step; in the pause twice, and behind it
SILENT_NS = 9_000_000  # a little less than the program is silent for


def check_silences(process, said):
    """A thread that computes has the processor, and one that sleeps has not. The looks have a
    bound, and a machine may have other things to do: a quarter is enough."""
    long = [s for s in process.silences if SILENT_NS < s.silent < 2 * SILENT_NS]
    computed = sum(s.cpu - (s.since - s.silent) > s.silent / 2 for s in long)
    slept = sum(s.cpu < s.silent / 2 for s in long)
    row("habits: silences", computed > said["compute"] / 4 and slept > said["sleep"] / 4,
        f"the thread ran in {computed} of {said['compute']} in which it computed, and did not in "
        f"{slept} of {said['sleep']} in which it slept")


def check_looks(process, said):
    """The same by a thread that looks meanwhile; while the program waits for the device it does
    not. Of all the time in silences the looks know at least a quarter: the first millisecond is
    none, and what they cost when a program begins has a bound."""
    ran = sum(look.ns for look in process.looks if look.state == "R") / 1e9
    slept = sum(look.ns for look in process.looks if look.syscall) / 1e9
    row("habits: looks into gaps", ran > said["compute"] * SILENT_NS / 4e9 and
        slept > said["sleep"] * SILENT_NS / 4e9,
        f"it ran for {ran:.2f} s and waited for {slept:.2f} s in {len(process.looks)} looks")


def check_samples(process, said):
    """Samples by CPU timers know all of the CPU time that the program says it computed for."""
    computed, sampled = said["compute"] * SILENT_NS / 1e9, process.sampled_ns / 1e9
    row("habits: samples of the CPU", sampled > computed * .9,
        f"{sampled:.2f} s of CPU time, of which the program computed for {computed:.2f} s")


def check_habits(folder):
    done = run([sys.executable, HERE / "habits_work.py"],
               recording_environment(folder, GPUPROF_GPU_FLUSH="10ms", GPUPROF_GAPS="on",
                                     GPUPROF_SAMPLE="100"))
    said = {word: int(number) for word, number in map(str.split, done.stdout.splitlines())}
    row("habits: setuid after CUDA has begun", "setuid" in said,
        "it returned" if "setuid" in said else f"status {done.status}: {tail(done.stderr)}")
    if done.status:
        row("habits: program", False, f"status {done.status}: {tail(done.stderr)}")
        return
    report = json.loads(collect("report", "--format=json", folder).stdout)
    ids = [finding["id"] for finding in report["findings"]]
    idle = report["overview"]["idle"] or {}
    for step, cause, finding in (("item", "sync", "sync-in-loop"),
                                 ("free", "allocation", "allocation-churn")):
        row(f"habits: {step} in each step", finding in ids,
            f"{said[step]} steps; idle: {idle.get(cause, 0) / 1e6:.0f} ms of {cause}, "
            f"{idle.get('host', 0) / 1e6:.0f} of host; findings: {', '.join(ids)}")
    process = gpu_dump.read_one(folder)
    own = {process.owner(kernel.correlation) for kernel in process.done("kernel")}
    launches = process.of("launch")
    check_silences(process, said)
    check_looks(process, said)
    check_samples(process, said)
    wanted = KERNELS * (said["item"] + said["free"]) + said["compute"] + said["sleep"] + LAUNCHES
    missing = sum(call.correlation not in own for call in launches)
    row("habits: callbacks in a pause", len(launches) == wanted and not missing,
        f"a launch took {said['stopped_ns']} ns just after the stop, {said['rested_ns']} ns a "
        f"second later, {said['recorded_ns']} ns recorded again; {len(launches)} of {wanted} "
        f"launches, {missing} without a kernel")
