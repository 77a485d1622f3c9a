/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a trace over time: how busy a device was, unfinished kernel launches, copy speed,
 * memory, launches. Time is divided into buckets of 2^n ns; the width doubles when an event is
 * later than the last bucket. So nothing must be known in advance, and output is bounded. A
 * selection's buckets begin with it; the first one includes earlier values (for a level, the last).
 * Memory: 2 KiB for each series, of which there are at most 8192.
 */
#ifndef GPUPROF_COLLECTOR_COUNTERS_H
#define GPUPROF_COLLECTOR_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_BUCKETS 512

struct series {
    bool is_level;                /* a state that lasts until the next value; else sums */
    bool is_late;                 /* level: unknown before its first value */
    double last;                  /* level: current value */
    uint32_t next;                /* level: the first bucket after its last value */
    float parts[COUNTER_BUCKETS]; /* amount per bucket; level: highest value, NAN if unknown */
};

struct counters {
    struct series **series; /* owned, with their elements */
    uint32_t count;
    uint32_t capacity;
    unsigned shift;   /* a bucket has 1 << shift ns */
    uint64_t from_ns; /* begin of the first bucket */
};

void counters_init(struct counters *c, uint64_t from_ns);
void counters_release(struct counters *c);

/* Adds a series, which the counters own. Returns NULL without memory or room. */
struct series *counters_add(struct counters *c, bool is_level);

/* Adds `rate` per ns from `begin_ns` to `end_ns`; `s` may be NULL. */
void counters_span(struct counters *c, struct series *s, uint64_t begin_ns, uint64_t end_ns,
                   double rate);

/* Adds `amount` at once; for a level, its value from now on. `s` may be NULL. */
void counters_instant(struct counters *c, struct series *s, uint64_t at_ns, double amount);

/* Ends counting: the values are then in parts[], by bucket. Chooses fewer, wider buckets for a
 * trace of few `events`, which ends at `end_ns`; returns the buckets in use. */
uint32_t counters_finish(struct counters *c, uint64_t end_ns, uint64_t events);

#endif
