/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank others waited for: the kernels of one collective on all ranks of a recording, of which
 * those that began earlier wait for the one that begins last. They are one collective if they are
 * the n-th of their communicator (nccl_call.h) or, where that is not known, the n-th of their name
 * on ranks of one job; and if all of them ran at one moment, when the last one began. Processes
 * that have no rank, or one that another has, too, are of no job that is known; in a recording of
 * one process nobody waits for another.
 *
 * Memory: 12 MiB for kernels and the times in which nothing else ran, which lie in spools, 40 bytes
 * a collective and 192 at most for numbers, IDLE_COLLECTIVES_MAX of each; nobody waits for those
 * beyond.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_RANKS_H
#define GPUPROF_COLLECTOR_IDLE_RANKS_H

#include "base/key_map.h"
#include "base/spool.h"
#include "model/event_walk.h"

#define IDLE_COLLECTIVES_MAX (1u << 19)

struct idle_collective {
    uint64_t first_ns;     /* begin of the kernel that began first */
    uint64_t last_ns;      /* begin of the kernel that began last */
    uint64_t first_end_ns; /* end of the one that ended first */
    uint32_t last;         /* device of the former */
    uint32_t count;
    bool by_name;
};

struct idle_ranks {
    struct idle_collective *list; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct key_map communicators; /* (process, correlation id of a launch) -> communicator */
    struct key_map counts;        /* (device, communicator or name) -> so many + 1 */
    struct key_map numbers;       /* (communicator or name, n-th) -> place in list + 1 */
    struct spool kernels;
    struct spool alone;
    struct spool last; /* by device: its last kernel + 1 */
};

void idle_ranks_init(struct idle_ranks *r);
void idle_ranks_release(struct idle_ranks *r);

/* Any call. 0 or GPUPROF_NO_MEMORY. */
int idle_ranks_call(struct idle_ranks *r, const struct slice *s);

/* A kernel that communicates, on the device of that number, and the next one; in the order of time.
 * 0 or an error. */
int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name);

/* Nothing else ran on the device then; in the order of time. 0 or an error. */
int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns);

/* Behind the last: tells of each time in which a device did nothing but wait for another one.
 * `job` is whether each of the devices, by number, is on a rank of the job. 0 or an error. Before
 * that `joined` is told of each device in each collective that several took part in, together. */
typedef void idle_joined_fn(void *context, uint32_t device, const struct idle_collective *c);
typedef int idle_wait_fn(void *context, uint32_t device, uint32_t waited_for, bool is_new,
                         uint64_t begin_ns, uint64_t end_ns);
int idle_ranks_tell(struct idle_ranks *r, const bool *job, uint32_t device_count,
                    idle_joined_fn *joined, idle_wait_fn *tell, void *context);

#endif
