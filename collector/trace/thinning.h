/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses what merge --max-size leaves out: short events. Everything with a duration (calls, work,
 * ranges, operators, library calls, marks, host activities) stays if it lasts at least `all_ns`; of
 * those from `some_ns` on, an evenly spread share stays. Failed and open calls stay, and so do all
 * other events. A first pass weighs the text of each event by duration. Memory: 16 KiB.
 */
#ifndef GPUPROF_COLLECTOR_THINNING_H
#define GPUPROF_COLLECTOR_THINNING_H

#include "resolve/event_walk.h"

#define THINNING_WEIGHTS (64 * 8) /* eight per octave of ns */

/* Kinds left out, in the order of left_out_names; host: samples, and records of RECORD_SAMPLE's
 * kind. */
enum left_out { LEFT_OUT_WORK, LEFT_OUT_CALLS, LEFT_OUT_RANGES, LEFT_OUT_HOST, LEFT_OUT_KINDS };
extern const char *const left_out_names[LEFT_OUT_KINDS];

struct thinning {
    bool weighs; /* first pass: nothing is left out yet */
    uint64_t all_ns;
    uint64_t some_ns;
    uint64_t share; /* in units of 2^-32 */
    uint64_t weights[THINNING_WEIGHTS];
    uint64_t weighed;
};

/* Starts weighing. */
void thinning_begin(struct thinning *t);

/* Adds the bytes that the slice took. */
void thinning_weigh(struct thinning *t, const struct slice *s, uint64_t bytes);

/* Ends weighing a trace of `total` bytes and chooses what to leave out so that about `size` remain,
 * or only what always stays. */
void thinning_choose(struct thinning *t, uint64_t total, uint64_t size);

/* Returns true if the slice is left out, and sets *kind. */
bool thinning_leaves_out(const struct thinning *t, const struct slice *s, enum left_out *kind,
                         uint64_t *ns);
bool thinning_leaves_out_call(const struct thinning *t, const struct correlated_call *call);

#endif
