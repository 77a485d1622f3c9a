# SPDX-License-Identifier: Apache-2.0
"""What the parts of bench.py share: programs run with and without the library, and figures told."""

import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
BENCH = os.path.join(BUILD, "bench")
LIBRARY = os.path.join(BUILD, "libgpuprof.so")
OS_LIBRARY = os.path.join(BUILD, "libgpuprof-os.so")
COLLECTOR = os.path.join(BUILD, "gpuprof-collector")
BENCH_DIR = os.path.dirname(os.path.abspath(__file__))
MIX = os.path.join(BENCH_DIR, "training-step.mix")
TMPFS = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
WORK = tempfile.mkdtemp(prefix="gpuprof-bench-", dir=TMPFS)
RUN_SECONDS_MAX = 120
FAULTS = 4  # of a round of call_cost: minor faults per call, each of which takes 0.5 to 3 us
WARM_FAULTS_MAX = 0.0005  # a first touch of all pages is 0.016: a record has 64 bytes

figures = []


def machine():
    """What the figures are of: processor, cores that may be used, kernel, date. A virtual machine
    may keep the processor's name for itself, but not its family and model."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        said = [[word.strip() for word in line.split(":", 1)] for line in file if ":" in line]
    first = dict(reversed(said))
    numbers = [f"{key} {first[key]}" for key in ("cpu family", "model", "stepping", "CPU part")
               if key in first]
    return {"cpu": ", ".join([first.get("model name", platform.machine()), *numbers]),
            "is_virtual": "hypervisor" in first.get("flags", "").split(),
            "cores": len(os.sched_getaffinity(0)), "cores_online": os.cpu_count(),
            "kernel": platform.release(), "load": os.getloadavg(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")}


def tell_machine(of):
    print(f"{of['cpu']}{' (virtual)' if of['is_virtual'] else ''}: {of['cores']} of "
          f"{of['cores_online']} cores, Linux {of['kernel']}, {of['date']}, load "
          + " ".join(f"{x:.1f}" for x in of["load"]), flush=True)


def tell(name, value, unit, goal=None, most=None, at_least=False, spread=None):
    """`goal` is wished for; ok or over refer to `most`, or to the goal where there is no `most`."""
    bound = most if most is not None else goal
    verdict = ""
    if bound is not None:
        verdict = "ok" if (value >= bound if at_least else value <= bound) else "over"
        if at_least and verdict == "over":
            verdict = "under"
    wish = "" if goal is None else f"goal {goal:g}"
    wish += "" if most is None else f", at most {most:g}"
    wide = "" if spread is None else f"[{spread[0]:.3g}..{spread[1]:.3g}]"
    print(f"{name:34} {value:12.4g} {unit:14} {wide:18} {wish:24} {verdict}".rstrip(), flush=True)
    figures.append({"name": name, "value": value, "unit": unit, "goal": goal, "at_most": most,
                    "quartiles": spread, "verdict": verdict or None})


def not_run(name, reason):
    print(f"{name:34} not run: {reason}", flush=True)
    figures.append({"name": name, "value": None, "not_run": reason})


def quartiles(values):
    values = sorted(values)
    return [values[len(values) // 4], values[(3 * len(values)) // 4]]


def run(command, preload=False, **settings):
    """Runs a program of the bench, under the library or not; its lines as lists of words."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPUPROF_")}
    environment.update(settings)
    if preload:
        libraries = [LIBRARY] + [OS_LIBRARY] * ("GPUPROF_OS" in settings)
        environment.update(LD_PRELOAD=":".join(libraries), GPUPROF_OUT=os.path.join(WORK, "out"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=WORK,
                          timeout=RUN_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{os.path.basename(command[0])}: {done.stderr.strip()[-300:]}")
    return [line.split() for line in done.stdout.splitlines()]


def drop_output():
    size = bytes_below(os.path.join(WORK, "out"))
    shutil.rmtree(os.path.join(WORK, "out"), ignore_errors=True)
    return size


def program(name):
    return os.path.join(BENCH, name)


def rounds_of(lines):
    return [[float(x) for x in line[1:]] for line in lines if line[0] == "round"]


def bytes_below(folder, wanted=lambda name: True):
    return sum(os.path.getsize(os.path.join(d, f))
               for d, _, files in os.walk(folder) for f in files if wanted(f))


class Cost:
    """Rounds of call_cost with and without the library, in turns."""

    def __init__(self, function, threads, calls, rounds, repetitions, **settings):
        self.rounds = {False: [], True: []}
        self.writer = []
        for _ in range(repetitions):
            for preload in (False, True):
                # Sealed often, so that the writer is through when its CPU time is read.
                command = [program("call_cost"), function, str(threads), str(calls), str(rounds)]
                lines = run(command, preload, GPUPROF_SEAL="50ms", **settings)
                self.rounds[preload] += rounds_of(lines)
                self.writer += [float(l[1]) for l in lines if l[0] == "writer"]
                drop_output()

    def over_floor(self, wall, rounds=None):
        """(hooked call - bare call) / floor: medians; quartiles over the hooked rounds, or those of
        them that are asked for."""
        floor, call = (0, 2) if wall else (1, 3)
        bare = statistics.median(r[call] for r in self.rounds[False])
        ratios = [(r[call] - bare) / r[floor] for r in rounds or self.rounds[True]]
        return statistics.median(ratios), quartiles(ratios)

    def warm(self):
        """The hooked rounds whose pages of the live file had been touched before."""
        return [r for r in self.rounds[True] if r[FAULTS] <= WARM_FAULTS_MAX]

    def floor_ns(self):
        return statistics.median(r[1] for r in self.rounds[True])

    def call_ns(self, column=3):
        bare = statistics.median(r[column] for r in self.rounds[False])
        return statistics.median(r[column] for r in self.rounds[True]) - bare


def call_rounds(function, calls, rounds, preload, threads=1, **settings):
    """CPU nanoseconds of a call, a round each; wall nanoseconds where there are several threads."""
    lines = run([program("call_cost"), function, str(threads), str(calls), str(rounds)],
                preload=preload, GPUPROF_SEAL="100ms", GPUPROF_GPU="off", **settings)
    drop_output()
    return [r[3 if threads == 1 else 2] for r in rounds_of(lines)]


def measured(command):
    """Wall seconds, CPU seconds and peak KiB of one command, and its exit status."""
    said = os.path.join(WORK, "peak")
    begin = time.monotonic()
    done = subprocess.run([program("peak"), said, *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    seconds = time.monotonic() - begin
    with open(said, encoding="ascii") as file:
        peak, cpu = file.read().split()
    return (seconds, float(cpu), int(peak), done.returncode,
            done.stderr.decode(errors="replace").strip()[-200:])
