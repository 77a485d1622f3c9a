/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter of a device over time (energy, for how long it was throttled), of which somebody wants
 * to know by how much it grew between two moments. It is read now and then, and the device itself
 * moves it on only at its own pace, so that what it says of a moment is known within bounds: what
 * was there is no less than at the reading before, and no more than at the first reading that is
 * behind it by the counter's own period. The period is learnt from the readings: how often they
 * differ. It is never found to be shorter than the readings are apart.
 *
 * Memory: 16 bytes a point, of which a curve has CURVE_POINTS_MAX, and all curves of one room about
 * ROOM_POINTS_MAX; a curve that has no more room drops every second one. Points between others of
 * the same value are left out.
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
    uint64_t value; /* grown since the first reading */
};

struct device_curve {
    uint64_t rate_max;          /* it grows by no more in a second; 0: by anything */
    bool may_rest;              /* it stands still for its own reasons: those tell no period */
    struct curve_point *points; /* owned */
    uint32_t count;
    uint32_t step; /* of so many readings that differ one is kept; 0: there is none yet */
    uint32_t passed;
    uint64_t raw;     /* as it was read last, */
    uint64_t read_ns; /* and when */
    uint64_t first_ns;
    uint64_t changed_ns; /* when it was first read to be what it is */
    uint64_t changes;
    uint64_t readings;
    uint64_t jumps_ns[CURVE_JUMPS_MAX]; /* readings at which it had begun anew */
    uint32_t jump_count;                /* of all of them */
};

/* What is known of a growth. */
enum curve_known {
    CURVE_KNOWN,
    CURVE_UNREAD,  /* it was not read at all */
    CURVE_EARLY,   /* not before */
    CURVE_LATE,    /* not behind, by so much that it must have moved on */
    CURVE_SHORT,   /* the counter's steps leave as much open as there is, or more */
    CURVE_STARTED, /* it began anew in between */
    CURVE_KNOWNS
};

struct curve_growth {
    enum curve_known known;
    double value;
    double error; /* it is no farther from that */
};

/* What leaves open as much as there is, in whole numbers as they are shown, says nothing: that is
 * CURVE_SHORT, without a value. */
struct curve_growth curve_told(struct curve_growth growth);

/* Rounded, and bounded: a file can say anything. */
#define CURVE_WHOLE_MAX 1e18
static inline uint64_t curve_whole(double value)
{
    return !(value > 0) ? 0 : (uint64_t)((value < CURVE_WHOLE_MAX ? value : CURVE_WHOLE_MAX) + 0.5);
}

void device_curve_release(struct device_curve *c);

/* A reading, later than those before. `curves` share their room. 0 or GPUPROF_NO_MEMORY. */
int device_curve_add(struct device_curve *c, uint64_t at_ns, uint64_t raw, uint32_t curves);

/* How long the counter stands still between two changes, of one that may rest how far its readings
 * are apart; 0: it has never changed. */
uint64_t device_curve_period_ns(const struct device_curve *c);

/* By so much what it says may be behind the device: the period is a mean. One that may rest is not.
 */
static inline uint64_t device_curve_lag_ns(const struct device_curve *c)
{
    return c->may_rest ? 0 : device_curve_period_ns(c) / 8 * 9;
}

/* How much it grew from `begin_ns` to `end_ns`. False: growth->known says why not. */
bool device_curve_between(const struct device_curve *c, uint64_t begin_ns, uint64_t end_ns,
                          struct curve_growth *growth);

/* How much it grew from its first reading to its last one, and how long that was. */
struct curve_growth device_curve_whole(const struct device_curve *c, uint64_t *ns);

#endif
