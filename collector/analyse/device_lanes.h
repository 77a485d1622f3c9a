/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device does at a time, each nanosecond once: it computes; or it communicates and does not
 * compute; or it copies and does neither. Work comes in the order of its begins. Where several of a
 * lane run at once, their time belongs to the one that began first (its *own* part); of that, what
 * no lane before has is its time *alone*. Memory: LANE_PARTS_MAX own parts that reach beyond the
 * last begin; further ones are one with the last.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_LANES_H
#define GPUPROF_COLLECTOR_DEVICE_LANES_H

#include <stdint.h>

#define LANE_PARTS_MAX 32

enum lane { LANE_COMPUTE, LANE_COMMUNICATION, LANE_COPIES, LANES };

/* Of work in a lane other than the first. */
struct lane_part {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t known_ns; /* all before is known ... */
    uint64_t alone_ns; /* ... and so much of it alone */
    uint64_t what;     /* for the user: what work that is, and where it was launched */
    uint32_t where;
};

struct lane_parts {
    struct lane_part list[LANE_PARTS_MAX];
    uint32_t first;
    uint32_t count;
};

struct device_lanes {
    uint64_t at_ns;                 /* all before is known */
    uint64_t end_ns[LANES];         /* until when work that has begun covers each lane */
    uint64_t alone_ns[LANES];       /* of each, so far */
    struct lane_parts parts[LANES]; /* none of the first */
};

/* A part is over, and its alone_ns complete. 0 or an error. */
typedef int lane_part_fn(void *context, enum lane lane, const struct lane_part *part);

/* Of the lane's parts, what is before `ns` is over, and alone from `alone_from` on. */
int device_lanes_use_up(struct device_lanes *d, enum lane lane, uint64_t alone_from, uint64_t ns,
                        lane_part_fn *over, void *context);

/* All before `ns` is known: parts that end by then are handed out. 0 or what `over` returned. */
static inline int device_lanes_advance(struct device_lanes *d, uint64_t ns, lane_part_fn *over,
                                       void *context)
{
    uint64_t from_ns = d->at_ns;
    int error = 0;
    if (ns <= from_ns)
        return 0;
    /* No work begins between at_ns and `ns`: each lane is covered from at_ns on, until its end. */
    for (unsigned lane = 0; error == 0 && lane < LANES; lane++) {
        uint64_t alone_from = from_ns, to_ns = d->end_ns[lane] < ns ? d->end_ns[lane] : ns;
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

/* Of device_lanes_add: a part of a lane that has parts. */
void device_lanes_put(struct lane_parts *parts, const struct lane_part *part);

/* Work that begins now, which device_lanes_advance was told of. Returns its own nanoseconds. */
static inline uint64_t device_lanes_add(struct device_lanes *d, enum lane lane, uint64_t begin_ns,
                                        uint64_t end_ns, uint64_t what, uint32_t where)
{
    begin_ns = begin_ns < d->at_ns ? d->at_ns : begin_ns;
    begin_ns = begin_ns < d->end_ns[lane] ? d->end_ns[lane] : begin_ns;
    if (end_ns <= begin_ns)
        return 0;
    d->end_ns[lane] = end_ns;
    if (lane != LANE_COMPUTE)
        device_lanes_put(&d->parts[lane], &(struct lane_part){.begin_ns = begin_ns,
                                                              .end_ns = end_ns,
                                                              .known_ns = begin_ns,
                                                              .what = what,
                                                              .where = where});
    return end_ns - begin_ns;
}

/* When the last one ends. */
uint64_t device_lanes_end(const struct device_lanes *d);

#endif
