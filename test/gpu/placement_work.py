# SPDX-License-Identifier: Apache-2.0
"""Memory of each device through libcuda alone; prints a line "address device bytes" for each block,
and "info free total" for what the driver said."""

import ctypes

from ctypes_work import Driver

cuda = Driver()
cuda.Init(0)
count = ctypes.c_int()
cuda.DeviceGetCount(ctypes.byref(count))
contexts = [ctypes.c_void_p() for _ in range(count.value)]
for device, context in enumerate(contexts):
    cuda.DevicePrimaryCtxRetain(ctypes.byref(context), device)


def get(device, size):
    address = ctypes.c_uint64()
    cuda.MemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    print(f"{address.value:#x}", device, size)


for device, context in enumerate(contexts):
    cuda.CtxSetCurrent(context)
    get(device, 1 << 20)
    cuda.CtxPushCurrent_v2(contexts[0])
    get(0, 2 << 20)
    cuda.CtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    get(device, 3 << 20)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.MemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print("info", free.value, total.value)
