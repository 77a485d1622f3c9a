# SPDX-License-Identifier: Apache-2.0
"""A little of JAX: devices, compiled elementwise kernels, a matrix product, copies."""

from jax._src import hardware_utils

hardware_utils._NVIDIA_GPU_DEVICES = ["/dev/null"]  # the simulated GPUs have no device files

import jax
import jax.numpy as jnp

print(jax.__version__, [str(device) for device in jax.devices()])


@jax.jit
def step(matrix, total):
    return jnp.maximum(matrix @ matrix + total, 0.0)


matrix = jnp.ones((256, 256))
total = jnp.zeros((256, 256))
for _ in range(20):
    total = step(matrix, total)
total.block_until_ready()
print(total.shape, total.sum().shape)
print(jax.device_put(total, jax.devices()[-1]).device)
print(jax.device_get(total).shape)
