# SPDX-License-Identifier: Apache-2.0
"""Acceptance on a machine with a GPU: `make check-gpu`. Needs nothing that is not on the machine.

Prints a table and writes it to build/check-gpu.md; RESULTS.md keeps what was seen on real devices.
Each row is ok, FAILED, or not run with the reason. Exit status 1 if one failed or there is no GPU.
"""

import collections
import ctypes
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
LIBRARY = BUILD / "libgpuprof.so"
COLLECTOR = BUILD / "gpuprof-collector"
LAUNCHES = 100000
rows = []


def row(name, result, detail):
    rows.append((name, result, detail))
    print(f"{result:8} {name}: {detail}", flush=True)


def driver():
    """libcuda with cuInit done, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(f"check-gpu: no CUDA driver: {error}", file=sys.stderr)
        return None
    status = cuda.cuInit(0)
    if status:
        print(f"check-gpu: cuInit failed with {status}: no usable GPU", file=sys.stderr)
        return None
    return cuda


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
    row("cuGetProcAddress returns dlsym's pointers", "FAILED" if different else "ok",
        ", ".join(f"{n} {what}" for what, n in found.items()) +
        (f": {' '.join(different[:8])}" if different else ""))


def record(command, folder, **environment):
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "GPUPROF_OUT": str(folder), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False,
                          timeout=300)


def recorded(folder):
    """Calls by name, captured ones apart, from the collector's dump."""
    done = subprocess.run([COLLECTOR, "dump", folder], capture_output=True, text=True, check=True)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        if line.startswith("call "):
            name = re.sub(r"^__|_ptsz$|_ptds$", "", line.split()[1])
            counts["captured" if " captured" in line else name] += 1
    return counts


def compare(name, program, expected, folder):
    done = record([program, str(LAUNCHES)], folder)
    if done.returncode:
        row(name, "FAILED", f"status {done.returncode}: {done.stderr.strip()[:200]}")
        return
    counts = recorded(folder)
    seen = {key: sum(counts[n] for n in names) for key, (names, _) in expected.items()}
    wrong = {key: (seen[key], want) for key, (_, want) in expected.items() if seen[key] != want}
    row(name, "FAILED" if wrong else "ok",
        f"(recorded, made) differ: {wrong}" if wrong else f"all counts equal: {seen}")


def check_programs(folder):
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        row("counts of a CUDA program", "not run", "no nvcc on this machine")
        return None
    programs = {}
    for cudart in ("shared", "static"):
        programs[cudart] = folder / f"acceptance-{cudart}"
        subprocess.run([nvcc, "-cudart", cudart, "-o", programs[cudart],
                        ROOT / "test" / "gpu" / "acceptance.cu"], check=True)
    expected = {"launch": (["cudaLaunchKernel"], LAUNCHES), "captured": (["captured"], 10),
                "graph_launch": (["cudaGraphLaunch"], 20), "memcpy": (["cudaMemcpyAsync"], 2)}
    compare("counts, shared cudart", programs["shared"], expected, folder / "shared")
    expected = {"launch": (["cuLaunchKernel", "cuLaunchKernelEx"], LAUNCHES),
                "captured": (["captured"], 10), "graph_launch": (["cuGraphLaunch"], 20)}
    compare("counts, static cudart", programs["static"], expected, folder / "static")
    return programs["shared"]


def check_kill(program, folder):
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "GPUPROF_OUT": str(folder)}
    with subprocess.Popen([program, "2000000000"], env=env, stdout=subprocess.DEVNULL) as process:
        time.sleep(5)
        process.kill()
    done = subprocess.run([COLLECTOR, "report", "--strict", folder], capture_output=True, text=True,
                          check=False)
    calls = sum(recorded(folder).values())
    row("SIGKILL after 5 s", "ok" if done.returncode == 0 and calls else "FAILED",
        f"{calls} calls read back, report --strict ended with {done.returncode}")


def check_overhead(program, folder):
    ratios = []
    for i in range(7):
        start = time.monotonic()
        subprocess.run([program, str(LAUNCHES)], check=True, stdout=subprocess.DEVNULL)
        bare = time.monotonic() - start
        start = time.monotonic()
        record([program, str(LAUNCHES)], folder / str(i))
        ratios.append((time.monotonic() - start) / bare)
    row("time of a launch-bound program under gpuprof, over bare", "ok",
        f"median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f} of 7")


def main():
    for part in (LIBRARY, COLLECTOR):
        if not part.exists():
            print(f"check-gpu: {part} is not there; run make first", file=sys.stderr)
            return 1
    cuda = driver()
    if not cuda:
        return 1
    check_identity(cuda)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        program = check_programs(folder)
        if program:
            check_kill(program, folder / "kill")
            check_overhead(program, folder / "overhead")
    table = "| check | result | detail |\n|---|---|---|\n"
    table += "".join(f"| {' | '.join(r)} |\n" for r in rows)
    (BUILD / "check-gpu.md").write_text(table, encoding="utf-8")
    failed = sum(r[1] == "FAILED" for r in rows)
    print(f"{sum(r[1] == 'ok' for r in rows)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
