/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a process's nanoseconds (frozen scale) to the time that all processes share. The first
 * step leads to CLOCK_MONOTONIC, which all processes of one boot share (the shift of a time
 * namespace is removed). It is piecewise linear through the process's ANCHOR records. One offset
 * per boot then leads to CLOCK_REALTIME, which hosts share. The map never decreases, so order and
 * nesting within a process stay. At most CLOCK_ANCHORS_MAX anchors are stored; beyond that, every
 * second one is dropped.
 */
#ifndef GPUPROF_COLLECTOR_CLOCK_MAP_H
#define GPUPROF_COLLECTOR_CLOCK_MAP_H

#include <stdint.h>

#include "stream.h"

#define CLOCK_ANCHORS_MAX 2048
#define CLOCK_NS_MAX      (1ull << 61) /* 73 years; larger times in a file are cut to it */

struct clock_anchor {
    uint64_t ns;
    uint64_t shared_ns;
    uint64_t slope; /* up to the next anchor, times 2^32 */
};

/* The segment of the last look-up; all zeros: none yet. */
struct clock_place {
    uint32_t segment;
    uint64_t end_ns;
};

struct clock_map {
    struct clock_anchor *anchors; /* owned */
    uint32_t count;
    uint32_t stride;  /* every stride-th offered anchor is stored ... */
    uint32_t offered; /* ... number offered; the last one is always used */
    uint64_t offset;  /* CLOCK_REALTIME - CLOCK_MONOTONIC, modulo 2^64 */
    uint64_t shift;   /* shift of the process's CLOCK_MONOTONIC by its time namespace, likewise */
    struct clock_place place;
    struct clock_anchor last;
};

/* Takes the first anchor and the offset from the header. */
void clock_map_init(struct clock_map *m, const struct stream_header *h);
void clock_map_release(struct clock_map *m);

/* Offers an anchor, in the order of ns; implausible ones are left out. */
void clock_map_add(struct clock_map *m, uint64_t ns, uint64_t monotonic_ns);

/* Completes the map; call it once, after the last anchor. */
void clock_map_finish(struct clock_map *m);

uint64_t clock_map_search(const struct clock_map *m, struct clock_place *place, uint64_t ns);

/* The process's time for `shared_ns`, exact to some nanoseconds. */
uint64_t clock_map_back(const struct clock_map *m, uint64_t shared_ns);

/* Applies `move`, which never decreases, to the shared time, exactly at the anchors and linearly
 * between. Call it after clock_map_finish. */
typedef uint64_t clock_move_fn(const void *context, uint64_t shared_ns);
void clock_map_move(struct clock_map *m, clock_move_fn *move, const void *context);

/* CLOCK_REALTIME of the process's time `ns`. Each thread that uses the map has a `place`. */
static inline uint64_t clock_map_look(const struct clock_map *m, struct clock_place *place,
                                      uint64_t ns)
{
    const struct clock_anchor *a = &m->anchors[place->segment];
    if (ns < a->ns || ns >= place->end_ns)
        return clock_map_search(m, place, ns);
    return a->shared_ns + m->offset +
           (uint64_t)((unsigned __int128)(ns - a->ns) * a->slope >> CLOCK_SCALE_SHIFT);
}

static inline uint64_t clock_map_ns(struct clock_map *m, uint64_t ns)
{
    return clock_map_look(m, &m->place, ns);
}

#endif
