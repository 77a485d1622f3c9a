#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measures, prints a line a figure (name, value, unit, goal, ok or over), and writes
the same to <build>/bench.json. bench.py BUILD [PART ...], parts: call libraries range
operators torch walks peers bytes sort gpu collector devices stacks python.

Every time is measured in repetitions that alternate with those of a floor or a peer; the figure is
the median, in bench.json with the quartiles. Nothing here fails because a machine is slow."""

import glob
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
BENCH = os.path.join(BUILD, "bench")
LIBRARY = os.path.join(BUILD, "libgpuprof.so")
COLLECTOR = os.path.join(BUILD, "gpuprof-collector")
BENCH_DIR = os.path.dirname(os.path.abspath(__file__))
MIX = os.path.join(BENCH_DIR, "training-step.mix")
TMPFS = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
WORK = tempfile.mkdtemp(prefix="gpuprof-bench-", dir=TMPFS)
RUN_SECONDS_MAX = 120

figures = []


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
        environment.update(LD_PRELOAD=LIBRARY, GPUPROF_OUT=os.path.join(WORK, "out"))
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

    def over_floor(self, wall):
        """(hooked call - bare call) / floor: medians; quartiles over the hooked rounds."""
        floor, call = (0, 2) if wall else (1, 3)
        bare = statistics.median(r[call] for r in self.rounds[False])
        ratios = [(r[call] - bare) / r[floor] for r in self.rounds[True]]
        return statistics.median(ratios), quartiles(ratios)

    def floor_ns(self):
        return statistics.median(r[1] for r in self.rounds[True])

    def call_ns(self, column=3):
        bare = statistics.median(r[column] for r in self.rounds[False])
        return statistics.median(r[column] for r in self.rounds[True]) - bare


def bench_call():
    """A hooked call less the same call without the library, over the floor; the real one is empty.

    'cpu' is CPU time of the calling threads: what others do on this machine is left out, and a
    wait for the writer too. 'wall' is all of it, per core: with the writer on another core, or on
    the same ones. The threads' figures are of 500,000 calls back to back, more than the writer
    takes in that time; the others are of 50,000 at a time, which fit into the buffer."""
    writer = []
    for function, note in (("launch", "cudaLaunchKernel"), ("malloc", "cudaMalloc"),
                           ("sync", "cudaStreamSynchronize")):
        cost = Cost(function, 1, 50000, 24, 4)
        value, spread = cost.over_floor(wall=False)
        if function == "launch":
            tell("floor", cost.floor_ns(), "ns")
        tell(f"call.{function}.cpu", value, "x floor", 1.3, 1.5, spread=spread)
        value, spread = cost.over_floor(wall=True)
        tell(f"call.{function}.wall", value, "x floor", 1.3, 1.5, spread=spread)
        tell(f"call.{function}.ns", cost.call_ns(), f"ns ({note})")
        if function == "launch":
            writer = cost.writer
            writer_floor = cost.floor_ns()
    bench_inner()
    bench_off()
    for threads in (1, 2, 8):
        cost = Cost("launch", threads, 500000 // threads, 3, 2)
        value, spread = cost.over_floor(wall=False)
        tell(f"call.threads{threads}.cpu", value, "x floor", spread=spread)
        value, spread = cost.over_floor(wall=True)
        tell(f"call.threads{threads}.wall", value, "x floor", spread=spread)
    tell("writer.cpu", statistics.median(writer), "ns/event", 60, spread=quartiles(writer))
    tell("writer.cpu.ratio", statistics.median(writer) / writer_floor, "x floor")


def bench_off():
    """A launch between windows, or after gpuprof_stop(), above the bare one."""
    bare = statistics.median(call_rounds("launch", 50000, 24, False))
    for name, setting in (("stopped", {"GPUPROF_START_PAUSED": "1"}),
                          ("closed", {"GPUPROF_SCHEDULE": "wait=1,active=1"})):
        off = [r - bare for r in call_rounds("launch", 50000, 24, True, **setting)]
        tell(f"call.{name}", statistics.median(off), "ns above the bare call",
             round(0.1 * bare + 2, 1), spread=quartiles(off))


def bench_inner():
    """What libcudart calls inside its own calls is let through: a call of 8, and one of 40."""
    few, many = Cost("inner8", 1, 50000, 12, 3), Cost("inner40", 1, 50000, 12, 3)
    tell("call.inner", (many.call_ns() - few.call_ns()) / 32, "ns (a driver call inside a call)")


def bench_flight():
    """A launch that a flight recorder keeps, over one that is recorded; and for how long its dump
    of 256 MiB keeps launches waiting, which come 2 us after one another, or at once."""
    plain, flight = Cost("launch", 1, 50000, 24, 4), \
        Cost("launch", 1, 50000, 24, 4, GPUPROF_FLIGHT="256M")
    tell("flight.launch.cpu", flight.call_ns() / plain.call_ns(), "x recording", 1.05)
    tell("flight.launch.wall", flight.call_ns(2) / plain.call_ns(2), "x recording")
    tell("flight.writer.cpu", statistics.median(flight.writer) / statistics.median(plain.writer),
         "x recording")
    for name, apart in (("apart", "2000"), ("at_once", "0")):
        lines = run([program("stall_cost"), "70000000", apart, "4"], preload=True,
                    GPUPROF_FLIGHT="256M", GPUPROF_DUMP_ON="none", GPUPROF_GPU="off")
        tell(f"flight.dump.{name}.bytes", drop_output() / 2 ** 20, "MiB on disk")
        for what, _, late, longest, usual in lines:
            tell(f"flight.dump.{name}.{what}.longest", float(longest), "us", 100)
            tell(f"flight.dump.{name}.{what}.late", float(late), "launches beyond 100 us")
            tell(f"flight.dump.{name}.{what}.p9999", float(usual), "us")


def bench_libraries():
    """A call of cuBLAS, its begin and its end: with all arguments (cublasLtMatmul's are asked for,
    of a library that answers at once), by its name alone, not recorded, and in
    a pause of the recording."""
    for function, note in (("gemm", "cublasGemmEx"), ("matmul", "cublasLtMatmul")):
        for libraries in ("on", "names", "off"):
            cost = Cost(function, 1, 20000, 24, 3, GPUPROF_LIBRARIES=libraries)
            value, spread = cost.over_floor(wall=False)
            goal = 1.6 if (function, libraries) == ("gemm", "on") else None
            tell(f"library.{function}.{libraries}.cpu", value, "x floor", goal, spread=spread)
            goal = 200 if (function, libraries) == ("matmul", "on") else None
            tell(f"library.{function}.{libraries}.ns", cost.call_ns(), f"ns ({note})", goal)
        cost = Cost(function, 1, 20000, 24, 3, GPUPROF_START_PAUSED="1")
        tell(f"library.{function}.paused.ns", cost.call_ns(), f"ns ({note})")


def bench_range():
    """A range of gpuprof.h, pushed and popped: without the library, and recorded."""
    cost = Cost("range", 1, 50000, 24, 4)
    tell("range.absent", statistics.median(r[3] for r in cost.rounds[False]), "ns")
    value, spread = cost.over_floor(wall=False)
    tell("range.cpu", value, "x floor", spread=spread)
    tell("range.ns", cost.call_ns(), "ns (push and pop)")
    bench_range_python()


PYTHON_RANGES = """
import ctypes, gpuprof, timeit
def bare(): pass
def ranged():
    with gpuprof.range("forward"): pass
decorated = gpuprof.range("forward")(bare)
cuda = ctypes.CDLL("libcudart.so.12")
cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64))
for _ in range(15):
    print("round", *(timeit.timeit(f, number=20000) / 20000 * 1e9
                     for f in (bare, ranged, decorated)))
"""


def bench_range_python():
    """The same of gpuprof.py, above a Python function that does nothing."""
    folder = os.path.join(BENCH_DIR, "..", "..", "inject", "range")
    command = ["/usr/bin/python3", "-B", "-c", PYTHON_RANGES]
    rounds = {False: [], True: []}
    for _ in range(4):
        for preload, lines in rounds.items():
            lines += rounds_of(run(command, preload, PYTHONPATH=folder, LD_LIBRARY_PATH=BENCH,
                                   GPUPROF_GPU="off", GPUPROF_SEAL="50ms"))
            drop_output()
    for preload, suffix in ((False, ".absent"), (True, "")):
        for column, name in ((1, "with"), (2, "decorated")):
            values = [r[column] - r[0] for r in rounds[preload]]
            tell(f"range.python.{name}{suffix}", statistics.median(values), "ns",
                 spread=quartiles(values))


def bench_operators():
    """An operator of PyTorch's, begin and end, above a callback that does nothing."""
    if not os.path.exists(program("op_cost")):
        not_run("operator", "no C++ compiler")
        return
    rounds = {"bare": [], "empty": [], "names": [], "shapes": []}
    for _ in range(5):
        for what, values in rounds.items():
            is_ours = what in ("names", "shapes")
            lines = run([program("op_cost"), "recorded" if is_ours else what, "50000", "8"],
                        preload=is_ours, GPUPROF_PYTORCH=what if is_ours else "off",
                        GPUPROF_SEAL="50ms", GPUPROF_GPU="off")
            values += [r[0] for r in rounds_of(lines)]
    drop_output()
    empty = statistics.median(rounds["empty"])
    tell("operator.empty", empty - statistics.median(rounds["bare"]), "ns (a callback of nobody's)")
    for what in ("names", "shapes"):
        values = [value - empty for value in rounds[what]]
        tell(f"operator.{what}", statistics.median(values), "ns above that", 150,
             spread=quartiles(values))


    bench_operator_stacks()
    bench_operator_step()
    bench_operator_budget()


def bench_tensors():
    """A block of PyTorch's allocator, got and freed, above libc10's own: two records; the same with
    a stack of 20 frames for each that is got, by libunwind."""
    rounds = {"bare": [], "off": [], "recorded": [], "stack": []}
    for _ in range(5):
        for what, values in rounds.items():
            lines = run([program("tensor_cost"), "1000", "8"], preload=what != "bare",
                        GPUPROF_MEMORY="off" if what == "off" else "on",
                        GPUPROF_MEMORY_STACKS="1" if what == "stack" else "off",
                        GPUPROF_SEAL="50ms", GPUPROF_GPU="off")
            values += [r[0] for r in rounds_of(lines)]
    drop_output()
    bare = statistics.median(rounds.pop("bare"))
    for what, goal in (("off", None), ("recorded", 300), ("stack", None)):
        values = [value - bare for value in rounds[what]]
        tell(f"tensor.{what}", statistics.median(values), "ns a block, above libc10's own", goal,
             spread=quartiles(values))


OPERATORS_IN_PYTHON = """
import ctypes, os, sys, time
torch, cuda = ctypes.CDLL("libtorch_cpu.so"), ctypes.CDLL("libcudart.so.12")
cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64))
while torch.sim_callbacks() < int(sys.argv[1]): time.sleep(0.001)
def run(depth):
    if depth: return run(depth - 1)
    begin = time.thread_time_ns()
    torch.sim_op_repeat(b"aten::view", b"T6[8,16,64] ( I128 I64 )", ctypes.c_ulong(20000))
    return (time.thread_time_ns() - begin) / 20000
for _ in range(10): print("round", run(8))
"""


def bench_operator_stacks():
    """Each is the outermost one on its thread, under 10 frames of Python."""
    rounds = {"off": [], "shapes": [], "stacks": []}
    for _ in range(5):
        for what, values in rounds.items():
            lines = run(["/usr/bin/python3", "-B", "-c", OPERATORS_IN_PYTHON,
                         "0" if what == "off" else "2"], preload=True, GPUPROF_PYTORCH=what,
                        GPUPROF_SEAL="50ms", GPUPROF_GPU="off", LD_LIBRARY_PATH=BENCH)
            values += [r[0] for r in rounds_of(lines)]
            drop_output()
    shapes = statistics.median(rounds["shapes"])
    values = [value - shapes for value in rounds["stacks"]]
    tell("operator.stacks", statistics.median(values), "ns above its inputs (10 frames)", 1000,
         spread=quartiles(values))


def bench_operator_step():
    """A step of 12 layers, whose operators and launches are the doubles': with --pytorch, beside
    gpuprof without it."""
    rounds = {"off": [], "names": [], "shapes": []}
    for _ in range(5):
        for what, values in rounds.items():
            lines = run([program("op_cost"), "step-bare" if what == "off" else "step-recorded",
                         "50", "10"], preload=True, GPUPROF_PYTORCH=what, GPUPROF_SEAL="50ms",
                        GPUPROF_GPU="off")
            values += [r[0] for r in rounds_of(lines)]
            drop_output()
    without = statistics.median(rounds.pop("off"))
    tell("operator.step", without / 1000, "us (12 layers; gpuprof without --pytorch)")
    for what, values in rounds.items():
        values = [value / without for value in values]
        tell(f"operator.step.{what}", statistics.median(values), "x that", 1.15,
             spread=quartiles(values))


def bench_operator_budget():
    """200,000 operators a second, with a budget of 2 %: what they take at last, by the program's
    own clock."""
    shares = []
    for _ in range(3):
        lines = run([program("torch_ops"), "rate", "4"], preload=True, GPUPROF_PYTORCH="shapes",
                    GPUPROF_OVERHEAD_MAX="2%", GPUPROF_GPU="off")
        shares.append(100 * float(lines[0][1]))
        drop_output()
    tell("operator.budget", max(shares), "% of a thread's time, of 2", 2.5)


def bench_torch():
    """A real PyTorch, if `make check-torch` has fetched one: operators on CPU tensors, and a step
    of 12 layers, beside emit_nvtx (recorded by nobody) and torch.profiler."""
    place = os.path.join(BUILD, "torch", os.environ.get("TORCH", "2.11.0"))
    python = os.path.join(place, "venv", "bin", "python")
    if not os.path.exists(python) or not os.path.isdir(os.path.join(place, "driver")):
        not_run("torch", f"no PyTorch in {place} (make check-torch)")
        return
    ours = {f"gpuprof.{what}": what for what in ("off", "names", "shapes", "stacks")}
    theirs = ("bare", "emit_nvtx", "emit_nvtx.shapes", "profiler", "profiler.shapes",
              "profiler.stacks")
    rounds = {what: [] for what in (*theirs, *ours)}
    for _ in range(3):
        for what, lines in rounds.items():
            lines += rounds_of(run(
                [python, os.path.join(BENCH_DIR, "torch_cost.py"), what], preload=what in ours,
                GPUPROF_PYTORCH=ours.get(what, "off"), GPUPROF_GPU="off",
                LD_LIBRARY_PATH=os.path.join(place, "driver")))
            drop_output()
    for column, name in enumerate(("view", "linear", "step")):
        for what, lines in rounds.items():
            values = [r[column] for r in lines]
            tell(f"torch.{name}.{what}", statistics.median(values), "us", spread=quartiles(values))
    step = {what: statistics.median(r[2] for r in rounds[what]) for what in ours}
    for what in ("names", "shapes", "stacks"):
        tell(f"torch.step.{what}", step[f"gpuprof.{what}"] / step["gpuprof.off"],
             "x gpuprof without", None if what == "stacks" else 1.15)


def call_rounds(function, calls, rounds, preload, **settings):
    """CPU nanoseconds of a call, a round each."""
    lines = run([program("call_cost"), function, "1", str(calls), str(rounds)], preload=preload,
                GPUPROF_SEAL="100ms", GPUPROF_GPU="off", **settings)
    drop_output()
    return [r[3] for r in rounds_of(lines)]


def bench_walks():
    """What a stack costs, beside the same call without one; and what it costs not to take any."""
    for function, calls in (("deep10", 20000), ("deep30", 20000), ("deep60", 20000),
                            ("distinct", 1000)):
        costs = {"libunwind": [], "own": [], "off": []}
        for _ in range(3):
            for unwinder, values in costs.items():
                settings = ({"GPUPROF_BACKTRACE_THRESHOLD": "off"} if unwinder == "off" else
                            {"GPUPROF_BACKTRACE_THRESHOLD": "0", "GPUPROF_UNWINDER": unwinder})
                values += call_rounds(function, calls, 8, True, GPUPROF_BACKTRACE_DEPTH="128",
                                      **settings)
        frames = int(function[4:]) if function.startswith("deep") else 0
        goal = {"goal": 300 + 25 * frames} if frames else {}
        off = statistics.median(costs.pop("off"))
        for unwinder, values in costs.items():
            name = f"stack.{function}" + (".own" if unwinder == "own" else "")
            tell(name, statistics.median(values) - off, "ns",
                 **(goal if unwinder == "libunwind" else {}))
    costs = {"80us": [], "off": []}
    for _ in range(8):
        for threshold, values in costs.items():
            values += call_rounds("launch", 50000, 12, True,
                                  GPUPROF_BACKTRACE_THRESHOLD=threshold)
    tell("stack.none_slow", quartiles(costs["80us"])[0] / quartiles(costs["off"])[0],
         "x stacks off", 1.02)


def bench_uftrace():
    if not shutil.which("uftrace"):
        return not_run("peer.uftrace", "uftrace is not installed")
    data = os.path.join(WORK, "uftrace")
    work = ["sync", "1", "20000", "5"]
    record = ["uftrace", "record", "--no-event", "-d", data]
    ours, theirs = [], []
    for _ in range(3):
        shutil.rmtree(data, ignore_errors=True)
        for name, before, preload, ratios in (("call_cost_pg", record, False, theirs),
                                              ("call_cost", [], True, ours)):
            command = [program(name)] + work
            bare = statistics.median(r[3] for r in rounds_of(run(command)))
            ratios += [(r[3] - bare) / r[1] for r in rounds_of(run(before + command, preload))]
        drop_output()
    tell("peer.uftrace", statistics.median(theirs), "x floor", spread=quartiles(theirs))
    tell("peer.uftrace.ratio", statistics.median(theirs) / statistics.median(ours), "x gpuprof")
    size = bytes_below(data, lambda name: name.endswith(".dat"))
    tell("peer.uftrace.bytes", size / 100000, "B/call")
    return shutil.rmtree(data, ignore_errors=True)


def lttng_session(floor, daemon, environment):
    def lttng(*arguments):
        subprocess.run(["lttng", "--no-sessiond", *arguments], env=environment, check=True,
                       capture_output=True, timeout=30)

    data = os.path.join(WORK, "lttng-data")
    end = time.monotonic() + 20
    while True:
        try:
            lttng("create", "gpuprof-bench", "--output", data)
            break
        except subprocess.CalledProcessError:
            if time.monotonic() > end or daemon.poll() is not None:
                raise
            time.sleep(0.2)
    lttng("enable-channel", "-u", "--subbuf-size", "4M", "--num-subbuf", "4", "channel")
    lttng("enable-event", "-u", "-c", "channel", "gpuprof_bench:*")
    lttng("start")
    calls, rounds = 100000, 8
    done = subprocess.run([program("lttng_cost"), str(calls), str(rounds)], env=environment,
                          capture_output=True, text=True, timeout=60, check=True)
    lttng("stop")
    lttng("destroy", "gpuprof-bench")
    lines = [[float(x) for x in l.split()[1:]] for l in done.stdout.splitlines()]
    size = bytes_below(data, lambda name: "channel_" in name and not name.endswith(".idx"))
    if size < calls * rounds * 2 * 8:
        return not_run("peer.lttng", f"its session recorded {size} bytes only")
    costs = [(traced - bare) / floor for bare, traced in lines]
    tell("peer.lttng", statistics.median(costs), "x floor", spread=quartiles(costs))
    tell("peer.lttng.bytes", size / (calls * rounds), "B/call")
    return babeltrace2(data, size)


def babeltrace2(data, size):
    """Events a second that it prints of a session; a call is two of them, as it is two ends."""
    if not shutil.which("babeltrace2"):
        return not_run("peer.babeltrace2", "babeltrace2 is not installed")
    events = sum(1 for _ in subprocess.Popen(["babeltrace2", data], stdout=subprocess.PIPE).stdout)
    runs = [measured(["babeltrace2", data]) for _ in range(3)]
    if not events or any(code for *_, code, _ in runs):
        return not_run("peer.babeltrace2", runs[0][4])
    rates = [events / run[1] / 1e6 for run in runs]
    tell("peer.babeltrace2.MB", size / statistics.median(run[1] for run in runs) / 1e6,
         "MB/CPU s of CTF")
    return tell("peer.babeltrace2", statistics.median(rates), "M events/CPU s",
                spread=quartiles(rates))


def bench_lttng():
    if not shutil.which("lttng-sessiond") or not os.path.exists(program("lttng_cost")):
        return not_run("peer.lttng", "lttng-tools or liblttng-ust-dev is not installed")
    home = os.path.join(WORK, "lttng-home")
    os.makedirs(home, exist_ok=True)
    environment = dict(os.environ, LTTNG_HOME=home, LTTNG_UST_REGISTER_TIMEOUT="3000")
    rounds = rounds_of(run([program("call_cost"), "sync", "1", "50000", "20"]))
    floor = statistics.median(r[1] for r in rounds)
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return lttng_session(floor, daemon, environment)
    except (subprocess.SubprocessError, OSError) as error:
        return not_run("peer.lttng", str(error)[:150])
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()


def bench_peers():
    bench_uftrace()
    bench_lttng()


def bench_bytes():
    encode = program("encode_mix")
    results = [dict(zip(line[0][::2], map(float, line[0][1::2])))
               for line in (run([encode, MIX, "500000"]) for _ in range(3))]
    tell("bytes.encoder", results[0]["bytes"], "B/call", 4, 6)
    tell("encoder.cpu", statistics.median(r["encode"] for r in results), "ns/event")
    tell("encoder.zstd", statistics.median(r["compress"] for r in results), "ns/event")
    calls = int(run([program("replay_mix"), MIX, "8"], True)[0][1])
    tell("bytes.library", drop_output() / calls, "B/call", 4, 6)


def bench_sort():
    """Blocks whose records come out of order, beside one that is in order, in turns."""
    for name, _, ratio, _, _ in run([program("sort_cost"), "300"]):
        if name != "sorted":
            tell(f"encoder.{name}", float(ratio), "x sorted", 1.5)


def bench_gpu():
    """Our share of what the GPU's rows cost: CUPTI is not there."""
    settings = {"GPUPROF_OUT": os.path.join(WORK, "out"), "GPUPROF_BUFFER": "2G",
                "GPUPROF_WAIT": "60s"}
    results = []
    for _ in range(5):
        lines = run([program("gpu_cost"), "1000000"], **settings)
        results.append({line[0]: float(line[1]) for line in lines})
        drop_output()
    for name in ("callback", "seen"):
        values = [r[name] for r in results]
        tell(f"gpu.{name}", statistics.median(values), "ns/call", spread=quartiles(values))
    values = [1e3 / r["parse"] for r in results]
    tell("gpu.parse", statistics.median(values), "M records/s", 10, at_least=True,
         spread=quartiles(values))
    pairs = run([program("encode_mix"), MIX, "500000", "kernels"])[0]
    tell("gpu.bytes", float(pairs[1]), "B/launch+kernel", 8, 10)


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


def recording(calls):
    folder = os.path.join(WORK, f"recording-{calls}")
    os.makedirs(folder, exist_ok=True)
    stream = os.path.join(folder, "bench.4242.1000-62656e63.gpuprof")
    run([program("encode_mix"), MIX, str(calls), stream])
    return folder


def uftrace_dump():
    """Calls per second of `uftrace dump --chrome`, on a recording of its own."""
    if not shutil.which("uftrace"):
        return None
    data = os.path.join(WORK, "uftrace-dump")
    run(["uftrace", "record", "--no-event", "-d", data, program("call_cost_pg"), "sync", "1",
         "400000", "2"])
    size = bytes_below(data, lambda name: re.fullmatch(r"\d+\.dat", name))
    calls = size / 32  # two records of 16 bytes a call
    rates = []
    for _ in range(3):
        _, cpu, _, code, error = measured(["uftrace", "dump", "--chrome", "-d", data])
        if code:
            raise RuntimeError(error)
        rates.append(calls / cpu)
    shutil.rmtree(data, ignore_errors=True)
    return rates


def writing_alone(size):
    """CPU seconds that it takes to write `size` bytes of nothing into a file where ours goes."""
    block = memoryview(bytes(1 << 20))
    file = os.open(WORK, os.O_TMPFILE | os.O_WRONLY, 0o600)
    begin = time.process_time()
    while size > 0:
        size -= os.write(file, block[:size])
    seconds = time.process_time() - begin
    os.close(file)
    return seconds


def bench_devices():
    """Launches and their kernels, each with an arrow between them: a call, a slice and two ends."""
    calls = 1000000
    for count in (100000, calls):
        folder = os.path.join(WORK, f"gpu-{count}")
        os.makedirs(folder)
        run([os.path.join(BUILD, "make_gpu"), folder, "bench", str(count)])
        commands = {"merge": ["merge", "-o", "-"], "report": ["report"],
                    "kernels": ["report", "--table=cuda_gpu_kern_sum"],
                    "functions": ["report", "--table=functions"]}
        results = {name: [] for name in commands}
        for _ in range(5 if count == calls else 1):
            for name, command in commands.items():
                _, cpu, peak, code, error = measured([COLLECTOR, *command, folder])
                if code != 0:
                    raise RuntimeError(error)
                results[name].append((2 * count / cpu / 1e6, peak / 1024))
        shutil.rmtree(folder)
        for verb, list_of in results.items():
            rates = [rate for rate, _ in list_of]
            if count == calls:
                tell(f"collector.gpu.{verb}", statistics.median(rates), "M events/CPU s",
                     spread=quartiles(rates))
            tell(f"collector.gpu.{verb}.memory.{count}", max(peak for _, peak in list_of),
                 "MiB peak")


OUTPUT_CALLS = (50000, 500000, 5000000)  # the middle one is timed


def output_of(ending, calls, folder, processors):
    """What `measured` says of one output, and its size."""
    verb = {"sqlite": "export", "csv": "export", "jsonl": "export",
            "report": "report"}.get(ending, "merge")
    path = os.path.join(WORK, f"out.{calls}.{ending}")
    to = ["--format=json"] if verb == "report" else ["-o", path]
    done = measured([COLLECTOR, verb, f"-j{processors}", folder, *to])
    if done[3]:
        raise RuntimeError(done[4])
    size = 0
    if verb != "report":
        size = os.path.getsize(path)
        os.unlink(path)
    return done, size


def bench_outputs():
    """The same launches and kernels in each form: CPU and wall, on one processor and on two, and
    the memory at 1, 10 and 100 times as many."""
    folders = {}
    for calls in OUTPUT_CALLS:
        folders[calls] = os.path.join(WORK, f"outputs-{calls}")
        os.makedirs(folders[calls])
        run([os.path.join(BUILD, "make_gpu"), folders[calls], "bench", str(calls)])
    calls, json_size = OUTPUT_CALLS[1], None
    for ending in ("json", "json.gz", "json.zst", "pftrace", "sqlite", "csv", "jsonl", "report"):
        for processors in (1, 2):
            name = f"outputs.{ending}.j{processors}"
            runs = [output_of(ending, calls, folders[calls], processors) for _ in range(5)]
            size = runs[0][1]
            rates = [2 * calls / done[0] / 1e6 for done, _ in runs]
            cpu = statistics.median(done[1] for done, _ in runs)
            tell(f"{name}.wall", statistics.median(rates), "M events/s", spread=quartiles(rates))
            tell(f"{name}.cpu", 2 * calls / cpu / 1e6, "M events/CPU s")
            if size:
                tell(f"{name}.MB", size / cpu / 1e6, "MB/CPU s")
            tell(f"{name}.memory", max(done[2] for done, _ in runs) / 1024, "MiB peak")
        json_size = json_size or size
        if size:
            tell(f"outputs.{ending}.size", size / json_size, "x JSON")
        for count, folder in folders.items():
            if count != calls:
                done, _ = output_of(ending, count, folder, 1)
                tell(f"outputs.{ending}.j1.memory.{count}", done[2] / 1024, "MiB peak")
    for folder in folders.values():
        shutil.rmtree(folder)


def bench_ranks():
    """A folder of eight ranks that record at the same time: what -j2 makes of it."""
    calls, ranks = 100000, 8
    folder, out = os.path.join(WORK, "ranks"), os.path.join(WORK, "of-ranks")
    os.makedirs(folder)
    run([os.path.join(BUILD, "make_gpu"), folder, "bench", str(calls), str(ranks)])
    for name, command in (("per-rank", ["merge", "--per-rank", "-o", out]),
                          ("csv", ["export", "-o", out + ".csv"]),
                          ("csv.gz", ["export", "-o", out + ".csv.gz"]),
                          ("kernels", ["report", "--table=cuda_gpu_kern_sum"]),
                          ("report", ["report"]), ("json", ["merge", "-o", out + ".json"])):
        runs = {"j1": [], "j2": []}
        for _ in range(5):
            for jobs, list_of in runs.items():
                seconds, _, _, code, error = measured([COLLECTOR, *command, f"-{jobs}", folder])
                if code:
                    raise RuntimeError(error)
                list_of.append(seconds)
                shutil.rmtree(out, ignore_errors=True)
                for path in glob.glob(out + ".*"):
                    os.unlink(path)
        for jobs, list_of in runs.items():
            rates = [2 * ranks * calls / seconds / 1e6 for seconds in list_of]
            tell(f"ranks.{name}.{jobs}.wall", statistics.median(rates), "M events/s",
                 spread=quartiles(rates))
        tell(f"ranks.{name}.speedup", statistics.median(runs["j1"]) / statistics.median(runs["j2"]),
             "x", *([] if name == "json" else [1.8]), at_least=True)
    shutil.rmtree(folder)


def bench_collector():
    calls = 2000000
    folder = recording(calls)
    out = os.path.join(WORK, "trace.json")
    rates, sizes, floors = {"-": [], out: []}, [], []
    for _ in range(9):
        for target, list_of in rates.items():
            seconds, cpu, _, code, error = measured([COLLECTOR, "merge", folder, "-o", target])
            if code != 0:
                not_run("collector.merge", f"exit code {code}: {error}")
                return
            list_of.append((calls / cpu, calls / seconds))
            if target == out:
                size = os.path.getsize(out)
                os.unlink(out)
                sizes.append(size / seconds / 1e6)
                floors.append(calls / writing_alone(size))
    cpu = [r[0] for r in rates["-"]]
    tell("collector.null", statistics.median(cpu) / 1e6, "M calls/CPU s", 5, at_least=True,
         spread=[x / 1e6 for x in quartiles(cpu)])
    cpu = [r[0] for r in rates[out]]
    tell("collector.tmpfs", statistics.median(cpu) / 1e6, "M calls/CPU s", 5, at_least=True,
         spread=[x / 1e6 for x in quartiles(cpu)])
    tell("collector.tmpfs.floor", statistics.median(floors) / 1e6, "M calls/CPU s",
         spread=[x / 1e6 for x in quartiles(floors)])
    tell("collector.tmpfs.MB", statistics.median(sizes), "MB/s of JSON")
    peer = uftrace_dump()
    if peer:
        tell("peer.uftrace.dump", statistics.median(peer) / 1e6, "M calls/CPU s",
             spread=[x / 1e6 for x in quartiles(peer)])
    else:
        not_run("peer.uftrace.dump", "uftrace is not installed")
    shutil.rmtree(folder)
    for count in (30000, 300000, 3000000):
        folder = recording(count)
        peak = measured([COLLECTOR, "merge", folder, "-o", "-"])[2]
        tell(f"collector.memory.{count}", peak / 1024, "MiB peak")
        shutil.rmtree(folder)


def code_of(binary):
    """Where the code of an ELF file begins, and its size, in hexadecimal digits."""
    sections = subprocess.run(["readelf", "-SW", binary], check=True, capture_output=True,
                              text=True).stdout
    return re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections).groups()


def bench_stacks():
    """100,000 different stacks of 30 frames all over the code of 50 modules with DWARF: copies of
    the collector."""
    stacks, modules = 100000, 50
    folder = os.path.join(WORK, "stacks")
    os.makedirs(folder)
    for number in range(modules):
        shutil.copy(COLLECTOR, os.path.join(WORK, f"module.{number}"))
    subprocess.run([os.path.join(BUILD, "make_stacks"), folder, "bench", str(stacks), str(modules),
                    os.path.join(WORK, "module"), *code_of(COLLECTOR)], check=True)
    for name, command in (("flame.symbols", ["flame", "-o", os.path.join(WORK, "x.folded")]),
                          ("flame.symbols.none", ["flame", "--symbols=none", "-o", os.devnull])):
        runs = [measured([COLLECTOR, *command, folder]) for _ in range(3)]
        if any(run[3] for run in runs):
            not_run(name, runs[0][4])
            continue
        tell(name, statistics.median(run[0] for run in runs), "s for 100,000 stacks",
             20 if name == "flame.symbols" else None, spread=quartiles([run[0] for run in runs]))
        tell(f"{name}.memory", max(run[2] for run in runs) / 1024, "MiB peak")


def bench_python():
    """The Python frames of one stack, found and numbered, as a known place has it: the 10 of one's
    own, and 10 that are borrowed from the thread that waits in torch.autograd. Without the native
    ones."""
    module = os.path.join(BENCH, "python_reader.abi3.so")
    scenes = os.path.join(os.path.dirname(BENCH_DIR), "cases", "src", "python_scenes.py")
    # The module's thread-local variables are larger than what is kept free for such modules.
    room = "glibc.rtld.optional_static_tls=65536"
    versions = {"": "/usr/bin/python3"}
    for version in ("3.12", "3.13", "3.14"):
        versions["." + version] = os.path.join(BUILD, "python", version, "python")
    for suffix, python in versions.items():
        if not os.path.exists(module) or not os.path.exists(python):
            not_run(f"python.10_frames{suffix}", "no such Python (make fetch-python) or headers")
            continue
        lines = [run([python, scenes, "cost"], PYTHONPATH=BENCH, GLIBC_TUNABLES=room)[0]
                 for _ in range(5)]
        own, borrowed = ([float(line[i]) for line in lines] for i in (0, 1))
        tell(f"python.10_frames{suffix}", statistics.median(own), "ns", 1000,
             spread=quartiles(own))
        tell(f"python.10_borrowed{suffix}", statistics.median(borrowed), "ns",
             spread=quartiles(borrowed))


def main():
    parts = {"call": bench_call, "libraries": bench_libraries, "flight": bench_flight,
             "range": bench_range,
             "operators": bench_operators, "tensors": bench_tensors, "torch": bench_torch,
             "walks": bench_walks, "peers": bench_peers, "bytes": bench_bytes, "sort": bench_sort,
             "gpu": bench_gpu, "collector": bench_collector, "devices": bench_devices,
             "outputs": bench_outputs, "ranks": bench_ranks,
             "stacks": bench_stacks, "python": bench_python}
    try:
        for name in sys.argv[2:] or parts:
            try:
                parts[name]()
            except (RuntimeError, subprocess.SubprocessError, OSError) as error:
                not_run(name, str(error)[:300])
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    with open(os.path.join(BUILD, "bench.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": platform.processor() or platform.machine(), "cpus": os.cpu_count(),
                   "load": os.getloadavg(), "figures": figures}, file, indent=1)
        file.write("\n")


main()
