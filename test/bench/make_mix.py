#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints training-step.mix: one training step's CUDA calls. The seed is fixed; run it again and it
prints the same file. See the comment that it prints for what is modelled and why."""

import math
import random

SEED = 20240611
KERNELS = 60
LAUNCHES = 400
GAP_SIGMA = 0.30
DURATION_SIGMA = 0.25

HEAD = f"""\
# One step of training a small transformer, as its CUDA calls reach libcudart: what `make bench`
# replays. Made by make_mix.py (seed {SEED}), modelled on what profilers show of PyTorch steps:
# {LAUNCHES} launches of {KERNELS} kernels (few take most launches: rank^-0.8), batches and a loss
# copied, gradients cleared, events between two streams, one synchronisation.
#
# A line: name, gap (ns of the program's own time before the call), duration (ns), argument words.
# Both times are medians, log-normal over the lines. A replay multiplies each by
# exp(sigma x normal) anew in every step; the sigmas stand in the `noise` line. One value in a
# hundred is ten times as long (the scheduler). Copies with slots > 1 take another source buffer in
# every step, as pinned staging buffers do.
#
# noise  gap_sigma duration_sigma
# kernel name
# launch gap duration kernel grid.x grid.y grid.z block.x block.y block.z shared stream
# copy   gap duration dst src bytes kind stream slots
# set    gap duration dst value bytes stream
# record gap duration event stream
# wait   gap duration stream event
# sync   gap duration stream
"""

STREAM_COMPUTE = 0
STREAM_COMM = 0x55D0C4A81F30

PARTS = ["vectorized_elementwise_kernel", "unrolled_elementwise_kernel", "reduce_kernel",
         "layer_norm_forward", "layer_norm_backward", "softmax_warp_forward",
         "softmax_warp_backward", "indexSelectLargeIndex", "multi_tensor_apply_kernel",
         "fmha_cutlassF_f16_aligned_64x64_rf_sm80", "fmha_cutlassB_f16_aligned_64x64_k64_sm80",
         "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_tn", "splitKreduce_kernel"]


def kernel_name(i):
    part = PARTS[i % len(PARTS)]
    name = f"{part}_{i}"
    return f"_ZN2at6native{len(name)}{name}ILi{4 << i % 3}EfNS0_13BinaryFunctorIfffEEEEvT0_iT1_"


def main():
    rng = random.Random(SEED)

    def log_normal(median, sigma):
        return max(200, round(median * math.exp(rng.gauss(0, sigma))))

    print(HEAD, end="")
    print("noise", GAP_SIGMA, DURATION_SIGMA)
    shapes = []
    for i in range(KERNELS):
        print("kernel", kernel_name(i))
        grid = [rng.choice([1, 8, 32, 108, 216, 512, 1536, 4096, 12288]),
                rng.choice([1, 1, 1, 4, 12]), rng.choice([1, 1, 1, 8])]
        block = rng.choice([[128, 1, 1], [256, 1, 1], [512, 1, 1], [32, 4, 1], [64, 1, 1]])
        shared = rng.choice([0, 0, 0, 1024, 16384, 49152, 65536])
        shapes.append((grid, block, shared))
    weights = [(i + 1) ** -0.8 for i in range(KERNELS)]
    calls = ["launch"] * LAUNCHES + ["copy"] * 12 + ["set"] * 20 + ["record"] * 18 + ["wait"] * 9
    rng.shuffle(calls)
    for call in ["copy0", "copy0"] + calls + ["copy1", "sync"]:
        gap = log_normal(6500, 0.6)
        duration = log_normal(4200, 0.35)
        address = 0x7F3A00000000 + rng.randrange(1 << 16) * 512
        other = 0x7F3A40000000 + rng.randrange(1 << 16) * 512
        size = rng.choice([4, 512, 4096, 65536, 1 << 20, 3145728, 50331648])
        stream = STREAM_COMM if rng.random() < 0.08 else STREAM_COMPUTE
        if call == "launch":
            kernel = rng.choices(range(KERNELS), weights)[0]
            grid, block, shared = shapes[kernel]
            grid = [max(1, grid[0] >> rng.choice([0, 0, 0, 1])), grid[1], grid[2]]
            print("launch", gap, duration, kernel, *grid, *block, shared, stream)
        elif call == "copy0":  # a batch, from pinned memory
            print("copy", gap, log_normal(9000, 0.2), address, 0x7F2000000000 + size, 524288, 1,
                  stream, 4)
        elif call == "copy1":  # the loss
            print("copy", gap, log_normal(14000, 0.3), 0x7F2100000000, address, 4, 2, 0, 1)
        elif call == "copy":
            print("copy", gap, duration, address, other, size, 3, stream, 1)
        elif call == "set":
            print("set", gap, log_normal(3500, 0.3), address, 0, size, stream)
        elif call == "record":
            event = 0x55D0C4B00000 + 64 * rng.randrange(24)
            print("record", gap, log_normal(1400, 0.3), event, stream)
        elif call == "wait":
            event = 0x55D0C4B00000 + 64 * rng.randrange(24)
            print("wait", gap, log_normal(1100, 0.3), STREAM_COMM, event)
        else:
            print("sync", gap, log_normal(900000, 0.1), 0)


main()
