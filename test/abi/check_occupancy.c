/* SPDX-License-Identifier: Apache-2.0 */
/* Our theoretical occupancy beside that of CUDA's own cuda_occupancy.h, over devices and launches.
 */
#include <limits.h>
#include <stdio.h>

#include <cuda_occupancy.h>

#include "resolve/occupancy.h"

#define KIB 1024

static const struct {
    int major, minor;
    int threads, blocks; /* of a multiprocessor */
    int shared, block_shared, reserved;
} devices[] = {
    {7, 0, 2048, 32, 96 * KIB, 96 * KIB, 0},      {7, 5, 1024, 16, 64 * KIB, 64 * KIB, 0},
    {8, 0, 2048, 32, 164 * KIB, 163 * KIB, KIB},  {8, 6, 1536, 16, 100 * KIB, 99 * KIB, KIB},
    {8, 7, 1536, 16, 164 * KIB, 163 * KIB, KIB},  {8, 9, 1536, 24, 100 * KIB, 99 * KIB, KIB},
    {9, 0, 2048, 32, 228 * KIB, 227 * KIB, KIB},  {10, 0, 2048, 32, 228 * KIB, 227 * KIB, KIB},
    {10, 3, 2048, 32, 228 * KIB, 227 * KIB, KIB}, {11, 0, 1536, 24, 228 * KIB, 227 * KIB, KIB},
    {12, 0, 1536, 24, 100 * KIB, 99 * KIB, KIB},  {12, 1, 1536, 24, 100 * KIB, 99 * KIB, KIB},
};

static unsigned compare(unsigned d, int threads, int registers, int shared)
{
    cudaOccDeviceProp properties = {.computeMajor = devices[d].major,
                                    .computeMinor = devices[d].minor,
                                    .maxThreadsPerBlock = 1024,
                                    .maxThreadsPerMultiprocessor = devices[d].threads,
                                    .regsPerBlock = 65536,
                                    .regsPerMultiprocessor = 65536,
                                    .warpSize = 32,
                                    .sharedMemPerBlock = 48 * KIB,
                                    .sharedMemPerMultiprocessor = (size_t)devices[d].shared,
                                    .numSms = 100,
                                    .sharedMemPerBlockOptin = (size_t)devices[d].block_shared,
                                    .reservedSharedMemPerBlock = (size_t)devices[d].reserved};
    cudaOccFuncAttributes function = {.maxThreadsPerBlock = INT_MAX,
                                      .numRegs = registers,
                                      .sharedSizeBytes = 0,
                                      .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                      .maxDynamicSharedSizeBytes = (size_t)shared};
    cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    struct device_limits limits = {.major = (uint64_t)devices[d].major,
                                   .minor = (uint64_t)devices[d].minor,
                                   .multiprocessors = 100,
                                   .threads_max = (uint64_t)devices[d].threads,
                                   .blocks_max = (uint64_t)devices[d].blocks,
                                   .registers_max = 65536,
                                   .shared_max = (uint64_t)devices[d].shared,
                                   .warp = 32};
    struct launch_shape shape = {100000, (uint64_t)threads, (uint64_t)registers, (uint64_t)shared};
    cudaOccResult result = {0};
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &function, &state, threads,
                                                (size_t)shared) != CUDA_OCC_SUCCESS)
        return 0; /* of no device that this header knows */
    /* What no launch could be: it has no occupancy to compare. */
    if (!result.activeBlocksPerMultiprocessor)
        return 0;
    struct occupancy o = occupancy_of(&limits, &shape);
    int warps_max = devices[d].threads / 32, block_warps = (threads + 31) / 32;
    int percent =
        (result.activeBlocksPerMultiprocessor * block_warps * 100 + warps_max / 2) / warps_max;
    if ((int)o.resident != result.activeBlocksPerMultiprocessor ||
        (int)o.percent_limited != percent)
        printf("sm_%d%d, %d threads, %d registers, %d bytes: %llu blocks, %u %%; CUDA says %d, "
               "%d %%\n",
               devices[d].major, devices[d].minor, threads, registers, shared,
               (unsigned long long)o.resident, o.percent_limited,
               result.activeBlocksPerMultiprocessor, percent);
    return 1;
}

int main(void)
{
    for (unsigned d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        unsigned count = 0;
        for (int threads = 1; threads <= 1024; threads += threads < 100 ? 11 : 31)
            for (int registers = 1; registers <= 255; registers += 7)
                for (int shared = 0; shared <= devices[d].block_shared; shared += 3001)
                    count += compare(d, threads, registers, shared);
        printf("compared sm_%d%d %u\n", devices[d].major, devices[d].minor, count);
    }
    return 0;
}
