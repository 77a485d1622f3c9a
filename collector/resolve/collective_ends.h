/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects when the kernels of collectives ended on each host, to compare clocks. Only collectives
 * that end after all ranks have arrived are used (all-reduce and the like), since they end at
 * nearly one moment; not broadcasts or messages. Kernels are matched by communicator and each
 * rank's call number; without recorded NCCL calls, nothing is known.
 *
 * Memory: 32 bytes an end, up to ENDS_MAX, and 6 MiB for launches. If there are more collectives,
 * the first ENDS_FIRST of each communicator are stored. Of the others a sample is stored, the same
 * on all ranks, spread over the whole time.
 */
#ifndef GPUPROF_COLLECTOR_COLLECTIVE_ENDS_H
#define GPUPROF_COLLECTOR_COLLECTIVE_ENDS_H

#include "base/key_map.h"
#include "read/recording.h"

#define ENDS_MAX          (1u << 19)
#define ENDS_FIRST        64
#define ENDS_LAUNCHES_MAX (1u << 15)

struct collective_end {
    uint64_t communicator;
    uint64_t number; /* on it */
    uint64_t end_ns; /* first end among the ranks of the host: an end may be late, but not early */
    uint32_t host;
    uint32_t first; /* once gathered: index of the first end of the same collective */
};

struct collective_ends {
    struct collective_end *list; /* owned; once gathered: by communicator, number, host */
    uint32_t count;
    unsigned thinned; /* after the first ones, one of 2^n collectives is stored */
};

/* Limits reading to the first `length_ns` of each `every_ns`. */
struct ends_windows {
    uint64_t from_ns;
    uint64_t every_ns; /* 0: everything is read */
    uint64_t length_ns;
};

/* Reads `rec`. 0, or an error after one line on stderr; collective_ends_release in both cases. */
int collective_ends_gather(struct collective_ends *e, struct recording *rec,
                           const struct ends_windows *windows);
void collective_ends_release(struct collective_ends *e);

/*
 * The moments of collectives, as seen by the hosts with known clocks, and which other hosts took
 * part in most of them. The known times of each collective are stored in order.
 *
 * Memory: 12 bytes an end, and 9 a host.
 */
#define COLLECTIVES_MIN 4 /* fewer cannot be checked */
#define WEAKEST                                                                                    \
    4 /* a host with fewer than 1/4 of the largest count waits until more times are known */
struct common_moments {
    const struct collective_ends *ends; /* a view */
    uint32_t host_count;
    uint32_t *seen;   /* owned, as all below; by first end: how many times are known ... */
    uint64_t *times;  /* ... which are here */
    uint32_t *counts; /* by host: its ends in collectives with a known time */
    bool *is_taken;   /* by host: was taken */
    uint32_t *taken;  /* the hosts that were taken last */
};

/* Takes `ends`, once gathered. 0 or GPUPROF_NO_MEMORY; common_moments_release in both cases. */
int common_moments_init(struct common_moments *m, const struct collective_ends *ends,
                        uint32_t host_count);
void common_moments_release(struct common_moments *m);

/* Adds the time of a collective on a host with a known clock; `end` is an end of that host. */
void common_moments_add(struct common_moments *m, uint32_t end, uint64_t time_ns);

/* The moment of the collective of `end`: the median of the known times. False: none is known. */
bool common_moments_get(const struct common_moments *m, uint32_t end, uint64_t *moment_ns);

/* Takes all hosts that have enough collectives with a known time. Returns their number; *hosts
 * lists them, in order, until the next call. */
uint32_t common_moments_take(struct common_moments *m, const uint32_t **hosts);

#endif
