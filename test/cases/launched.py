# SPDX-License-Identifier: Apache-2.0
"""A program that a test has started under gpuprof run, and what /proc says of it."""

import os
import select
import signal
import subprocess
import sys
import time

from conftest import children

PYTHON = [sys.executable, "-I", "-S", "-c"]

# Prints one line per signal that arrives, until SIGUSR2 or the time is over.
LISTENER = """
import os, signal, sys, time
seen = []
for number in signal.valid_signals():
    name = getattr(number, "name", "SIG%d" % number)
    if name not in ("SIGKILL", "SIGSTOP", "SIGCHLD", "SIGTSTP"):
        signal.signal(number, lambda n, f: seen.append(n))
print("ready", os.getpid(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.01)
    while seen:
        n = seen.pop(0)
        print("got", int(n), flush=True)
        if n == signal.SIGUSR2:
            sys.exit(7)
"""


class Running:
    """A launcher in the background whose program speaks first: "ready PID"."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        bufsize=0, **options)
        line = self.process.stdout.readline().split()
        assert line[:1] == [b"ready"], (line, self.process.stderr.read())
        self.program = int(line[1])
        if "--exec" not in command:
            wait_until(lambda: len(children(self.process.pid)) == 2)  # program and witness

    def next_signal(self):
        """The number of the next signal that the program got."""
        assert select.select([self.process.stdout], [], [], 10)[0], "no signal arrived"
        word, number = self.process.stdout.readline().split()
        assert word == b"got"
        return int(number)

    def end(self):
        """Ends a LISTENER; what it got besides, after a while in which a double would arrive."""
        time.sleep(0.1)
        os.kill(self.process.pid, signal.SIGUSR2)
        numbers = self.finish()[0]
        assert numbers.pop() == str(int(signal.SIGUSR2))
        assert self.process.returncode == 7
        return numbers

    def finish(self):
        output, errors = self.process.communicate(timeout=20)
        return [line.split()[1] for line in output.decode().splitlines()], errors.decode()


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def has_ended(pid):
    return state_of(pid) in "ZX"


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not within the time"
        time.sleep(0.01)
