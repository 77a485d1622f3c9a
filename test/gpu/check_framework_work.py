# SPDX-License-Identifier: Apache-2.0
"""Programs of real frameworks, framework_work.py: unchanged under gpuprof, recorded in full."""

import collections
import functools
import json
import re
import sys
import traceback

import check_training
import gpu_dump
from gpu_table import (FAILED, HERE, Failure, OutOfTime, bare_environment, collect, find_torch,
                       not_run, recording_environment, row, run, tail)

Program = collections.namedtuple("Program", "name module status settings")
# The most important first: --seconds may end the section.
PROGRAMS = (
    Program("cupy", "cupy", 0, {}),
    Program("triton", "triton", 0, {}),
    Program("compile", "torch", 0, {"GPUPROF_PYTORCH": "modules"}),
    Program("nccl", "torch", 0, {}),
    Program("jax", "jax", 0, {}),
    Program("cudnn", "torch", 0, {"GPUPROF_PYTORCH": "stacks"}),
    Program("exit", "torch", 3, {}),
    Program("raise", "torch", 1, {}),
    Program("threads", "torch", 0, {}),
    Program("processes", "torch", 0, {}),
    Program("attention", "transformers", 0, {}),
    Program("expandable", "torch", 0, {}),
    Program("async", "torch", 0, {}),
    Program("numba", "numba", 0, {}),
)
# It ends without a wait for its kernels: CUPTI may still hold their records.
UNFINISHED = "exit"


@functools.lru_cache(maxsize=None)
def find_python(module):
    """An interpreter that has the module, PyTorch's before ours; it may be None."""
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    pythons = [python for python in (find_torch()[0], sys.executable) if python]
    return next((python for python in pythons
                 if run([python, "-c", look], bare_environment()).status == 0), None)


def run_bare(command, program):
    """What it does without gpuprof."""
    done = run(command, bare_environment())
    if done.status != program.status:
        raise Failure(f"the bare run ended with {done.status}: {tail(done.stderr)}")
    return done


def judge_run(title, program, folder, command):
    """Its standard output; or a Failure, and then nothing of it can be judged."""
    bare = run_bare(command, program)
    done = run(command, recording_environment(folder, **program.settings))
    same = (done.status, done.stdout) == (bare.status, bare.stdout)
    if not same and run_bare(command, program).stdout != bare.stdout:
        raise Failure("the bare run gives other output each time")
    said = [line for line in done.stderr.splitlines() if line.startswith("gpuprof: ")]
    wanted = int((re.findall(r"^recordings (\d+)$", bare.stdout, re.M) or [1])[0])
    found = len(gpu_dump.files(folder))
    row(f"{title}: unchanged", same and not said and found == wanted,
        f"status {done.status}, {len(bare.stdout.splitlines())} lines of output "
        f"{'equal to' if same else 'differ from'} the bare run's"
        f"{'' if same else ' (' + tail(done.stdout) + '; ' + tail(done.stderr) + ')'}; "
        f"{found} recordings (wanted: {wanted}); gpuprof said {'; '.join(said) or 'nothing'}")
    return bare.stdout


def judge_known(title, program, processes, lost, text):
    """Kernels that the program itself counted; those of the last moment may be lost, and told."""
    found, good = [], True
    for name, count in re.findall(r"^known (\S+) (\d+)$", text, re.M):
        seen = sum(name in kernel.name for p in processes for kernel in p.done("kernel"))
        missing = lost.get("gpu_missing", 0) if program.name == UNFINISHED else 0
        good = good and seen <= int(count) <= seen + missing
        found.append(f"{seen} of {count} kernels {name}")
    calls = collections.Counter(c.kind for p in processes for c in p.calls)
    row(f"{title}: counts", good, f"{', '.join(found) or 'it knows none'}; "
        f"calls {dict(calls)}; losses: {lost or 'none'}")


def judge_report(title, folder, lost):
    done = collect("report", "--format=json", "--strict", folder)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {}
    peaks = [f"{peak['name']} {peak['bytes']}" for peak in report.get("gpu_memory_peak", [])]
    row(f"{title}: report", bool(done.status) == bool(lost) and bool(report),
        f"--strict ended with {done.status}; {len(report.get('cuda_gpu_kern_sum', []))} kernels "
        f"by name; bytes: {', '.join(peaks) or 'none'}; {tail(done.stderr) or 'it said nothing'}")


def check_program(program, folder):
    title = f"frameworks, {program.name}"
    python = find_python(program.module)
    if not python:
        raise Failure(f"no Python that has {program.module}")
    # The same cache for all runs of one program, and nothing of another's.
    own = folder / f"{program.name}-files"
    own.mkdir()
    recorded = folder / program.name
    text = judge_run(title, program, recorded,
                     [python, HERE / "framework_work.py", program.name, own])
    try:
        processes = gpu_dump.read(recorded)
        lost = gpu_dump.losses(recorded)
        allowed = {"gpu_missing"} if program.name == UNFINISHED else set()
        check_training.check_orphans(title, processes, lost, allowed)
        judge_known(title, program, processes, lost, text)
        judge_report(title, recorded, lost)
    except Failure as failure:
        row(f"{title}: recording", FAILED, failure)


def check_all(folder):
    folder.mkdir()
    for program in PROGRAMS:
        try:
            check_program(program, folder)
        except Failure as failure:
            not_run(f"frameworks, {program.name}", failure)
        except OutOfTime:
            raise
        except Exception:  # pylint: disable=broad-except
            row(f"frameworks, {program.name}", FAILED,
                f"check-gpu itself: {traceback.format_exc(limit=-3)}")
