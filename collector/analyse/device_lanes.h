/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device does at each moment, counted once: it computes; or communicates without computing;
 * or copies and does neither. Add work in the order of its begins. Where work of a lane overlaps,
 * the time belongs to the one that began first (its *own* part). The share of that during which no
 * earlier lane is busy is its time *alone*. Memory: LANE_PARTS_MAX own parts that reach beyond the
 * last begin; more are merged with the last.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_LANES_H
#define GPUPROF_COLLECTOR_DEVICE_LANES_H

#include <stdint.h>

#include "base/numbers.h"

#define LANE_PARTS_MAX 32

enum lane { LANE_COMPUTE, LANE_COMMUNICATION, LANE_COPIES, LANES };

/* The own part of a piece of work, in a lane other than LANE_COMPUTE. */
struct lane_part {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t known_ns; /* everything before this time is counted */
    uint64_t alone_ns; /* nanoseconds of it alone */
    uint64_t what;     /* for the caller: which work, and where it was launched */
    uint32_t where;
};

struct lane_parts {
    struct lane_part list[LANE_PARTS_MAX];
    uint32_t first;
    uint32_t count;
};

struct device_lanes {
    uint64_t at_ns;                 /* everything before this time is counted */
    uint64_t end_ns[LANES];         /* end of the work that has begun */
    uint64_t alone_ns[LANES];       /* alone so far */
    struct lane_parts parts[LANES]; /* none for LANE_COMPUTE */
};

/* Called when a part is over and its alone_ns is complete. Returns 0 or an error. */
typedef int lane_part_fn(void *context, enum lane lane, const struct lane_part *part);

/* Counts the lane's parts up to `ns`, as alone from `alone_from` on. Hands out those that end. */
static inline int device_lanes_use_up(struct device_lanes *d, enum lane lane, uint64_t alone_from,
                                      uint64_t ns, lane_part_fn *over, void *context)
{
    struct lane_parts *parts = &d->parts[lane];
    int error = 0;
    while (error == 0 && parts->count) {
        struct lane_part *part = &parts->list[parts->first];
        if (part->known_ns >= ns)
            break;
        uint64_t end_ns = min_of(part->end_ns, ns);
        part->alone_ns += overlap_ns(alone_from, end_ns, part->known_ns, end_ns);
        part->known_ns = end_ns;
        if (part->end_ns > ns)
            break;
        parts->first = (parts->first + 1) % LANE_PARTS_MAX;
        parts->count--;
        error = over(context, lane, part);
    }
    return error;
}

/* Advances to `ns`: hands out the parts that end by then. Returns 0 or what `over` returned. */
static inline int device_lanes_advance(struct device_lanes *d, uint64_t ns, lane_part_fn *over,
                                       void *context)
{
    uint64_t from_ns = d->at_ns;
    int error = 0;
    if (ns <= from_ns)
        return 0;
    /* No work begins between at_ns and `ns`: work covers each lane from at_ns until its end. */
    for (unsigned lane = 0; error == 0 && lane < LANES; lane++) {
        uint64_t alone_from = from_ns, to_ns = min_of(d->end_ns[lane], ns);
        if (to_ns > from_ns) {
            d->alone_ns[lane] += to_ns - from_ns;
            from_ns = to_ns;
        }
        if (lane != LANE_COMPUTE && d->parts[lane].count)
            error = device_lanes_use_up(d, (enum lane)lane, alone_from, ns, over, context);
    }
    d->at_ns = ns;
    return error;
}

/* Adds work that begins now; call device_lanes_advance first. Returns its own nanoseconds. */
static inline uint64_t device_lanes_add(struct device_lanes *d, enum lane lane, uint64_t begin_ns,
                                        uint64_t end_ns, uint64_t what, uint32_t where)
{
    struct lane_parts *parts = &d->parts[lane];
    begin_ns = max_of(max_of(begin_ns, d->at_ns), d->end_ns[lane]);
    if (end_ns <= begin_ns)
        return 0;
    d->end_ns[lane] = end_ns;
    if (lane != LANE_COMPUTE && parts->count == LANE_PARTS_MAX)
        parts->list[(parts->first + parts->count - 1) % LANE_PARTS_MAX].end_ns = end_ns;
    else if (lane != LANE_COMPUTE)
        parts->list[(parts->first + parts->count++) % LANE_PARTS_MAX] =
            (struct lane_part){.begin_ns = begin_ns,
                               .end_ns = end_ns,
                               .known_ns = begin_ns,
                               .what = what,
                               .where = where};
    return end_ns - begin_ns;
}

/* When the last work ends, in nanoseconds. */
static inline uint64_t device_lanes_end(const struct device_lanes *d)
{
    uint64_t end_ns = d->at_ns;
    for (unsigned lane = 0; lane < LANES; lane++)
        end_ns = max_of(d->end_ns[lane], end_ns);
    return end_ns;
}

#endif
