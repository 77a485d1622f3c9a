# SPDX-License-Identifier: Apache-2.0
"""gpuprof run in a terminal, which stays the program's: keys, jobs, modes, a hang-up."""

import os
import pty
import re
import select
import signal
import termios
import time

import pytest

from launched import LISTENER, PYTHON, has_ended


class Terminal:
    """A command as the session leader of a new pseudo-terminal."""

    def __init__(self, command, cwd):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ.update(PS1="$ ", TERM="dumb", HISTFILE="")
            os.execvp(command[0], [str(part) for part in command])
        self.text = ""

    def expect(self, pattern, seconds=15):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.master, 4096).decode()
                except OSError:
                    end = 0 if not re.search(pattern, self.text) else end
        self.text = self.text[found.end():]
        return found

    def send(self, text):
        os.write(self.master, text.encode())

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(tmp_path):
    open_terminals = []

    def start(*command):
        open_terminals.append(Terminal(command, tmp_path))
        return open_terminals[-1]
    yield start
    for one in open_terminals:
        os.close(one.master)


def test_control_c_arrives_once(terminal, collector, library):
    assert library
    session = terminal(collector, "run", *PYTHON, LISTENER, "20")
    session.expect("ready ([0-9]+)")
    for _ in range(2):
        session.send("\x03")
        session.expect("got 2\r\n")
        time.sleep(0.1)
    session.send("\x1c")
    session.expect("^[^g]*got 3\r\n")
    os.kill(session.pid, signal.SIGUSR2)
    session.expect("^[^g]*got 12\r\n")
    assert session.status() == 7


def test_terminal_stays_the_programs(terminal, collector, library):
    assert library
    session = terminal(collector, "run", "--quiet", *PYTHON,
                       "import os; t = os.open('/dev/tty', os.O_RDWR);"
                       "print(os.tcgetpgrp(t) == os.getpgrp(), all(map(os.isatty, range(3))),"
                       "input('?'))")
    session.expect(r"\?")
    session.send("typed\n")
    session.expect("True True typed")
    assert session.status() == 0


def test_job_control_of_a_shell(terminal, collector, library):
    assert library
    shell = terminal("bash", "--norc", "--noediting", "-i")
    shell.expect(r"\$ ")
    shell.send(f"{collector} run --quiet cat\n")
    shell.expect("cat\r\n")
    for word in ("one", "two"):
        shell.send(word + "\n")
        shell.expect(f"{word}\r\n{word}\r\n")
        shell.send("\x1a")
        shell.expect(r"Stopped")
        shell.expect(r"\$ ")
        shell.send("echo free-$((1+1))\n")
        shell.expect("free-2\r\n")
        shell.send("fg\n")
        shell.expect("cat\r\n")
    shell.send("three\n")
    shell.expect("three\r\nthree\r\n")
    shell.send("\x03")
    shell.expect(r"\$ ")
    shell.send("echo code-$?\n")
    shell.expect("code-130\r\n")
    shell.send(f"{collector} run --quiet sleep 30 &\n")
    shell.expect(r"\$ ")
    shell.send("kill %1; wait %1; echo code-$?\n")
    shell.expect("code-143\r\n")
    shell.send("exit\n")
    shell.status()


def test_terminal_that_hangs_up(terminal, collector, library):
    assert library
    session = terminal(collector, "run", "sh", "-c", "echo ready $$; exec sleep 60")
    pid = int(session.expect("ready ([0-9]+)\r\n")[1])
    os.close(session.master)
    session.master = os.open(os.devnull, os.O_RDONLY)
    assert session.status() == -signal.SIGHUP
    assert has_ended(pid)


def test_output_mode_of_the_terminal_is_untouched(terminal, collector, library):
    assert library
    session = terminal("sh", "-c", f"stty -echo tostop; {collector} run sh -c 'echo x'; stty -a")
    session.expect("nothing was recorded")
    session.expect("-echo ")
    assert termios.tcgetattr(session.master)
    assert session.status() == 0
