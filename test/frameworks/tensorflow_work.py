# SPDX-License-Identifier: Apache-2.0
"""A little of TensorFlow: devices, memory, elementwise kernels, a matrix product, copies."""

import tensorflow as tf

devices = tf.config.list_physical_devices("GPU")
print(tf.__version__, [device.name for device in devices])
for device in devices:
    tf.config.experimental.set_memory_growth(device, True)
with tf.device("/GPU:0"):
    matrix = tf.ones((256, 256))
    total = tf.zeros((256, 256))
    for _ in range(20):
        total = tf.nn.relu(tf.matmul(matrix, matrix) + total)
    print(total.shape, total.device.endswith("GPU:0"))
    print(tf.reduce_sum(total).shape)
with tf.device("/CPU:0"):
    print(tf.identity(total).device.endswith("CPU:0"))
