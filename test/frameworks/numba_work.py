# SPDX-License-Identifier: Apache-2.0
"""A little of Numba: device arrays, a compiled kernel, streams, pinned memory, two devices."""

import numba
import numpy
from numba import cuda


@cuda.jit
def add_one(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


print(numba.__version__, len(cuda.gpus))
host = numpy.arange(1000.0)
device = cuda.to_device(host)
for _ in range(20):
    add_one[8, 128](device)
stream = cuda.stream()
with cuda.pinned(host):
    other = cuda.to_device(host, stream=stream)
    add_one[8, 128, stream](other)
    stream.synchronize()
cuda.synchronize()
print(device.copy_to_host().shape, other.copy_to_host().shape)
with cuda.gpus[1]:
    print(cuda.to_device(host).copy_to_host().sum())
