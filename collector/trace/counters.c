/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/counters.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define FIRST_SHIFT      10
#define TIME_MAX         (1ull << 62) /* ns; later events are not counted */
#define SERIES_MAX       8192
#define BUCKETS_MIN      16
#define EVENTS_A_COUNTER 10 /* a counter value takes a fifth of an event's text: about 2 % */

void counters_init(struct counters *c, uint64_t from_ns)
{
    *c = (struct counters){.shift = FIRST_SHIFT, .from_ns = from_ns};
}

void counters_release(struct counters *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        free(c->series[i]);
    free(c->series);
    counters_init(c, 0);
}

struct series *counters_add(struct counters *c, bool is_level)
{
    struct series *s = c->count < SERIES_MAX && ARRAY_ROOM(c->series, c->count, c->capacity, 16)
                           ? calloc(1, sizeof *s)
                           : NULL;
    if (!s)
        return NULL;
    s->is_level = is_level;
    for (uint32_t i = 0; is_level && i < COUNTER_BUCKETS; i++)
        s->parts[i] = NAN;
    return c->series[c->count++] = s;
}

static void widen(struct counters *c)
{
    for (uint32_t k = 0; k < c->count; k++) {
        struct series *s = c->series[k];
        float *parts = s->parts;
        for (uint32_t i = 0; i < COUNTER_BUCKETS / 2; i++)
            parts[i] = s->is_level ? fmaxf(parts[2 * i], parts[2 * i + 1])
                                   : parts[2 * i] + parts[2 * i + 1];
        for (uint32_t i = COUNTER_BUCKETS / 2; i < COUNTER_BUCKETS; i++)
            parts[i] = s->is_level ? NAN : 0;
        s->next = (s->next + 1) / 2;
    }
    c->shift++;
}

/* Returns the bucket that contains the time; widens the buckets if necessary. */
static inline uint32_t bucket_of(struct counters *c, uint64_t ns)
{
    while (ns >> c->shift >= COUNTER_BUCKETS)
        widen(c);
    return (uint32_t)(ns >> c->shift);
}

/* Returns the time since the first bucket's begin. */
static uint64_t since(const struct counters *c, uint64_t ns)
{
    return ns > c->from_ns ? ns - c->from_ns : 0;
}

void counters_span(struct counters *c, struct series *s, uint64_t begin_ns, uint64_t end_ns,
                   double rate)
{
    begin_ns = since(c, begin_ns);
    end_ns = since(c, end_ns);
    if (!s || begin_ns >= end_ns || end_ns > TIME_MAX)
        return;
    uint32_t last = bucket_of(c, end_ns);
    while (begin_ns < end_ns) {
        uint32_t at = bucket_of(c, begin_ns);
        uint64_t until_ns = at < last ? (at + 1ull) << c->shift : end_ns;
        s->parts[at] += (float)(rate * (double)(int64_t)(until_ns - begin_ns));
        begin_ns = until_ns;
    }
}

/* The level stays until bucket `end`. */
static void hold(struct series *s, uint32_t end)
{
    for (; s->next < end; s->next++)
        s->parts[s->next] = (float)s->last;
}

void counters_instant(struct counters *c, struct series *s, uint64_t at_ns, double amount)
{
    bool is_before = at_ns < c->from_ns;
    at_ns = since(c, at_ns);
    if (!s || at_ns > TIME_MAX)
        return;
    uint32_t at = bucket_of(c, at_ns);
    if (!s->is_level) {
        s->parts[at] += (float)amount;
        return;
    }
    if (s->is_late && !s->next)
        s->next = at;
    hold(s, at + 1); /* where a level changes, the old value counts too */
    s->parts[at] = is_before ? (float)amount : fmaxf(s->parts[at], (float)amount);
    s->last = amount;
}

uint32_t counters_finish(struct counters *c, uint64_t end_ns, uint64_t events)
{
    end_ns = since(c, end_ns);
    uint32_t used = bucket_of(c, end_ns < TIME_MAX ? end_ns : TIME_MAX) + 1;
    while (used > BUCKETS_MIN && (uint64_t)used * c->count > events / EVENTS_A_COUNTER) {
        widen(c);
        used = (used + 1) / 2;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->series[i]->is_level)
            hold(c->series[i], used);
    return used;
}
