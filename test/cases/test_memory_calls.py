# SPDX-License-Identifier: Apache-2.0
"""What the recording says of who gets memory: on which device, how much is left, what goes."""

import pytest
import stream_reader
import toolchain

WAYS = {"linked": (*toolchain.runtime(13), *toolchain.DRIVER),
        "12": (*toolchain.runtime(12), *toolchain.DRIVER),
        "static": (*toolchain.STATIC, *toolchain.DRIVER)}


def allocations(process):
    """(address, device) of each in the order of time, and those of calls inside such calls."""
    outer, inner = [], []
    for call in sorted(process.calls(), key=lambda c: c.begin):
        if call.cls == "alloc" and "bytes" in call.args:
            is_inner = call.flags & stream_reader.NESTED
            device = call.args["device"]
            (inner if is_inner else outer).append(
                (f"0x{call.args['ptr']:x}", device - 2**64 if device >> 63 else device))
            assert not is_inner or inner[-1][1] == outer[-1][1]
    return outer, inner


@pytest.mark.parametrize("way", WAYS)
def test_device_of_each_allocation(library, tmp_path, way):
    """Where the driver says that it is; also that of the driver's calls inside the runtime's."""
    program = toolchain.build("memory_work.c", *WAYS[way])
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_NESTED="1")
    done = toolchain.run([program], env)
    truth = [(address, int(device)) for address, device in map(str.split, done.stdout.splitlines())]
    [process] = stream_reader.read_folder(tmp_path / "out")
    outer, inner = allocations(process)
    assert outer == truth and bool(inner) == (way != "static")
    assert len(truth) > 100 and {device for _, device in truth} == {-1, 0, 1}
