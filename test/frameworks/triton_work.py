# SPDX-License-Identifier: Apache-2.0
"""A little of Triton without PyTorch: a compiled kernel, launched on memory of the driver's."""

import ctypes

import triton
import triton.language as tl
from triton.backends.nvidia.driver import CudaDriver, CudaUtils

libcuda = ctypes.CDLL("libcuda.so.1")


class Driver(CudaDriver):
    """The standard one asks PyTorch for the device and the stream."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.utils = CudaUtils()
        self.launcher_cls = __import__("triton.backends.nvidia.driver", fromlist=["x"]).CudaLauncher
        self.get_current_device = lambda: 0
        self.set_current_device = lambda _: None
        self.get_current_stream = lambda _: 0
        self.get_device_capability = lambda _=0: (9, 0)


class Memory:
    dtype = "fp32"

    def __init__(self, count):
        self.address = ctypes.c_uint64()
        assert libcuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(4 * count)) == 0

    def data_ptr(self):
        return self.address.value


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


assert libcuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert libcuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert libcuda.cuCtxSetCurrent(context) == 0
triton.runtime.driver.set_active(Driver())
x, y = Memory(1000), Memory(1000)
for _ in range(20):
    add[(8,)](x, y, 1000, BLOCK=128)
assert libcuda.cuStreamSynchronize(None) == 0
print(triton.__version__, "launched")
