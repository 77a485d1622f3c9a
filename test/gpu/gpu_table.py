# SPDX-License-Identifier: Apache-2.0
"""What all modules of check-gpu share: the table, the built parts, and running a command."""

import collections
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "test" / "gpu"
BUILD = ROOT / os.environ.get("BUILD", "build")
LIBRARY = BUILD / "libgpuprof.so"
COLLECTOR = BUILD / "gpuprof-collector"
COMMAND_SECONDS_MAX = 300
OK, FAILED, NOT_RUN = "ok", "FAILED", "not run"

rows = []


class Failure(Exception):
    """A row cannot be judged further: something before it went wrong."""


def row(name, result, detail):
    """One line of the table; `result` may be a condition."""
    if isinstance(result, bool):
        result = OK if result else FAILED
    detail = " ".join(str(detail).split())
    rows.append((name, result, detail))
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
    env["LD_PRELOAD"] = f"{LIBRARY}:{preload}" if preload else str(LIBRARY)
    return env


Done = collections.namedtuple("Done", "status stdout stderr")


def run(command, env):
    """Its status is "timeout" if it had to be ended."""
    command = [str(part) for part in command]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, errors="replace",
                          start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            return Done("timeout", stdout, stderr)
    return Done(process.returncode, stdout, stderr)


def tail(text, length=200):
    """The last words of a program, for a row's detail."""
    return " ".join(text.split())[-length:]


def kill_when(command, env, word, seconds_after):
    """Starts it, waits for a line with `word`, then ends its whole session with SIGKILL."""
    command = [str(part) for part in command]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True,
                          start_new_session=True) as process:
        found = any(word in line for line in process.stdout)
        try:
            if found:
                process.wait(timeout=seconds_after)
        except subprocess.TimeoutExpired:
            pass
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
    return found and alive


def collect(*arguments):
    return run([COLLECTOR, *arguments], bare_environment())


def write_table(path):
    text = "| check | result | detail |\n|---|---|---|\n"
    for parts in rows:
        text += "| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |\n"
    path.write_text(text, encoding="utf-8")


def summary():
    """Prints the count of each result; the exit status."""
    counts = collections.Counter(result for _, result, _ in rows)
    print(f"{counts[OK]} passed, {counts[FAILED]} failed, {counts[NOT_RUN]} not run")
    return 1 if counts[FAILED] or not counts[OK] else 0


def complain(text):
    print(f"check-gpu: {text}", file=sys.stderr)
