/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of devices in collectives (idle_ranks.h): stored by sequence, reported by device, in the
 * order of the kernels that waited. Memory: a spool, and 80 bytes a sequence. */
#ifndef GPUPROF_COLLECTOR_RANK_WAITS_H
#define GPUPROF_COLLECTOR_RANK_WAITS_H

#include "base/span_stream.h"

/* A wait, from the begin of a kernel to that of the last one. */
struct rank_wait {
    uint64_t begin_ns, end_ns;
    uint64_t place;      /* index of the kernel among those of its device */
    uint32_t waited_for; /* as in rank_waited_fn */
};

/* Receives a time in which a device only waited; `is_new`: the first such time of a wait. 0 or an
 * error. */
typedef int rank_waited_fn(void *context, uint32_t device, uint32_t waited_for, bool is_new,
                           uint64_t begin_ns, uint64_t end_ns);

struct rank_waits {
    struct spool spool;
    struct waits_of *sequences; /* owned, by sequence */
    uint32_t *firsts;           /* owned, by device: a sequence + 1; 0: none */
};

/* 0 or GPUPROF_NO_MEMORY; call rank_waits_release in both cases. */
int rank_waits_init(struct rank_waits *w, uint32_t sequence_count, uint32_t device_count);
void rank_waits_release(struct rank_waits *w);

/* Stores a wait of a sequence, which belongs to that device. Call in order of `place`; ignores
 * empty waits. 0 or an error. */
int rank_waits_put(struct rank_waits *w, uint32_t sequence, uint32_t device,
                   const struct rank_wait *wait);

/* Reports the parts of a device's waits that lie within the times of `alone`. 0 or an error. */
int rank_waits_report(struct rank_waits *w, uint32_t device, struct span_reader *alone,
                      rank_waited_fn *notify, void *context);

#endif
