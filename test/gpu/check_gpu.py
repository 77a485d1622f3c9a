# SPDX-License-Identifier: Apache-2.0
"""Acceptance on a machine with a GPU: `make check-gpu`. Needs nothing that is not on the machine.

    check_gpu.py [--launches N] [--pairs N] [--target X] [--steps N] [--seconds N]
                 [--table FILE] [SECTION ...]

Prints a table and writes it to FILE (build/check-gpu.md), row by row; RESULTS.md keeps what was
seen on real devices, README.md says what each row means. Each row is ok, FAILED, or not run with
the reason. Exit status 1 if one failed or there is no GPU.
"""

import argparse
import collections
import ctypes
import pathlib
import re
import sys
import tempfile
import traceback

import check_consumers
import check_counts
import check_device
import check_framework_work
import check_habits
import check_overhead
import check_placement
import check_training
from gpu_table import (BUILD, COLLECTOR, FAILED, LIBRARY, ROOT, OutOfTime, begin, collect, complain,
                       find_torch, not_run, row, summary, tail)

SECTIONS = ("identity", "ctypes", "memory", "device", "habits", "program", "overhead", "training",
            "consumers", "frameworks", "training-overhead")


def driver():
    """libcuda with cuInit done, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        complain(f"no CUDA driver: {error}")
        return None
    status = cuda.cuInit(0)
    if status:
        complain(f"cuInit failed with {status}: no usable GPU")
        return None
    return cuda


def check_machine(cuda):
    """What this was run on: for RESULTS.md."""
    version, device = ctypes.c_int(), ctypes.c_int()
    major, minor = ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    try:
        release = pathlib.Path("/proc/driver/nvidia/version").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        release = ""
    kernel_module = re.search(r"\s(\d+\.[\d.]+)\s", release)
    row("machine", True, f"{name.value.decode('utf-8', 'replace')}, compute capability "
        f"{major.value}.{minor.value}, driver for CUDA {version.value // 1000}."
        f"{version.value % 1000 // 10}"
        f"{', kernel module ' + kernel_module.group(1) if kernel_module else ''}, "
        f"Python {sys.version.split()[0]}")


def check_collector():
    """Without it nothing can be judged: it may lack a library here."""
    try:
        done = collect("help")
    except OSError as error:
        complain(f"{COLLECTOR} does not start: {error}")
        return False
    if done.status:
        complain(f"{COLLECTOR} does not run here: {tail(done.stderr)}; see test/gpu/README.md")
    return done.status == 0


def check_identity(cuda):
    """Is what cuGetProcAddress returns what dlsym finds, for every driver row of the table?"""
    text = (ROOT / "formats" / "api" / "api_driver.def").read_text(encoding="ascii")
    found = collections.Counter()
    different = []
    rows = [(symbol + twin.lower() * is_twin, name, twins if is_twin else version, 2 * is_twin)
            for twin, symbol, name, version, twins in re.findall(
                r'^CUDA(_PT[SD][SZ])?\((\w+),\s+\w+,\s+"(\w+)",\s+(\d+),(?:\s+(\d+),)?', text,
                re.M)
            for is_twin in range(1 + bool(twin))]
    rows += re.findall(r'^HOOK\((\w+),\s+\w+,\s+\("(\w+)", (\d+), (\d+)\)', text, re.M)
    for symbol, name, version, flags in rows:
        pointer = ctypes.c_void_p()
        status = cuda.cuGetProcAddress(name.encode(), ctypes.byref(pointer), int(version),
                                       ctypes.c_uint64(int(flags)))
        try:
            exported = ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value
        except AttributeError:
            found["not in this driver"] += 1
            continue
        same = status == 0 and pointer.value == exported
        found["same" if same else "different"] += 1
        if not same:
            different.append(symbol)
    row("cuGetProcAddress returns dlsym's pointers", not different,
        ", ".join(f"{n} {what}" for what, n in found.items()) +
        (f": {' '.join(different[:8])}" if different else ""))


def section(options, name, check, *arguments):
    """Runs it if it is wanted; what goes wrong in it does not keep the others from running."""
    if name not in options.sections:
        return None
    try:
        return check(*arguments)
    except OutOfTime:
        not_run(f"the rest of {name}", f"the {options.seconds} seconds are over")
    except Exception:  # pylint: disable=broad-except
        row(name, FAILED, f"check-gpu itself: {traceback.format_exc(limit=-3)}")
    return None


def check_training_sections(options, folder, overhead):
    python, problem = find_torch()
    if problem:
        not_run("overhead, training loop" if overhead else "training loop", problem)
        return None
    if overhead:
        return check_overhead.check_training_loop(python, folder / "overhead-training", options)
    return check_training.check_all(python, folder / "training", options.steps)


def check(options, cuda, folder):
    check_machine(cuda)
    section(options, "identity", check_identity, cuda)
    ctypes_work = section(options, "ctypes", check_counts.check_ctypes, folder, options.launches)
    section(options, "memory", check_placement.check_memory)
    section(options, "device", check_device.check_device, options.launches)
    section(options, "habits", check_habits.check_habits, folder / "habits")
    shared = section(options, "program", check_counts.check_built, folder, options.launches)
    program = shared or ctypes_work
    section(options, "overhead", check_overhead.check_launches, program, folder, options)
    trained = section(options, "training", check_training_sections, options, folder, False)
    section(options, "consumers", check_consumers.check_all, folder, program, trained)
    section(options, "frameworks", check_framework_work.check_all, folder / "frameworks")
    section(options, "training-overhead", check_training_sections, options, folder, True)


def parse():
    parser = argparse.ArgumentParser(description="acceptance on a machine with a GPU")
    parser.add_argument("--launches", type=int, default=100000, help="of a program (100000)")
    parser.add_argument("--pairs", type=int, default=7, help="rounds of each overhead (7)")
    parser.add_argument("--target", type=float, default=check_overhead.TARGET_LAUNCHES,
                        help="of the launch-bound loop, over CUPTI alone (1.10)")
    parser.add_argument("--steps", type=int, default=60, help="of the training loop (60)")
    parser.add_argument("--seconds", type=int, default=0,
                        help="no command begins after so many, and none lasts longer (no limit)")
    parser.add_argument("--table", type=pathlib.Path, default=BUILD / "check-gpu.md",
                        metavar="FILE", help="where the table goes (build/check-gpu.md)")
    parser.add_argument("sections", nargs="*", metavar="SECTION",
                        help=f"of {', '.join(SECTIONS)} (all)")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}")
    if options.launches < 100 or options.steps < 20 or options.pairs < 1:
        parser.error("at least 100 launches, 20 steps, 1 pair")
    options.sections = options.sections or list(SECTIONS)
    return options


def main():
    options = parse()
    begin(options.table, options.seconds)
    for part in (LIBRARY, COLLECTOR):
        if not part.exists():
            complain(f"{part} is not there; run make first")
            return 1
    if not check_collector():
        return 1
    cuda = driver()
    if not cuda:
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        check(options, cuda, pathlib.Path(temporary))
    print(f"the table is in {options.table}")
    return summary()


if __name__ == "__main__":
    sys.exit(main())
