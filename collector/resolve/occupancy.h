/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes how much of a multiprocessor a launch can fill. The theoretical occupancy follows from
 * the device's limits on threads, blocks, registers and shared memory; the rest from the size of
 * the grid.
 */
#ifndef GPUPROF_COLLECTOR_OCCUPANCY_H
#define GPUPROF_COLLECTOR_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

struct device_limits {
    uint64_t device; /* ordinal */
    uint64_t major;
    uint64_t minor;
    uint64_t multiprocessors;
    uint64_t threads_max; /* per multiprocessor, like the next three */
    uint64_t blocks_max;
    uint64_t registers_max;
    uint64_t shared_max;
    uint64_t shared_block_max;
    uint64_t memory; /* bytes */
    uint64_t warp;   /* threads */
};

struct launch_shape {
    uint64_t blocks;    /* blocks of the grid */
    uint64_t threads;   /* threads of a block */
    uint64_t registers; /* registers of a thread */
    uint64_t shared;    /* bytes of a block, static and dynamic */
};

struct occupancy {
    bool spread;           /* blocks_milli and warps_milli are known */
    bool limited;          /* the members after them are known */
    uint64_t blocks_milli; /* blocks of the grid per multiprocessor, in thousandths */
    uint64_t warps_milli;
    uint64_t resident;        /* blocks that fit on a multiprocessor at a time */
    unsigned percent;         /* of the possible threads, limited by the size of this grid */
    unsigned percent_limited; /* of the possible warps, for a large enough grid */
};

struct occupancy occupancy_of(const struct device_limits *device, const struct launch_shape *shape);

#endif
