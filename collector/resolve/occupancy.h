/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a multiprocessor a launch can fill: the theoretical occupancy by the device's limits
 * on threads, blocks, registers and shared memory, and what the grid is large enough for.
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
    uint64_t threads_max; /* these: of a multiprocessor */
    uint64_t blocks_max;
    uint64_t registers_max;
    uint64_t shared_max;
    uint64_t shared_block_max;
    uint64_t memory; /* bytes */
    uint64_t warp;   /* threads */
};

struct launch_shape {
    uint64_t blocks;    /* of the grid */
    uint64_t threads;   /* of a block */
    uint64_t registers; /* of a thread */
    uint64_t shared;    /* bytes of a block, static and dynamic */
};

struct occupancy {
    bool spread;  /* how the grid spreads over the multiprocessors is known: the next two */
    bool limited; /* and so is what one of them can hold: the others */
    uint64_t blocks_milli; /* of the grid per multiprocessor, in thousandths */
    uint64_t warps_milli;
    uint64_t resident;        /* blocks that fit on a multiprocessor at a time */
    unsigned percent;         /* of the threads that it can hold, this grid's size considered */
    unsigned percent_limited; /* of the warps, for a grid that is large enough */
};

struct occupancy occupancy_of(const struct device_limits *device, const struct launch_shape *shape);

#endif
