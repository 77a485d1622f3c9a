/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter of a device over time (energy, throttled time), to find its growth between two moments.
 * It is read now and then, and the device updates it only at its own pace, so its value is known
 * within bounds. It is at least the reading before the moment, and at most the first reading that
 * is later by the counter's own period. The period is learnt from how often readings differ; it is
 * never found to be shorter than the time between readings.
 *
 * Memory: 16 bytes a point; a curve has CURVE_POINTS_MAX at most, and all curves of one room about
 * ROOM_POINTS_MAX. A full curve drops every second point. Points between others of the same value
 * are left out.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_CURVE_H
#define GPUPROF_COLLECTOR_DEVICE_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#define CURVE_POINTS_MAX 65536
#define CURVE_POINTS_MIN 256
#define ROOM_POINTS_MAX  (1u << 21)
#define CURVE_JUMPS_MAX  64

struct curve_point {
    uint64_t at_ns;
    uint64_t value; /* growth since the first */
};

struct device_curve {
    uint64_t rate_max;          /* largest growth in a second; 0: unlimited */
    bool may_rest;              /* it may stand still, which says nothing about the period */
    struct curve_point *points; /* owned */
    uint32_t count;
    uint32_t step; /* one of so many differing readings is stored; 0: none yet */
    uint32_t passed;
    uint64_t raw;     /* last reading */
    uint64_t read_ns; /* time of the last reading */
    uint64_t first_ns;
    uint64_t changed_ns; /* when its present value was first read */
    uint64_t changes;
    uint64_t readings;
    uint64_t jumps_ns[CURVE_JUMPS_MAX]; /* readings at which it had restarted */
    uint32_t jump_count;                /* number of all restarts */
};

/* Whether a growth is known, and why not. */
enum curve_known {
    CURVE_KNOWN,
    CURVE_UNREAD,  /* never read */
    CURVE_EARLY,   /* not read before the begin */
    CURVE_LATE,    /* not read late enough after the end */
    CURVE_SHORT,   /* the uncertainty is as large as the growth, or larger */
    CURVE_STARTED, /* restarted in between */
    CURVE_KNOWNS
};

struct curve_growth {
    enum curve_known known;
    double value;
    double error; /* largest deviation from `value` */
};

/* Turns a growth no larger than its error, as rounded for display, into CURVE_SHORT. */
struct curve_growth curve_reported(struct curve_growth growth);

/* Rounds and bounds a value: a file can contain anything. */
#define CURVE_WHOLE_MAX 1e18
static inline uint64_t curve_whole(double value)
{
    return !(value > 0) ? 0 : (uint64_t)((value < CURVE_WHOLE_MAX ? value : CURVE_WHOLE_MAX) + 0.5);
}

void device_curve_release(struct device_curve *c);

/* Adds a reading, later than all before. `curves` curves share the room. */
void device_curve_add(struct device_curve *c, uint64_t at_ns, uint64_t raw, uint32_t curves);

/* Mean time between changes, or between readings if it may rest; 0: it never changed. */
uint64_t device_curve_period_ns(const struct device_curve *c);

/* How far the counter may lag: more than the period, which is a mean; 0 if it may rest. */
static inline uint64_t device_curve_lag_ns(const struct device_curve *c)
{
    return c->may_rest ? 0 : device_curve_period_ns(c) / 8 * 9;
}

/* Growth from `begin_ns` to `end_ns`. False: growth->known says why it is not known. */
bool device_curve_between(const struct device_curve *c, uint64_t begin_ns, uint64_t end_ns,
                          struct curve_growth *growth);

/* Growth from its first reading to its last one, and the time between in *ns. */
struct curve_growth device_curve_whole(const struct device_curve *c, uint64_t *ns);

#endif
