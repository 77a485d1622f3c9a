# SPDX-License-Identifier: Apache-2.0
"""bench.py: what recorded calls and ranges cost."""

import os
import shutil
import statistics

from bench_run import (BENCH, BENCH_DIR, BUILD, COLLECTOR, FAULTS, WORK, Cost, call_rounds,
                       drop_output, not_run, program, quartiles, rounds_of, run, tell)


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
            bench_touch(cost)
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


def bench_touch(warm):
    """A launch whose page of the live file was touched before, and one of the first 50,000 of a
    process, each page of which costs a minor fault: the rounds of `warm` without faults, and first
    rounds."""
    cold = Cost("launch", 1, 50000, 1, 12)
    for kind, cost, rounds in (("warm", warm, warm.warm()), ("cold", cold, cold.rounds[True])):
        if not rounds:
            not_run(f"call.launch.{kind}", "each round had pages that were touched first")
            continue
        value, spread = cost.over_floor(wall=False, rounds=rounds)
        tell(f"call.launch.{kind}.cpu", value, "x floor", spread=spread)
        faults = [1000 * r[FAULTS] for r in rounds]
        tell(f"call.launch.{kind}.faults", statistics.median(faults), "in 1000 calls",
             spread=quartiles(faults))
    tell("call.launch.warm.rounds", 100 * len(warm.warm()) / len(warm.rounds[True]), "% of rounds")


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


def bench_os():
    """Calls that libgpuprof-os.so hooks, below the threshold, and each recorded (0). Over those of
    a process that is recorded without: a second thread alone makes the C library's read dearer."""
    for function, note, goal in (("mutex", "locked and unlocked", 3), ("read", "a byte", 25)):
        rounds = {"off": [], "100us": [], "0": []}
        for _ in range(4):
            for threshold, values in rounds.items():
                values += call_rounds(function, 50000, 24, True, GPUPROF_OS=threshold)
        without = statistics.median(rounds["off"])
        tell(f"os.{function}.off.ns", without, f"ns ({note})")
        for threshold, name, most in (("100us", function, goal), ("0", f"{function}.kept", None)):
            over = [r - without for r in rounds[threshold]]
            tell(f"os.{name}.ns", statistics.median(over), f"ns ({note})", most,
                 spread=quartiles(over))
    bench_contended()
    if not shutil.which("strace"):
        not_run("peer.strace.read", "strace is not installed")
        return
    command = [program("call_cost"), "read", "1", "5000", "9"]
    alone, traced = ([r[3] for r in rounds_of(run([*tracer, *command]))]
                     for tracer in ([], ["strace", "-f", "-c", "-o", os.devnull]))
    tell("peer.strace.read.ns", statistics.median(traced) - statistics.median(alone), "ns (a byte)")


def bench_contended():
    """A mutex that two threads want all the time: in the bare program, in a recorded one, and with
    its waits hooked: those below the threshold, and each recorded."""
    kinds = {"bare": (False, {}), "off": (True, {}), "100us": (True, {"GPUPROF_OS": "100us"}),
             "kept": (True, {"GPUPROF_OS": "0"})}
    rounds = {name: [] for name in kinds}
    for _ in range(4):
        for name, (preload, settings) in kinds.items():
            rounds[name] += call_rounds("contended", 50000, 24, preload, threads=2, **settings)
    for name, values in rounds.items():
        tell(f"os.contended.{name}.ns", statistics.median(values), "ns (wanted by two threads)",
             spread=quartiles(values))


# A training loop: some calls, then 3 ms of Python; and the CPU time of all other threads.
GAPS_LOOP = """
import ctypes, time
cuda, memory = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
def step(calls=40, turns=%(turns)d):
    for _ in range(calls):
        cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64))
    total = 0
    for i in range(turns):
        total += i
def turns_of(ns):
    begin = time.perf_counter_ns(); step(0, 100000)
    return int(100000 * ns / (time.perf_counter_ns() - begin))
if not %(turns)d:
    print("turns", turns_of(3e6))
else:
    step()
    for _ in range(20):
        wall, process, thread = time.monotonic(), time.process_time(), time.thread_time()
        for _ in range(100):
            step()
        wall = time.monotonic() - wall
        others = time.process_time() - process - (time.thread_time() - thread)
        print("round", wall / 100 * 1e6, others / wall * 100)
"""


def bench_gaps():
    """Looks into the gaps of such a loop, in turns with a recording without them: how much longer
    a step takes, and how much more of a processor gpuprof's threads take."""
    def loop(turns, preload=False, **settings):
        return run(["/usr/bin/python3", "-B", "-c", GAPS_LOOP % {"turns": turns}], preload,
                   LD_LIBRARY_PATH=BENCH, GPUPROF_GPU="off", GPUPROF_SEAL="50ms", **settings)

    turns = int(loop(0)[0][1])
    rounds = {"off": [], "on": []}
    for _ in range(3):
        for gaps, lines in rounds.items():
            lines += rounds_of(loop(turns, True, GPUPROF_GAPS=gaps))
            drop_output()
    for column, name, unit in ((0, "step", "% of a step"), (1, "cpu", "% of a CPU")):
        without = statistics.median(r[column] for r in rounds["off"])
        more = [r[column] - without if column else (r[0] / without - 1) * 100
                for r in rounds["on"]]
        tell(f"gaps.{name}", statistics.median(more), unit, 0.2, spread=quartiles(more))


# Ten functions of Python's in two loops of the interpreter's (3.11 and later), burning CPU time.
SAMPLED = """
import ctypes, time
def f8(_):
    while time.thread_time() < 2:
        for _ in range(5000):
            pass
def f7(x): f8(x)
def f6(x): max((x,), key=f7)
def f5(x): f6(x)
def f4(x): f5(x)
def f3(x): f4(x)
def f2(x): f3(x)
def f1(x): f2(x)
def f0(x): f1(x)
ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64))
f0(1)
"""


def bench_sample():
    """What a sample takes of its thread, by the handler's own clock, new places and all: the caches
    are the program's when it comes. What the kernel does for a signal comes on top."""
    values = []
    for _ in range(5):
        run(["/usr/bin/python3", "-B", "-c", SAMPLED], True, LD_LIBRARY_PATH=BENCH,
            GPUPROF_GPU="off", GPUPROF_SAMPLE="100")
        lines = run([COLLECTOR, "dump", os.path.join(WORK, "out")])
        drop_output()
        costs = [dict(word.split("=", 1) for word in line if "=" in word)
                 for line in lines if line[:1] == ["cost"] and 'text="sample"' in line]
        count, ns = (int(costs[-1][key]) - int(costs[0][key]) for key in ("count", "total_ns"))
        values.append(ns / count)
    tell("sample.20_and_10_frames", statistics.median(values), "ns", 5000, spread=quartiles(values))


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


def bench_python():
    """The Python frames of one stack, found and numbered, as a known place has it: the 10 of one's
    own, as its signal handler reads them, and 10 that are borrowed from the thread that waits in
    torch.autograd. Without the native ones."""
    module = os.path.join(BENCH, "python_reader.abi3.so")
    scenes = os.path.join(os.path.dirname(BENCH_DIR), "cases", "src", "python_scenes.py")
    # The module's thread-local variables are larger than what is kept free for such modules.
    room = "glibc.rtld.optional_static_tls=65536"
    versions = {"": "/usr/bin/python3"}
    for version in ("3.12", "3.13", "3.14", "3.15"):
        versions["." + version] = os.path.join(BUILD, "python", version, "python")
    for suffix, python in versions.items():
        if not os.path.exists(module) or not os.path.exists(python):
            not_run(f"python.10_frames{suffix}", "no such Python (make fetch-python) or headers")
            continue
        lines = [run([python, scenes, "cost"], PYTHONPATH=BENCH, GLIBC_TUNABLES=room)[0]
                 for _ in range(5)]
        own, borrowed, interrupted = ([float(line[i]) for line in lines] for i in range(3))
        tell(f"python.10_frames{suffix}", statistics.median(own), "ns", 1000,
             spread=quartiles(own))
        tell(f"python.10_interrupted{suffix}", statistics.median(interrupted), "ns",
             spread=quartiles(interrupted))
        tell(f"python.10_borrowed{suffix}", statistics.median(borrowed), "ns",
             spread=quartiles(borrowed))
