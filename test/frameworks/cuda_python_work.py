# SPDX-License-Identifier: Apache-2.0
"""A little of cuda-python: the driver's bindings, which find each function by cuGetProcAddress."""

import ctypes

from cuda.bindings import driver


def check(answer):
    result, *values = answer
    assert result == driver.CUresult.CUDA_SUCCESS, result
    return values[0] if len(values) == 1 else values


check(driver.cuInit(0))
print(check(driver.cuDeviceGetCount()), check(driver.cuDeviceGetName(16, 0)))
context = check(driver.cuDevicePrimaryCtxRetain(0))
check(driver.cuCtxSetCurrent(context))
stream = check(driver.cuStreamCreate(1))
memory = check(driver.cuMemAlloc(1 << 20))
host = bytearray(1 << 20)
module = check(driver.cuModuleLoadData(b"simulated code"))
function = check(driver.cuModuleGetFunction(module, b"own"))
for _ in range(20):
    check(driver.cuMemcpyHtoDAsync(memory, bytes(host), len(host), stream))
    check(driver.cuLaunchKernel(function, 4, 2, 1, 32, 1, 1, 0, stream,
                                ((memory,), (ctypes.c_void_p,)), 0))
check(driver.cuMemsetD8(memory, 7, 1 << 20))
check(driver.cuStreamSynchronize(stream))
check(driver.cuMemcpyDtoH(host, memory, len(host)))
print(host[0], host[-1])
check(driver.cuMemFree(memory))
check(driver.cuStreamDestroy(stream))
check(driver.cuDevicePrimaryCtxRelease(0))
