# SPDX-License-Identifier: Apache-2.0
"""A little of CuPy: its pool, compiled elementwise and raw kernels, streams, copies."""

import cupy

print(cupy.__version__, cupy.cuda.runtime.getDeviceCount())
a = cupy.zeros((256, 256), dtype=cupy.float32)
for _ in range(20):
    a = a * 2 + 1
print(a.shape, a.sum().shape)
kernel = cupy.RawKernel('extern "C" __global__ void own(float *x) { x[0] = 1; }', "own")
with cupy.cuda.Stream(non_blocking=True) as stream:
    kernel((4,), (32,), (a,))
    stream.synchronize()
print(cupy.asnumpy(a).shape)
with cupy.cuda.Device(1):
    print(cupy.asarray(cupy.asnumpy(a)).device)
