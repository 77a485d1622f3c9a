# SPDX-License-Identifier: Apache-2.0
"""The blocks of PyTorch's allocator: what a stand-in for it did is what was recorded, and what
libc10 was told."""

import re

import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")

CALL, TENSOR, TENSOR_OOM = 1, 44, 45
MIB = 1 << 20


def run(library, folder, *arguments, flags=(), plugin=False, **settings):
    """(the lines that the program printed, the processes)"""
    program, path = toolchain.tensor_work(*flags, *(("-DPLUGIN", "-shared", "-fPIC") * plugin))
    command = [toolchain.build("plugin_host.c"), program] if plugin else [program]
    env = toolchain.environment(folder / "out", library, LD_LIBRARY_PATH=path, **settings)
    done = toolchain.run([*command, *arguments], env)
    assert done.stderr == ""
    return done.stdout.splitlines(), stream_reader.read_folder(folder / "out")


def printed(lines):
    """[(operation, address, bytes, allocated, reserved, device)]"""
    return [tuple(int(word, 0) for word in line.split()) for line in lines
            if re.match("[0-9]", line)]


def recorded(process):
    """The same of its records, in the order of time."""
    found = []
    for r in sorted(process.records, key=lambda r: r.begin):
        args = (*r.args, *[0] * 8)
        if r.type == TENSOR:
            assert args[6] == 1
            found.append(args[:6])
        elif r.type == TENSOR_OOM:
            assert args[4] == 1
            found.append((0, 0, *args[:4]))
    return found


@pytest.mark.parametrize("shape", ["linked", "old", "plugin"])
def test_blocks(library, tmp_path, shape):
    """Of threads that take turns under the allocator's lock; libc10 is told the same as ever."""
    lines, [process] = run(library, tmp_path, "blocks", "4", "400", plugin=shape == "plugin",
                           flags=["-DSIGNED_TOTALS"] if shape == "old" else [])
    truth = printed(lines)
    assert len(truth) == 1601 and truth[-1][:3] == (0, 0, 1 << 40)
    assert recorded(process) == truth
    assert lines[-1] == "libc10 same" and not process.losses
    for r in process.records:
        if r.type == TENSOR and r.args[0] == 1:
            stands_for = r.args[7] if len(r.args) > 7 else 0
            assert stands_for in (0, max(r.args[2], MIB)) and (stands_for or r.args[2] < MIB)
            assert bool(r.stack) == bool(stands_for)
        elif r.type == TENSOR:
            assert not r.stack and len(r.args) <= 7


@pytest.mark.parametrize("settings", [{"GPUPROF_MEMORY": "off"}, {"GPUPROF_START_PAUSED": "on"},
                                      {"GPUPROF_MEMORY_STACKS": "off"},
                                      {"GPUPROF_BACKTRACE_THRESHOLD": "off"}])
def test_settings(library, tmp_path, settings):
    """Blocks go on in a pause; their stacks are those of the settings."""
    lines, [process] = run(library, tmp_path, "blocks", "2", "100", **settings)
    assert recorded(process) == ([] if "GPUPROF_MEMORY" in settings else printed(lines))
    has_stack = [r for r in process.records if r.type == TENSOR and r.stack]
    assert bool(has_stack) == ("GPUPROF_START_PAUSED" in settings) and lines[-1] == "libc10 same"


def test_without_a_recording(library, tmp_path):
    """libc10 is told; nothing is written."""
    program, path = toolchain.tensor_work()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=path,
                                GPUPROF_OUT="/proc/nowhere")
    done = toolchain.run([program, "blocks", "2", "50"], env)
    assert done.stdout.splitlines()[-1] == "libc10 same"


def test_fork(library, tmp_path):
    """A child has its own file, with its own blocks."""
    lines, processes = run(library, tmp_path, "fork")
    of_child = printed(line[1:] for line in lines if line.startswith("c") and line[1:2].isdigit())
    assert len(of_child) == 2 and len(printed(lines)) == 2
    assert {tuple(recorded(p)) for p in processes} == {tuple(of_child), tuple(printed(lines))}
    assert [line for line in lines if line.endswith("same")] == ["child same", "libc10 same"]


def chances(count, number, whole, sizes):
    """Which of them have a stack, as the header of inject/stack says it, by xorshift."""
    x = number * 0x9E3779B9 & 0xFFFFFFFF | 1
    for size in sizes[:count]:
        if size >= whole:
            yield True
            continue
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        yield x * whole >> 32 < size


def test_stacks_by_chance(library, tmp_path):
    """In proportion to their size: what they stand for is, nearly, what there was."""
    lines, [process] = run(library, tmp_path, "one", "20000", GPUPROF_MEMORY_STACKS="1M")
    blocks = [r for r in process.records if r.type == TENSOR]
    assert recorded(process) == printed(lines) and len(blocks) == 20000
    total = sum(r.args[2] for r in blocks)
    stands_for = sum(r.args[7] for r in blocks if len(r.args) > 7)
    some = [r for r in blocks if r.stack]
    assert all(r.args[7] == MIB for r in some) and 500 < len(some) < 800
    assert abs(stands_for - total) < 4 * (total * MIB) ** 0.5  # its standard error, four times
    [thread] = {r.thread for r in blocks}
    sizes = [MIB] + [r.args[2] for r in sorted(blocks, key=lambda r: r.begin)]
    expected = list(chances(20001, thread, MIB, sizes))[1:]
    assert [bool(r.stack) for r in sorted(blocks, key=lambda r: r.begin)] == expected


def test_stacks_of_calls(library, tmp_path):
    """CUDA's own allocations: those of 1 MiB and more have their stack, however short they were."""
    def stack_of_malloc(**settings):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        _, [process] = run(library, folder, "one", "1", GPUPROF_BACKTRACE_THRESHOLD="10s",
                           **settings)
        [call] = [r for r in process.records if r.type == CALL]
        return call.stack
    assert stack_of_malloc() and stack_of_malloc(GPUPROF_MEMORY_STACKS="1")
    assert not stack_of_malloc(GPUPROF_MEMORY_STACKS="off")
