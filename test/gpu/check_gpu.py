# SPDX-License-Identifier: Apache-2.0
"""Acceptance on a machine with a GPU: `make check-gpu`. Needs nothing that is not on the machine.

    check_gpu.py [--launches N] [--pairs N] [--target X] [--steps N] [--table FILE]
                 [SECTION ...]

Prints a table and writes it to FILE (build/check-gpu.md); RESULTS.md keeps what was seen on real
devices, README.md says what each row means. Each row is ok, FAILED, or not run with the reason.
Exit status 1 if one failed or there is no GPU.
"""

import argparse
import collections
import ctypes
import pathlib
import re
import sys
import tempfile

import check_consumers
import check_counts
import check_overhead
import check_training
from gpu_table import (BUILD, COLLECTOR, LIBRARY, ROOT, bare_environment, collect, complain,
                       not_run, row, run, summary, tail, write_table)

SECTIONS = ("identity", "ctypes", "program", "training", "consumers", "overhead")


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
    text = (ROOT / "formats" / "api_driver.def").read_text(encoding="ascii")
    found = collections.Counter()
    different = []
    for symbol, name, version, flags in re.findall(
            r'^(?:API|HOOK)\(\w+, (\w+),.*?PROC\("(\w+)", (\d+), (\d+)\)', text, re.M | re.S):
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


def check_programs(options, folder):
    """(command, settings) of a program whose GPU rows come, for the sections that follow."""
    best = None
    if "ctypes" in options.sections:
        settings = check_counts.check_program("ctypes", check_counts.CTYPES, folder / "ctypes",
                                              options.launches)
        best = (check_counts.CTYPES, settings) if settings is not None else None
    if not {"program", "overhead"} & set(options.sections):
        return best
    programs, reason = check_counts.build_programs(folder)
    for cudart in ("shared", "static"):
        label = f"{cudart} cudart"
        if "program" in options.sections and cudart not in programs:
            not_run(label, reason)
        elif "program" in options.sections:
            settings = check_counts.check_program(label, (str(programs[cudart]),), folder / cudart,
                                                  options.launches)
            if settings is not None and cudart == "shared":
                best = ((str(programs[cudart]),), settings)
    if not best:
        best = ((str(programs["shared"]),) if "shared" in programs else check_counts.CTYPES, {})
    return best


def torch_problem():
    """Why PyTorch cannot be used, or None."""
    done = run([sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda, "
                "torch.cuda.is_available())"], bare_environment())
    if done.status:
        return f"no PyTorch: {tail(done.stderr, 100)}"
    if not done.stdout.split()[-1] == "True":
        return f"PyTorch without CUDA: {done.stdout.strip()}"
    return None


def check(options, cuda, folder):
    check_machine(cuda)
    if "identity" in options.sections:
        check_identity(cuda)
    program = check_programs(options, folder)
    trained = problem = None
    if {"training", "overhead"} & set(options.sections):
        problem = torch_problem()
    if "training" in options.sections:
        if problem:
            not_run("training loop", problem)
        else:
            trained = check_training.check_all(folder / "training", options.steps)
    if "consumers" in options.sections:
        check_consumers.check_all(folder, program, trained)
    if "overhead" in options.sections:
        check_overhead.check_launches(program, folder / "overhead", options)
        if problem:
            not_run("overhead, training loop", problem)
        else:
            check_overhead.check_training_loop(folder / "overhead-training", options)


def parse():
    parser = argparse.ArgumentParser(description="acceptance on a machine with a GPU")
    parser.add_argument("--launches", type=int, default=100000, help="of a program (100000)")
    parser.add_argument("--pairs", type=int, default=7, help="rounds of each overhead (7)")
    parser.add_argument("--target", type=float, default=check_overhead.TARGET_LAUNCHES,
                        help="of the launch-bound loop, over the bare run (1.10)")
    parser.add_argument("--steps", type=int, default=60, help="of the training loop (60)")
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
        try:
            check(options, cuda, pathlib.Path(temporary))
        finally:
            write_table(options.table)
    print(f"the table is in {options.table}")
    return summary()


if __name__ == "__main__":
    sys.exit(main())
