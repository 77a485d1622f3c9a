/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the kernels of collectives ended on each host, of those in which nobody can end before all
 * have come, so that their ends are close to one moment: all-reduces and the like, no broadcasts or
 * messages. Which kernels belong together is known by the communicator and the number that each
 * rank counts its calls by; where calls of NCCL are not recorded, nothing is known.
 *
 * Memory: 32 bytes an end, ENDS_MAX of them, and 6 MiB for launches. Where there are more
 * collectives, some are kept of each communicator, the same ones on all of its ranks, spread over
 * all of its time.
 */
#ifndef GPUPROF_COLLECTOR_COLLECTIVE_ENDS_H
#define GPUPROF_COLLECTOR_COLLECTIVE_ENDS_H

#include "base/key_map.h"
#include "read/recording.h"

#define ENDS_MAX           (1u << 19)
#define ENDS_COMMUNICATORS (1u << 14)
#define ENDS_LAUNCHES_MAX  (1u << 15)

struct collective_end {
    uint64_t communicator;
    uint64_t number; /* on it */
    uint64_t end_ns; /* of the first of the host's ranks: an end may be late, but not early */
    uint32_t host;
    uint32_t first; /* once gathered: the place of the first end of the same collective */
};

struct collective_ends {
    struct collective_end *list; /* owned; once gathered: by communicator, number, host */
    uint32_t count;
    uint32_t capacity;
    uint32_t count_max;     /* ENDS_MAX; smaller in tests */
    struct key_map thinned; /* communicator -> one of 2^n of its collectives is kept */
};

/* Where only a piece of the time is to be read: the first `length_ns` of each `every_ns`. */
struct ends_windows {
    uint64_t from_ns;
    uint64_t every_ns; /* 0: all is */
    uint64_t length_ns;
};

/* Reads `rec`. 0, or an error after one line on stderr; collective_ends_release in both cases. */
int collective_ends_gather(struct collective_ends *e, struct recording *rec,
                           const struct ends_windows *windows);
void collective_ends_release(struct collective_ends *e);

#endif
