# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA keeps what it promises, whatever gpuprof does: its own self-tests."""

import ctypes
import os
import subprocess
import uuid

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
