/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What merge --max-size leaves out. The longest stay: of everything that lasts (calls, work of a
 * device, ranges, operators, calls of libraries, marks, what the host did) what lasts at least
 * `all_ns`; of what lasts less, but at least `some_ns`, a share that is spread evenly; of the rest
 * nothing. Calls that failed or had not returned stay, and so does all that is no such event.
 *
 * Each event is weighed first: how much text it makes of its duration. Memory: 16 KiB.
 */
#ifndef GPUPROF_COLLECTOR_THINNING_H
#define GPUPROF_COLLECTOR_THINNING_H

#include "resolve/event_walk.h"

#define THINNING_WEIGHTS (64 * 8) /* eight to an octave of ns */

/* What is left out, in the order of left_out_names; of the host: samples, and what lasts of the
 * other records of RECORD_SAMPLE's kind. */
enum left_out { LEFT_OUT_WORK, LEFT_OUT_CALLS, LEFT_OUT_RANGES, LEFT_OUT_HOST, LEFT_OUT_KINDS };
extern const char *const left_out_names[LEFT_OUT_KINDS];

struct thinning {
    bool weighs; /* nothing is left out yet */
    uint64_t all_ns;
    uint64_t some_ns;
    uint64_t share; /* in 2^32 parts */
    uint64_t weights[THINNING_WEIGHTS];
    uint64_t weighed;
};

/* Weighing begins. */
void thinning_begin(struct thinning *t);

/* The slice has made so many bytes. */
void thinning_weigh(struct thinning *t, const struct slice *s, uint64_t bytes);

/* Weighing ends, a trace of `total` bytes: leaves `size` bytes, as it seems, or what stays in any
 * case. */
void thinning_choose(struct thinning *t, uint64_t total, uint64_t size);

/* Is it left out? Then *kind is set. */
bool thinning_leaves_out(const struct thinning *t, const struct slice *s, enum left_out *kind,
                         uint64_t *ns);
bool thinning_leaves_out_call(const struct thinning *t, const struct correlated_call *call);

#endif
