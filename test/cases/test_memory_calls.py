# SPDX-License-Identifier: Apache-2.0
"""What the recording says of who gets memory: on which device, how much is left, what goes."""

import pytest
import stream_reader
import toolchain
import truth

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
    done = toolchain.run([program, "devices"], env)
    truth = [(address, int(device)) for address, device in map(str.split, done.stdout.splitlines())]
    [process] = stream_reader.read_folder(tmp_path / "out")
    outer, inner = allocations(process)
    assert outer == truth and bool(inner) == (way != "static")
    assert len(truth) > 100 and {device for _, device in truth} == {-1, 0, 1}


RESET = {"cudaDeviceReset", "cuCtxDestroy_v2", "cuDevicePrimaryCtxReset_v2"}
WAYS_OF_MEMORY = RESET | {
    "cudaMemGetInfo", "cudaDeviceGetMemPool", "cudaDeviceGetDefaultMemPool", "cuMemGetInfo_v2",
    "cuDeviceGetMemPool", "cuDeviceGetDefaultMemPool", "cudaImportExternalMemory",
    "cudaDestroyExternalMemory", "cudaGraphAddMemAllocNode", "cudaGraphAddMemFreeNode",
    "cuGraphAddMemAllocNode", "cuGraphAddMemFreeNode", "cudaDeviceGraphMemTrim",
    "cuDeviceGraphMemTrim", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease",
    "cuMemAddressReserve", "cuMemAddressFree", "cuMemRetainAllocationHandle",
    "cuMemImportFromShareableHandle"}


@pytest.mark.parametrize("off", ["on", "paused"])
@pytest.mark.parametrize("way", WAYS)
def test_ways(library, tmp_path, way, off):
    """As the simulated CUDA has them in its log, with their arguments; in a pause, too."""
    program = toolchain.build("memory_work.c", *WAYS[way])
    (tmp_path / "log").mkdir()
    env = toolchain.environment(
        tmp_path / "out", library, GPUPROF_NESTED="1" if off == "on" else "0",
        GPUPROF_START_PAUSED="1" if off == "paused" else "0", SIMCUDA_LOG=tmp_path / "log")
    toolchain.run([program, "ways"], env)
    [process] = stream_reader.read_folder(tmp_path / "out")
    [log] = (tmp_path / "log").iterdir()
    count, left = truth.compare(process, log, hidden="R" if way == "static" else "",
                                nested=off == "on")
    assert count >= 30
    assert {label.split()[1] for label in left} <= {"bytes", "flags"}  # not in the log
    calls = process.calls()
    assert all(c.cls == "alloc" for c in calls)
    seen = {c.symbol for c in calls}
    assert seen >= {s for s in WAYS_OF_MEMORY if way != "static" or not s.startswith("cuda")}
    nodes = [c for c in calls if c.symbol == "cuGraphAddMemAllocNode" and c.result == 0]
    assert {12345, 23456} >= {c.args["bytes"] for c in nodes} >= {23456}
    assert all(c.args["device"] == 1 and c.args["ptr"] for c in nodes)
    infos = [c.args for c in calls if c.symbol == "cuMemGetInfo_v2" and c.args["device"] == 1][-4:]
    assert [infos[0]["free"] - info["free"] for info in infos] == [0, 2 << 20, 2 << 20, 0]
