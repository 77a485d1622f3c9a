/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of devices in collectives (idle_ranks.h): kept sequence by sequence, and told device by
 * device, in the order of the kernels that waited. Memory: a spool's, and 80 bytes a sequence.
 */
#ifndef GPUPROF_COLLECTOR_RANK_WAITS_H
#define GPUPROF_COLLECTOR_RANK_WAITS_H

#include "base/span_stream.h"

/* From the begin of a kernel to that of the last one. */
struct rank_wait {
    uint64_t begin_ns, end_ns;
    uint64_t place;      /* of the kernel among those of its device */
    uint32_t waited_for; /* as the listener is told */
};

/* Is told of a time in which a device only waited; `is_new`: the first one of a wait. 0 or an
 * error. */
typedef int rank_waited_fn(void *context, uint32_t device, uint32_t waited_for, bool is_new,
                           uint64_t begin_ns, uint64_t end_ns);

struct rank_waits {
    struct spool spool;
    struct waits_of *sequences; /* owned, by sequence */
    uint32_t *firsts;           /* owned, by device: a sequence + 1; 0: none */
};

/* 0 or GPUPROF_NO_MEMORY; rank_waits_release in both cases. */
int rank_waits_init(struct rank_waits *w, uint32_t sequence_count, uint32_t device_count);
void rank_waits_release(struct rank_waits *w);

/* In the order of places, of those of a sequence, which is of that device. One of no length is
 * none. 0 or an error. */
int rank_waits_put(struct rank_waits *w, uint32_t sequence, uint32_t device,
                   const struct rank_wait *wait);

/* Tells what of a device's waits lies in the times of `alone`. 0 or an error. */
int rank_waits_tell(struct rank_waits *w, uint32_t device, struct span_reader *alone,
                    rank_waited_fn *tell, void *context);

#endif
