# SPDX-License-Identifier: Apache-2.0
"""bench.py: what PyTorch's operators and tensors cost."""

import os
import statistics

from bench_run import (BENCH, BENCH_DIR, BUILD, drop_output, not_run, program, quartiles, rounds_of,
                       run, tell)


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
