/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define FIRST_SHIFT      10
#define EVENTS_A_COUNTER 10 /* a counter value takes a fifth of an event's text: about 2 % */

void counters_init(struct counters *c, uint64_t from_ns)
{
    *c = (struct counters){.buckets = COUNTER_BUCKETS, .shift = FIRST_SHIFT, .from_ns = from_ns};
}

static void series_free(struct series *s)
{
    if (s) {
        free(s->parts);
        free(s->steps);
    }
    free(s);
}

void counters_release(struct counters *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        series_free(c->series[i]);
    free(c->series);
    counters_init(c, 0);
}

/* Adds the rates that span several buckets to each of them. */
static void counters_settle(const struct counters *c, struct series *s)
{
    double rate = 0;
    for (uint32_t i = 0; i < c->buckets; i++) {
        rate += s->steps[i];
        s->parts[i] += ldexp(rate, (int)c->shift);
        s->steps[i] = 0;
    }
}

static void join_levels(struct series *s, uint32_t to, uint32_t a, uint32_t b)
{
    double highest = isnan(s->parts[b]) || s->parts[a] > s->parts[b] ? s->parts[a] : s->parts[b];
    double last = isnan(s->steps[b]) ? s->steps[a] : s->steps[b];
    s->parts[to] = highest;
    s->steps[to] = last;
}

/* Joins each two buckets into one. */
static void widen(struct counters *c)
{
    for (uint32_t k = 0; k < c->count; k++) {
        struct series *s = c->series[k];
        uint32_t half = c->buckets / 2;
        if (!s->is_level)
            counters_settle(c, s);
        for (uint32_t i = 0; i < half; i++) {
            if (s->is_level)
                join_levels(s, i, 2 * i, 2 * i + 1);
            else
                s->parts[i] = s->parts[2 * i] + s->parts[2 * i + 1];
        }
        for (uint32_t i = half; i < c->buckets; i++) {
            s->parts[i] = s->is_level ? NAN : 0;
            s->steps[i] = s->is_level ? NAN : 0;
        }
    }
    c->shift++;
}

struct series *counters_add(struct counters *c, bool is_level)
{
    if (c->count >= SERIES_MAX || !ARRAY_ROOM(c->series, c->count, c->capacity, 16))
        return NULL;
    if ((c->count + 1) * c->buckets > BUCKETS_MAX) {
        widen(c);
        c->buckets /= 2;
    }
    struct series *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->is_level = is_level;
    s->parts = calloc(c->buckets, sizeof *s->parts);
    s->steps = calloc(c->buckets, sizeof *s->steps);
    if (!s->parts || !s->steps) {
        series_free(s);
        return NULL;
    }
    for (uint32_t i = 0; is_level && i < c->buckets; i++)
        s->parts[i] = s->steps[i] = NAN;
    c->series[c->count++] = s;
    return s;
}

/* Returns the bucket that contains the time; widens the buckets if necessary. */
static inline uint32_t bucket_of(struct counters *c, uint64_t ns)
{
    while (ns >> c->shift >= c->buckets)
        widen(c);
    return (uint32_t)(ns >> c->shift);
}

void counters_span_long(struct counters *c, struct series *s, uint64_t begin_ns, uint64_t end_ns,
                        double rate)
{
    if (end_ns > COUNTER_TIME_MAX)
        return;
    uint32_t last = bucket_of(c, end_ns);
    uint32_t first = bucket_of(c, begin_ns);
    if (first == last) {
        s->parts[first] += rate * (double)(int64_t)(end_ns - begin_ns);
        return;
    }
    s->parts[first] += rate * (double)(int64_t)(((first + 1ull) << c->shift) - begin_ns);
    s->parts[last] += rate * (double)(int64_t)(end_ns - ((uint64_t)last << c->shift));
    s->steps[first + 1] += rate;
    s->steps[last] -= rate;
}

void counters_instant_long(struct counters *c, struct series *s, uint64_t at_ns, double amount)
{
    bool is_before = at_ns < c->from_ns;
    at_ns = counters_since(c, at_ns);
    if (at_ns > COUNTER_TIME_MAX)
        return;
    uint32_t at = bucket_of(c, at_ns);
    if (!s->is_level) {
        s->parts[at] += amount;
        return;
    }
    if (is_before)
        s->parts[at] = s->last = amount;
    /* In the bucket where a level changes, the old value counts too. */
    double highest = amount > s->last ? amount : s->last;
    if (isnan(s->parts[at]) || highest > s->parts[at])
        s->parts[at] = highest;
    s->steps[at] = s->last = amount;
}

/* Buckets without values keep the previous one, or NAN. */
static void fill_level(const struct counters *c, struct series *s)
{
    double level = s->is_late ? NAN : 0;
    for (uint32_t i = 0; i < c->buckets; i++) {
        if (isnan(s->parts[i]))
            s->parts[i] = level;
        else
            level = s->steps[i];
    }
}

uint32_t counters_finish(struct counters *c, uint64_t end_ns, uint64_t events)
{
    end_ns = counters_since(c, end_ns);
    uint32_t used = bucket_of(c, end_ns < COUNTER_TIME_MAX ? end_ns : COUNTER_TIME_MAX) + 1;
    while (used > COUNTER_BUCKETS_MIN && (uint64_t)used * c->count > events / EVENTS_A_COUNTER) {
        widen(c);
        used = (used + 1) / 2;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->series[i]->is_level)
            fill_level(c, c->series[i]);
        else
            counters_settle(c, c->series[i]);
    }
    return used;
}
