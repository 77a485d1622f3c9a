/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moments of collectives, as the hosts whose clocks are known have seen them, and which of the
 * other hosts took part in most of those. In all it takes the time of (ends) log(hosts), in
 * whatever order hosts come to be known.
 *
 * Memory: 20 bytes an end, and as many a host.
 */
#ifndef GPUPROF_COLLECTOR_COMMON_MOMENTS_H
#define GPUPROF_COLLECTOR_COMMON_MOMENTS_H

#include "model/collective_ends.h"

#define COLLECTIVES_MIN 4 /* fewer say nothing that can be checked */
#define WEAKEST         4 /* who has fewer than 1/4 of the most waits for better company */

struct common_moments {
    const struct collective_ends *ends; /* a view */
    uint32_t *by_host;                  /* owned, as all below: ends, in their order, ... */
    uint32_t *first;                    /* ... from here on; one more is the end of all */
    uint32_t *seen;    /* by the first end of a collective: so many times of it are known ... */
    uint64_t *times;   /* ... which are here: two heaps */
    uint32_t *counts;  /* of a host's ends in collectives of which a time is known */
    uint32_t *waiting; /* hosts, by their counts */
    uint32_t *places;  /* of hosts among these */
    bool *is_taken;    /* by host: it waits no longer */
    uint32_t *starts;  /* of those with such a count, or a larger one; up to `most` */
    uint32_t waiting_count;
    uint32_t most; /* of their counts */
};

/* For all of `ends`, once gathered. 0 or GPUPROF_NO_MEMORY; common_moments_release in both cases.
 */
int common_moments_init(struct common_moments *m, const struct collective_ends *ends,
                        uint32_t host_count);
void common_moments_release(struct common_moments *m);

/* A host's clock is known: by it the collective of `end`, one of its own, was at `time_ns`. */
void common_moments_add(struct common_moments *m, uint32_t end, uint64_t time_ns);

/* The moment of the collective of `end`: the median of what is known. False: nothing is. */
bool common_moments_get(const struct common_moments *m, uint32_t end, uint64_t *moment_ns);

/* Takes all hosts that have enough collectives of which a time is known. How many; they are at
 * *hosts, in order, until others are taken. */
uint32_t common_moments_take(struct common_moments *m, const uint32_t **hosts);

/* Takes this one, when no other has enough: whatever it has. False: it was taken before. */
bool common_moments_take_one(struct common_moments *m, uint32_t host);

#endif
