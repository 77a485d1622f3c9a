# SPDX-License-Identifier: Apache-2.0
"""What is said on a terminal while a verb takes long: nothing that stays."""

import os
import pty
import random
import re
import subprocess

import conftest
import pytest
import toolchain

RANKS = 12
LINE = re.compile(r"\rgpuprof: (\w+): (\d+) % read, [\d.]+ \w+/s, (\d+) s left\x1b\[K")


@pytest.fixture
def data(make_stacks):
    lines, numbers = [], random.Random(1)
    for rank in range(RANKS):
        lines += [f"process {rank}", "meta stacks=x", "python 1 1 a.py\tf", "stack 1 0 p1"]
        lines += [f"call cudaFree {10000 * i + numbers.randrange(5000)} {numbers.randrange(5000)} "
                  f"{i} 1 0" for i in range(1, 3000)]
    return make_stacks(*lines)


def on_terminal(collector, tmp_path, *words, term="xterm", fast=True):
    """What the terminal has got from the collector, whose clock runs fast."""
    master, slave = pty.openpty()
    clock = toolchain.build("fast_clock.c", "-shared", "-fPIC")
    environment = {**os.environ, "TERM": term, **({"LD_PRELOAD": str(clock)} if fast else {})}
    with subprocess.Popen([collector, *words], cwd=tmp_path, env=environment, stderr=slave,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as program:
        os.close(slave)
        text = b""
        try:
            while part := os.read(master, 4096):
                text += part
        except OSError:  # the other side is closed
            pass
        os.close(master)
        assert program.wait() == 0
    return text.decode()


@pytest.mark.parametrize("verb,words", [("report", []), ("flame", ["--symbols=none"]),
                                        ("merge", ["--symbols=none", "-o", "x.json"])])
def test_long_work(collector, data, tmp_path, verb, words):
    """How far it is, what is left of it; at its end the line is taken away."""
    text = on_terminal(collector, tmp_path, verb, data, *words)
    lines = LINE.findall(text)
    shares = [int(share) for _, share, _ in lines]
    assert len(lines) > 5 and {name for name, *_ in lines} == {verb}
    assert shares == sorted(shares) and shares[0] < 10 and 40 < shares[-1] <= 100
    assert int(lines[-1][2]) < int(lines[0][2])
    last = list(LINE.finditer(text))[-1]
    assert text[last.end():].startswith("\r\x1b[K")
    rest = LINE.sub("", text).replace("\r\x1b[K", "")
    assert rest == on_terminal(collector, tmp_path, verb, data, *words, fast=False)


def test_several_workers(collector, data, tmp_path):
    """At a terminal a large recording is shared by as many as there are processors, and all of
    them together say how far they are. This build takes a small recording for a large one."""
    keeper = conftest.built(conftest.BUILD / "gpuprof-collector-keeps")
    workers = min(RANKS, 16, len(os.sched_getaffinity(0)))
    for options, count in ([], workers), (["-j1"], 1):
        text = on_terminal(keeper, tmp_path, "report", *options, data, "-o", f"{count}.txt")
        shares = [int(share) for _, share, _ in LINE.findall(text)]
        assert len(shares) > 5 and max(shares) > 40  # as above: not all of a file is blocks
        assert LINE.sub("", text).replace("\r\x1b[K", "") == "" and text.endswith("\r\x1b[K")
        kept = data / ".gpuprof-report"
        assert kept.read_bytes().count(b"GPUPART\0") == 1 + count
        kept.unlink()
    subprocess.run([keeper, "report", data, "-o", "quiet.txt"], cwd=tmp_path, check=True,
                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert (data / ".gpuprof-report").read_bytes().count(b"GPUPART\0") == 2
    said = {(tmp_path / f"{name}.txt").read_bytes() for name in (workers, 1, "quiet")}
    assert said == {run_alone(collector, data)}


def run_alone(collector, data):
    return subprocess.run([collector, "report", "-j1", "--no-index", data], check=True,
                          stdout=subprocess.PIPE).stdout


def test_neither_short_work_nor_another_place_has_it(collector, run_verb, data, tmp_path):
    assert on_terminal(collector, tmp_path, "report", data, fast=False) == ""
    assert on_terminal(collector, tmp_path, "report", data, term="dumb") == ""
    clock = toolchain.build("fast_clock.c", "-shared", "-fPIC")
    done = run_verb("report", data, env={**os.environ, "LD_PRELOAD": str(clock)})
    assert done.stderr == ""
