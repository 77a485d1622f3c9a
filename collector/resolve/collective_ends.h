/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the kernels of collectives ended on each host, of those in which nobody can end before all
 * have come, so that their ends are close to one moment: all-reduces and the like, no broadcasts or
 * messages. Which kernels belong together is known by the communicator and the number that each
 * rank counts its calls by; where calls of NCCL are not recorded, nothing is known.
 *
 * Memory: 32 bytes an end, ENDS_MAX of them, and 6 MiB for launches. Where there are more
 * collectives, the first ENDS_FIRST of each communicator are kept, and of the others some, the same
 * ones on all of its ranks, spread over all of the time.
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
    uint64_t end_ns; /* of the first of the host's ranks: an end may be late, but not early */
    uint32_t host;
    uint32_t first; /* once gathered: the place of the first end of the same collective */
};

struct collective_ends {
    struct collective_end *list; /* owned; once gathered: by communicator, number, host */
    uint32_t count;
    unsigned thinned; /* behind the first ones one of 2^n collectives is kept */
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

/*
 * The moments of collectives, as the hosts whose clocks are known have seen them, and which of the
 * other hosts took part in most of those. Each collective keeps the known times in order.
 *
 * Memory: 16 bytes an end, and as many a host.
 */
#define COLLECTIVES_MIN 4 /* fewer say nothing that can be checked */
#define WEAKEST         4 /* who has fewer than 1/4 of the most waits for better company */
struct common_moments {
    const struct collective_ends *ends; /* a view */
    uint32_t host_count;
    uint32_t *by_host; /* owned, as all below: ends, in their order, ... */
    uint32_t *first;   /* ... from here on; one more is the end of all */
    uint32_t *seen;    /* by the first end of a collective: so many times of it are known ... */
    uint64_t *times;   /* ... which are here */
    uint32_t *counts;  /* of a host's ends in collectives of which a time is known */
    bool *is_taken;    /* by host: it waits no longer */
    uint32_t *taken;   /* those that were taken last */
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
