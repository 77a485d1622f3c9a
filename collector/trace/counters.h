/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a trace counts over time, beside its events: how busy a device was, kernels launched and not
 * finished, the speed of copies, memory, launches. Time is cut into buckets of one width, a power
 * of two of ns, which doubles whenever time leaves the last bucket; so nothing needs to be known
 * before, and what is written is bounded however long the trace is: COUNTER_BUCKETS of each series,
 * fewer if there are many series. Of a piece they begin with it: what is before it is in the first
 * one, of a level only the last.
 *
 * Memory: 16 bytes for each bucket of a series, BUCKETS_MAX of them in all.
 */
#ifndef GPUPROF_COLLECTOR_COUNTERS_H
#define GPUPROF_COLLECTOR_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_BUCKETS     512
#define COUNTER_BUCKETS_MIN 16
#define COUNTER_TIME_MAX    (1ull << 62) /* ns; what is later is not counted */
#define BUCKETS_MAX         65536
#define SERIES_MAX          (BUCKETS_MAX / COUNTER_BUCKETS_MIN)

struct series {
    bool is_level; /* a state that lasts until the next one; else sums of what has happened */
    bool is_late;  /* of a level: before the first one nobody knows what it was */
    double last;   /* of a level */
    double *parts; /* owned: what fell into a bucket; of a level, the highest */
    double *steps; /* owned: by how much all buckets from this one on have more, a ns; of a level,
                    * the last */
};

struct counters {
    struct series **series; /* owned, and so are they */
    uint32_t count;
    uint32_t capacity;
    uint32_t buckets; /* of each */
    unsigned shift;   /* a bucket is 1 << shift ns */
    uint64_t from_ns; /* where the first one begins */
};

void counters_init(struct counters *c, uint64_t from_ns);
void counters_release(struct counters *c);

/* Another series, which stays the counters'; NULL: no memory, or no room. */
struct series *counters_add(struct counters *c, bool is_level);

/* Of the first bucket's begin. */
static inline uint64_t counters_since(const struct counters *c, uint64_t ns)
{
    return ns > c->from_ns ? ns - c->from_ns : 0;
}

/* Its times are counters_since. */
void counters_span_long(struct counters *c, struct series *s, uint64_t begin_ns, uint64_t end_ns,
                        double rate);

/* From `begin_ns` to `end_ns` there was `rate` of it each ns; `s` may be NULL. */
static inline void counters_span(struct counters *c, struct series *s, uint64_t begin_ns,
                                 uint64_t end_ns, double rate)
{
    begin_ns = counters_since(c, begin_ns);
    end_ns = counters_since(c, end_ns);
    uint64_t bucket = begin_ns >> c->shift;
    if (!s || begin_ns >= end_ns)
        return;
    if (bucket == end_ns >> c->shift && bucket < c->buckets)
        s->parts[bucket] += rate * (double)(int64_t)(end_ns - begin_ns);
    else
        counters_span_long(c, s, begin_ns, end_ns, rate);
}

/* `amount` of it happened at once; of a level: so high it has been since then. */
void counters_instant_long(struct counters *c, struct series *s, uint64_t at_ns, double amount);
static inline void counters_instant(struct counters *c, struct series *s, uint64_t at_ns,
                                    double amount)
{
    uint64_t bucket = counters_since(c, at_ns) >> c->shift;
    if (!s)
        return;
    if (bucket < c->buckets && !s->is_level)
        s->parts[bucket] += amount;
    else
        counters_instant_long(c, s, at_ns, amount);
}

/* Nothing comes any more: series may be read, by bucket, in parts[] alone. A trace of `events`
 * events that ends at `end_ns` gets few counters for few events; returns the buckets in use. */
uint32_t counters_finish(struct counters *c, uint64_t end_ns, uint64_t events);

#endif
