# SPDX-License-Identifier: Apache-2.0
"""A signal at every instruction of the library: its handler calls, jumps, fills the buffer."""

import collections
import shutil
import signal

import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(toolchain.CROSS != "" or not shutil.which("gcc"),
                                reason="no single-stepping under an emulator")

FUNCTIONS = {1: "cudaMalloc", 2: "cudaLaunchKernel", 3: "cudaMemset"}


class Steps:
    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.log, self.live = folder / "arrived", folder / "live"
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("stepped.c", *link)
        self.tracer = toolchain.build("step.c")

    def __call__(self, number, handler, first=0, stride=1, calls=1, status=3, **settings):
        """(how many signals were sent, the process, what arrived at the runtime in order)."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        env = toolchain.environment(out, self.library, LD_LIBRARY_PATH=self.tiny, **settings)
        done = toolchain.run([self.tracer, int(number), first, stride, self.program, self.log,
                              handler, calls], env, status=status, timeout=60)
        processes = stream_reader.read_folder(out)
        toolchain.remove_live(processes)
        words = memoryview(self.log.read_bytes()).cast("Q")
        arrived = [(FUNCTIONS[w >> 32], w & 0xFFFFFFFF) for w in words[1:1 + words[0]]]
        assert len(set(arrived)) == len(arrived)
        return int(done.stdout), processes[0], arrived


@pytest.fixture(name="steps")
def fixture_steps(library, tmp_path):
    return Steps(library, tmp_path)


def key(call):
    return call.symbol, call.args["stream" if "stream" in call.args else "bytes"]


def check(process, arrived, missing=(), stale=False):
    """Each call that arrived is recorded once, but for `missing` functions' and those counted."""
    calls = process.calls()
    recorded = collections.Counter(key(c) for c in calls)
    assert not [k for k, count in recorded.items() if count > 1]
    if not stale:
        assert set(recorded) <= set(arrived)
        assert not [c for c in calls if c.flags & (stream_reader.STALE | stream_reader.OPEN)]
        assert process.counters["stale"] == 0
    else: # noted as open, and left before it came to the runtime
        early = {key(c) for c in calls if c.flags & stream_reader.STALE}
        assert set(recorded) - set(arrived) <= early
    lost = set(arrived) - set(recorded)
    assert {symbol for symbol, _ in lost} <= set(missing)
    assert len(lost) == sum(process.losses.values()), process.losses
    return lost


@pytest.mark.parametrize("nested", ["0", "1"])
def test_handler_calls(steps, nested):
    sent, process, arrived = steps(signal.SIGUSR1, "call", GPUPROF_NESTED=nested)
    assert sent > 100
    lost = check(process, arrived, missing=["cudaMemset"])
    assert 0 < len(lost) < sent # where it interrupted ourselves, its call passes unrecorded


def test_handler_jumps(steps):
    sent, process, arrived = steps(signal.SIGUSR1, "jump")
    assert sent > 100
    assert not check(process, arrived, stale=True)


def test_handler_fills(steps):
    """The buffer is full when the handler returns: the interrupted thread has no chunk any more."""
    sent, process, arrived = steps(signal.SIGUSR1, "fill", stride=11, GPUPROF_BUFFER="1M",
                                   GPUPROF_CHUNK="512K", GPUPROF_ON_FULL="drop")
    assert sent > 10
    check(process, arrived, missing=set(FUNCTIONS.values()))
