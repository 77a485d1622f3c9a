# SPDX-License-Identifier: Apache-2.0
"""A program that hangs, running and killed: in which call, from where, and what of the device's
work had not finished. Where it hangs the program says itself, before it does."""

import json
import re
import signal
import subprocess

import conftest
import launched
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

SCRIPT = toolchain.SOURCES / "hang_python.py"
PYTHON = "/usr/bin/python3"


class Hung:
    """A program that hangs, under gpuprof."""

    def __init__(self, command, library, tmp_path, **settings):
        self.data = tmp_path / "data"
        env = toolchain.environment(self.data, library, **{
            "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.12",
            "GPUPROF_LIVE": tmp_path, "SIMCUDA_ENDLESS": "endless", **settings})
        self.program = conftest.Program([str(word) for word in command], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = []
        for line in self.program.stdout:
            if line.strip() == "hangs":
                break
            self.said.append(line.rstrip("\n").split("\t"))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.program.kill()
        self.program.communicate()

    def read(self):
        [process] = stream_reader.read_folder(self.data)
        return process


def dumped(collector, data):
    """The lines of the dump; of the call that is open, its words."""
    lines = subprocess.run([collector, "dump", data], capture_output=True, text=True,
                           check=False, timeout=180).stdout.splitlines()
    opened = [line for line in lines if line.startswith("call ") and line.endswith(" open")]
    return lines, opened


def frames_of(lines, number):
    """(file, function, line) of a stack's Python frames, innermost first; None: another frame."""
    places = {}
    for line in lines:
        if line.startswith("python "):
            text = json.loads(re.search(r'text=(".*?(?<!\\)")', line)[1])
            file, function = text.split("\0")
            places[re.search(r"location=(\d+)", line)[1]] = \
                [file, function.rpartition(".")[2], re.search(r" line=(\d+)", line)[1]]
    [stack] = {re.search(r"frames=(\S+)", line)[1] for line in lines
               if re.match(rf"stack .*\bstack={number} ", line)}
    return [places[word.removeprefix("python:")] if word.startswith("python:") else None
            for word in stack.split(",")]


@pytest.mark.parametrize("scene, number", [("main", signal.SIGKILL), ("thread", signal.SIGTERM)])
def test_where_python_hangs(library, collector, tmp_path, scene, number):
    """Its frames are read while it hangs, by default, and nothing of them is lost by a kill."""
    with Hung([PYTHON, SCRIPT, scene, "first", "endless", "behind"], library, tmp_path) as hung:
        def has_stack():
            return any("stack=" in line for line in dumped(collector, hung.data)[1])
        launched.wait_until(has_stack, 120)
        running = dumped(collector, hung.data)
        hung.program.send_signal(number)
        hung.program.wait()
        killed = dumped(collector, hung.data)
    for lines, opened in (running, killed):
        [call] = opened
        assert call.startswith("call cudaStreamSynchronize ")
        assert frames_of(lines, re.search(r" stack=(\d+)", call)[1]) == hung.said


def hang_work():
    return toolchain.build("hang_work.c", *toolchain.runtime(12), *toolchain.DRIVER)


def test_where_c_hangs(library, collector, tmp_path):
    """The stack that --backtrace has taken of each call at its begin."""
    with Hung([hang_work(), "kernel"], library, tmp_path, GPUPROF_BACKTRACE="sync") as hung:
        def is_open():
            return any("cudaStreamSynchronize" in line
                       for line in dumped(collector, hung.data)[1])
        launched.wait_until(is_open, 120)
        hung.program.kill()
        hung.program.wait()
        [call] = [call for call in hung.read().of_type(stream_reader.CALL)
                  if call.flags & stream_reader.OPEN]
        assert call.stack and f" stack={call.stack} " in dumped(collector, hung.data)[1][0]
        done = subprocess.run([collector, "report", "--by=stack", hung.data], check=False,
                              capture_output=True, text=True, timeout=180)
    names = re.findall(r"\b(wait_for_kernel|main)\b", done.stdout)
    assert names[:2] == ["wait_for_kernel", "main"], done.stdout
