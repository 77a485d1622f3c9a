# SPDX-License-Identifier: Apache-2.0
"""What gpuprof costs, as a ratio to the bare run of the same round."""

import re
import statistics
import sys

import check_counts
import check_training
import gpu_dump
from gpu_table import (BUILD, FAILED, Failure, OutOfTime, bare_environment, find_nsys, not_run,
                       recording_environment, row, run, tail)

TARGET_LAUNCHES, TARGET_TRAINING = 1.10, 1.01
KINDS = "kernel", "copy", "set", "sync", "graph", "overhead", "memory", "info"
# With a shared cudart, "auto" has callbacks of the driver's functions, "runtime" of the runtime's,
# "cupti" of both, and "hooks" of none.
GPUPROF = {
    "hooks only": {"GPUPROF_GPU": "off"},
    "GPU rows, front=hooks": {"GPUPROF_FRONT": "hooks"},
    "GPU rows, front=auto": {},
    "GPU rows, front=runtime": {"GPUPROF_FRONT": "runtime"},
    "GPU rows, front=cupti": {"GPUPROF_FRONT": "cupti"},
    "GPU rows, kinds=kernel": {"GPUPROF_KINDS": "kernel"},
    # All kinds of records but one, for the one that costs.
    **{f"GPU rows, without {kind}": {"GPUPROF_KINDS": ",".join(k for k in KINDS if k != kind)}
       for kind in KINDS if kind not in ("kernel", "copy", "set", "graph")},
}
# Of the training loop, whose rounds are long.
TRAINING = {
    "hooks only": {"GPUPROF_GPU": "off"},
    "GPU rows, front=auto": {},
    "PYTORCH=stacks": {"GPUPROF_PYTORCH": "stacks"},
    "PYTORCH=modules": {"GPUPROF_PYTORCH": "modules"},
    "--device": {"GPUPROF_DEVICE": "1"},
}
JUDGED = "GPU rows, front=auto"  # the standard settings: these have the target
FLOOR = "CUPTI alone"  # beside which they are judged
FLOOR_LIBRARY = BUILD / "gpu" / "cupti_floor.so"
NSYS = "nsys (its own, -t cuda)"
TORCH = "torch.profiler (its own, CPU and CUDA)"


def loop_ns(command, env, is_lenient=False):
    """How long the program's own loop took, after its first tenth. Another profiler may fail
    after that."""
    done = run(command, env)
    found = re.search(r"^loop_ns (\d+)$", done.stderr, re.M)
    if (done.status and not is_lenient) or not found:
        raise Failure(f"status {done.status}: {tail(done.stderr)}")
    return int(found.group(1))


def nsys_command(command, folder):
    return [find_nsys(), "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none",
            "--force-overwrite=true", "-o", folder / "nsys", *command]


def find_cupti(command, folder, settings):
    """The libcupti that gpuprof takes with this program; None: it takes none."""
    done = run(command, recording_environment(folder, **settings))
    if done.status:
        raise Failure(f"status {done.status}: {tail(done.stderr)}")
    process = max(gpu_dump.read(folder), key=lambda one: len(one.calls))
    found = re.match(r"from CUPTI \d+, ([^,]+)", process.gpu_rows)
    return found and found.group(1)


def variants(command, folder, settings, gpuprof):
    """name -> a function of the round that returns (command, environment)."""
    ways = {}
    cupti = find_cupti(command, folder / "first", settings)
    if cupti and FLOOR_LIBRARY.exists():
        ways[FLOOR] = lambda i: (command, bare_environment(
            CUDA_INJECTION64_PATH=str(FLOOR_LIBRARY), CUPTI_FLOOR=cupti))
    for name, own in gpuprof.items():
        ways[name] = lambda i, name=name, own=own: (
            command, recording_environment(folder / f"{name}-{i}".replace(" ", "-"),
                                           **settings, **own))
    if find_nsys():
        ways[NSYS] = lambda i: (nsys_command(command, folder), bare_environment())
    return ways


def measure(label, command, ways, target, rounds):
    """Rounds of bare and each way, one after the other, so that drift hits all alike."""
    ratios = {name: [] for name in ways}
    broken = {}
    bare = []
    try:
        rounds(command, ways, ratios, broken, bare)
    except OutOfTime:
        pass
    except Failure as failure:
        row(f"overhead, {label}: a bare run", FAILED, failure)
    floor = statistics.median(ratios[FLOOR]) if ratios.get(FLOOR) else 1
    for name, values in ratios.items():
        tell(label, name, values, broken.get(name), floor * target if name == JUDGED else None)
    if FLOOR not in ways:
        not_run(f"overhead, {label}: {FLOOR}", f"no libcupti is used, or no {FLOOR_LIBRARY.name}")
    if bare:
        row(f"overhead, {label}: the bare run", True,
            f"{statistics.median(bare) / 1e6:.2f} ms ({min(bare) / 1e6:.2f} to "
            f"{max(bare) / 1e6:.2f})")
    if not find_nsys():
        not_run(f"overhead, {label}: {NSYS}", "nsys is not installed")


def in_order(ways, i, broken):
    """Each round begins with another way."""
    order = list(ways)
    return [name for name in order[i % len(order):] + order[:i % len(order)] if name not in broken]


def pairs_of(pairs):
    """Rounds with a bare run just before each way."""
    def rounds(command, ways, ratios, broken, bare):
        for i in range(pairs):
            for name in in_order(ways, i, broken):
                try:
                    before = loop_ns(command, bare_environment())
                    ratios[name].append(time_way(name, ways, i) / before)
                    bare.append(before)
                except Failure as failure:
                    broken[name] = str(failure)
    return rounds


def rounds_of(count):
    """Rounds with a bare run between them: each way beside the mean of those around its round."""
    def rounds(command, ways, ratios, broken, bare):
        bare.append(loop_ns(command, bare_environment()))
        for i in range(count):
            took = {}
            try:
                for name in in_order(ways, i, broken):
                    try:
                        took[name] = time_way(name, ways, i)
                    except Failure as failure:
                        broken[name] = str(failure)
                bare.append(loop_ns(command, bare_environment()))
            finally:  # where the time is over, beside the bare run before
                for name, time in took.items():
                    ratios[name].append(time / statistics.mean(bare[i:i + 2]))
    return rounds


def time_way(name, ways, i):
    return loop_ns(*ways[name](i), name == NSYS)


def tell(label, name, values, broken, target):
    """The row of one way. That another profiler fails is no failure of ours."""
    title = f"overhead, {label}: {name}"
    if broken and name in (NSYS, TORCH):
        not_run(title, broken)
    elif broken:
        row(title, False, broken)
    elif not values:
        not_run(title, "no time was left")
    else:
        median = statistics.median(values)
        row(title, target is None or median <= target,
            f"{f'{find_nsys()}: ' if name == NSYS else ''}"
            f"{median:.3f} of the bare run ({min(values):.3f} to {max(values):.3f}, {len(values)} "
            f"rounds){f'; target {target:.2f}' if target else '; no target'}")


def check_launches(program, folder, options):
    """Of a program whose GPU rows are known to come, if one was looked at before."""
    if not program:
        built = check_counts.build_programs(folder)[0].get("shared")
        program = ((str(built),) if built else check_counts.CTYPES, {})
    command, settings = program
    folder = folder / "overhead"
    is_python = command[0] == sys.executable
    label = "launch-bound loop" + (" in Python" if is_python else "")
    folder.mkdir()
    # One wait at the end of 1000 launches: the queue never fills, the CPU is what takes the time.
    command = [*command, str(options.launches), "1000"]
    measure(label, command, variants(command, folder, settings, GPUPROF), options.target,
            pairs_of(options.pairs))


def check_training_loop(python, folder, options):
    folder.mkdir()
    command = check_training.command(python, "plain", options.steps)
    ways = variants(command, folder, {}, TRAINING)
    profiled = check_training.command(python, "profiled", options.steps)
    ways[TORCH] = lambda i: (profiled, bare_environment())
    measure("training loop", command, ways, TARGET_TRAINING, rounds_of(options.pairs))
