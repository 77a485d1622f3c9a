# SPDX-License-Identifier: Apache-2.0
"""What all modules of check-gpu share: the table, the built parts, and running a command."""

import collections
import functools
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "test" / "gpu"
BUILD = ROOT / os.environ.get("BUILD", "build")
LIBRARY = BUILD / "libgpuprof.so"
OS_LIBRARY = BUILD / "libgpuprof-os.so"
COLLECTOR = BUILD / "gpuprof-collector"
COMMAND_SECONDS_MAX = 300
OK, FAILED, NOT_RUN = "ok", "FAILED", "not run"

rows = []


class State:  # pylint: disable=too-few-public-methods
    """Where the table goes, and when there is no time left for another command."""
    table = None
    end = None


class Failure(Exception):
    """A row cannot be judged further: something before it went wrong."""


class OutOfTime(Exception):
    """--seconds are over."""


def begin(table, seconds):
    State.table = table
    State.end = time.monotonic() + seconds if seconds else None


def seconds_left():
    """For one command."""
    left = State.end - time.monotonic() if State.end else COMMAND_SECONDS_MAX
    if left <= 0:
        raise OutOfTime
    return min(left, COMMAND_SECONDS_MAX)


def row(name, result, detail):
    """One line of the table; `result` may be a condition."""
    if isinstance(result, bool):
        result = OK if result else FAILED
    detail = " ".join(str(detail).split())
    rows.append((name, result, detail))
    write_table()  # whoever ends us leaves what there is
    print(f"{result:8} {name}: {detail}", flush=True)
    return result == OK


def not_run(name, reason):
    row(name, NOT_RUN, reason)


def bare_environment(**settings):
    """The caller's, without gpuprof and its settings; GPUPROF_CUPTI is the machine's."""
    kept = {k: v for k, v in os.environ.items()
            if k == "GPUPROF_CUPTI" or not k.startswith("GPUPROF_")}
    kept.update(settings)
    return kept


def recording_environment(folder, **settings):
    env = bare_environment(GPUPROF_OUT=str(folder), **settings)
    preload = os.environ.get("LD_PRELOAD")
    libraries = [LIBRARY, *([OS_LIBRARY] if "GPUPROF_OS" in settings else []),
                 *([preload] if preload else [])]
    env["LD_PRELOAD"] = ":".join(map(str, libraries))
    return env


Done = collections.namedtuple("Done", "status stdout stderr")


def run(command, env):
    """Its status is "timeout" if it had to be ended."""
    command = [str(part) for part in command]
    seconds = seconds_left()
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, errors="replace",
                          start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            if State.end and time.monotonic() >= State.end:
                raise OutOfTime from None
            return Done("timeout", stdout, stderr)
    return Done(process.returncode, stdout, stderr)


def tail(text, length=200):
    """The last words of a program, for a row's detail."""
    return " ".join(text.split())[-length:]


def kill_when(command, env, word, seconds_after, meanwhile=lambda: None):
    """Starts it, waits for a line with `word`, does `meanwhile`, then ends its whole session with
    SIGKILL."""
    command = [str(part) for part in command]
    seconds = seconds_left()
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True,
                          start_new_session=True) as process:
        late = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        found = any(word in line for line in process.stdout)
        try:
            if found:
                meanwhile()
                process.wait(timeout=seconds_after)
        except subprocess.TimeoutExpired:
            pass
        late.cancel()
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
    return found and alive


@functools.lru_cache(maxsize=None)
def find_nsys():
    """Its path; it is often installed and not on the PATH. None: there is none."""
    found = [shutil.which("nsys"), *sorted(glob.glob("/opt/nvidia/nsight-systems*/**/bin/nsys",
                                                     recursive=True), reverse=True),
             *sorted(glob.glob("/usr/local/cuda*/bin/nsys"), reverse=True),
             # Nsight Compute's: it records, but has nothing to make a report of that with.
             *sorted(glob.glob("/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"),
                     reverse=True)]
    return next((path for path in found if path), None)


@functools.lru_cache(maxsize=None)
def find_torch():
    """(an interpreter that has PyTorch with CUDA, None), or (None, why there is none)."""
    homes = [os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    pythons = [sys.executable, *(f"{home}/bin/python" for home in homes if home),
               shutil.which("python3"), shutil.which("python"), "/opt/conda/bin/python"]
    reasons = []
    for python in dict.fromkeys(path for path in pythons if path and os.path.exists(path)):
        done = run([python, "-c", "import torch; print(torch.__version__, torch.version.cuda, "
                    "torch.cuda.is_available())"], bare_environment())
        if done.status == 0 and done.stdout.split()[-1] == "True":
            return python, None
        reasons.append(f"{python}: PyTorch without CUDA: {done.stdout.strip()}" if not done.status
                       else f"{python}: {tail(done.stderr, 100)}")
    return None, f"no PyTorch: {'; '.join(reasons)}"


def collect(*arguments):
    return run([COLLECTOR, *arguments], bare_environment())


def write_table():
    text = "| check | result | detail |\n|---|---|---|\n"
    for parts in rows:
        text += "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |\n"
    State.table.write_text(text, encoding="utf-8")


def summary():
    """Prints the count of each result; the exit status."""
    counts = collections.Counter(result for _, result, _ in rows)
    print(f"{counts[OK]} passed, {counts[FAILED]} failed, {counts[NOT_RUN]} not run")
    return 1 if counts[FAILED] or not counts[OK] else 0


def complain(text):
    print(f"check-gpu: {text}", file=sys.stderr)
