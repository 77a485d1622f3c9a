# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA keeps what it promises, whatever gpuprof does: its own self-tests."""

import ctypes
import os
import subprocess
import uuid

import fault_truth
import pytest
import toolchain
from conftest import BUILD, ROOT


def test_sim_selftest():
    """Against both shared runtimes and the static one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SIMCUDA_", "LD_"))}
    done = subprocess.run(["make", "-s", "sim-selftest"], cwd=ROOT, env=env, check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sim_nvml(monkeypatch):
    """NVML has the driver's devices, by each way to them, and says so before any cuInit."""
    monkeypatch.setenv("SIMCUDA_DEVICES", "3")
    nvml = ctypes.CDLL(str(BUILD / "sim" / "libnvidia-ml.so.1"))
    driver = ctypes.CDLL(str(BUILD / "sim" / "libcuda.so.1"))
    count, device, same = ctypes.c_uint(), ctypes.c_void_p(), ctypes.c_void_p()
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 1  # not initialised
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 3
    assert driver.cuInit(0) == 0
    text = ctypes.create_string_buffer(96)
    for i in range(3):
        assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0
        assert driver.cuDeviceGetUuid_v2(text, i) == 0
        name = f"GPU-{uuid.UUID(bytes=text.raw[:16])}".encode()
        assert nvml.nvmlDeviceGetUUID(device, text, 96) == 0 and text.value == name
        assert nvml.nvmlDeviceGetHandleByUUID(name, ctypes.byref(same)) == 0
        assert same.value == device.value
        assert driver.cuDeviceGetPCIBusId(text, 96, i) == 0
        assert nvml.nvmlDeviceGetHandleByPciBusId_v2(text, ctypes.byref(same)) == 0
        assert same.value == device.value
    assert nvml.nvmlDeviceGetHandleByIndex_v2(3, ctypes.byref(device)) == 2
    assert nvml.nvmlDeviceGetName(ctypes.c_void_p(8), text, 96) == 2
    assert nvml.nvmlShutdown() == 0 and nvml.nvmlShutdown() == 1


def test_sim_link():
    """What the driver's linker makes can be loaded like any image."""
    driver = ctypes.CDLL(str(BUILD / "sim" / "libcuda.so.1"))
    state, context, module = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    image, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuLinkCreate_v2(0, None, None, ctypes.byref(state)) == 0
    assert driver.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size)) == 1  # of nothing
    three = ctypes.c_size_t(3)
    assert driver.cuLinkAddData_v2(state, 1, b"ptx", three, b"name", 0, None, None) == 0
    assert driver.cuLinkAddFile_v2(state, 1, b"/nowhere", 0, None, None) == 301
    assert driver.cuLinkComplete(state, ctypes.byref(image), ctypes.byref(size)) == 0
    assert driver.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert driver.cuLinkDestroy(state) == 0 and driver.cuLinkDestroy(state) == 400


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
def test_sim_pace(tmp_path):
    """What takes how long, and whom it holds up: on the device and on the host."""
    def run(scene, *words):
        folder = tmp_path / "-".join((scene, *words))
        folder.mkdir()
        return fault_truth.Run(folder, scene, *words).processes

    process, = run("launch-blocking")  # a microsecond for each block; the launch waits
    launches = fault_truth.calls_of(process, "cuLaunchKernel")
    assert [kernel.ns for kernel in process.kernels()] == [6_000_000] * len(launches)
    assert all(kernel.end <= call.end for kernel, call in zip(process.kernels(), launches))
    process, = run("launch-blocking", "healthy")
    first = fault_truth.calls_of(process, "cuLaunchKernel")[0]
    assert first.end < process.kernels()[0].end
    pageable, = run("pageable-copies")  # half as fast as pinned memory, and the call waits
    pinned, = run("one-stream")
    slow, fast = pageable.copies(), pinned.copies()
    assert {copy.ns for copy in slow} == {1000 + (1 << 20) * 1000 // 250}
    assert {copy.ns for copy in fast} == {1000 + (1 << 20) * 1000 // 500}
    calls = fault_truth.calls_of(pageable, "cuMemcpy")
    assert all(copy.end <= call.end for copy, call in zip(slow, calls))
    assert fault_truth.calls_of(pinned, "cuMemcpy")[-1].end < fast[-1].begin
    process, = run("allocation-churn")
    assert all(call.ns >= 1_500_000 for call in fault_truth.calls_of(process, "cuMemFree"))
    ranks = [process.kernels("nccl") for process in run("straggler")]
    for kernels in zip(*ranks):  # the n-th of each
        assert {kernel.end for kernel in kernels} == {max(k.begin for k in kernels) + 200_000}
