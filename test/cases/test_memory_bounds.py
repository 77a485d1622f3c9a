# SPDX-License-Identifier: Apache-2.0
"""The memory that gpuprof takes in a process is what README says, whatever the program does."""

import re

import conftest
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="an emulator's memory is not ours")

FIXED = 12  # MiB: 1 of chunks, what the writer touches of its 16, code
WRITER = 16  # MiB, if it needs them all
CHUNKS = 64  # MiB, the setting's standard value
READY = 1  # MiB of free chunks whose pages the writer has mapped ahead of their use
STACKS = 3 + 6 + 6.5  # MiB, and half a MiB for each thread


@pytest.fixture(name="memory")
def fixture_memory(library, tmp_path):
    """memory(scenario, count, **settings): MiB that the process had at most, beyond what the bare
    one had; and its recording."""
    folder, link = toolchain.tiny()
    program = toolchain.build("lossy.c", *link, f"-I{conftest.ROOT / 'inject'}")

    def run(env, *arguments):
        done = toolchain.run([program, *arguments, "memory"], env, status=3, timeout=120)
        assert done.stderr == ""
        return int(re.fullmatch(r"VmHWM:\s+([0-9]+) kB\n", done.stdout)[1]) / 1024

    def measure(*arguments, **settings):
        bare = run(toolchain.environment(None, LD_LIBRARY_PATH=folder), *arguments)
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        took = run(toolchain.environment(out, library, LD_LIBRARY_PATH=folder,
                                         **{"GPUPROF_WAIT": "60s",
                                            "GPUPROF_BACKTRACE_THRESHOLD": "off", **settings}),
                   *arguments) - bare
        [stream] = out.glob("*.gpuprof")
        found, _, counters, _ = stream_reader.count_calls(stream)
        assert not any(counters.get(name) for name in stream_reader.LOSSES)
        return took, sum(found.values())
    return measure


@pytest.mark.parametrize("threads", [1, 100, 1000, 3000])
def test_threads(memory, threads):
    """64 KiB each, and what our code touches of a stack, beside what they fill and the writer has
    not yet stored."""
    took, calls = memory("threads", threads)
    assert calls == 2000 * threads + 1
    stored = min(CHUNKS, 1 + threads * 2000 * 64 / (1 << 20))
    assert took < FIXED + stored + threads * (64 + 16) / 1024


def test_stacks(memory):
    """All calls of a hundred threads have one, taken by libunwind."""
    took, calls = memory("threads", 100, GPUPROF_BACKTRACE_THRESHOLD="0",
                         GPUPROF_UNWINDER="libunwind")
    assert calls == 2000 * 100 + 1
    stored = 1 + 100 * 2000 * (64 + 8) / (1 << 20)
    assert took < FIXED + STACKS + stored + 100 * (0.5 + (64 + 16) / 1024)


def test_threads_one_after_another(memory):
    """The chunks of those that have ended serve the next ones; the writer has a block of each."""
    took, calls = memory("short-threads", 3000, GPUPROF_BUFFER="8M")
    assert calls == 100 * 3000 + 1 and took < WRITER + 4 + 8 + READY


def test_a_day_at_full_speed(memory):
    """However many calls: the chunks, and the writer's."""
    least, calls = memory("calls", 500_000, GPUPROF_BUFFER="8M")
    most, many = memory("calls", 15_000_000, GPUPROF_BUFFER="8M")
    assert (calls, many) == (500_001, 15_000_001)
    assert least < FIXED + 8 and most < FIXED + 8
