/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events become slices (event_walk.h), which a pass is told of. Each function returns 0, WALK_STOP
 * of a consumer, or an error.
 */
#ifndef GPUPROF_COLLECTOR_WALK_SLICES_H
#define GPUPROF_COLLECTOR_WALK_SLICES_H

#include "model/walk_pass.h"

/* As it lies in the spool. */
struct pending_work {
    struct event event; /* its record is the one below */
    struct record record;
    bool is_behind; /* its window has ended: it is nobody's unless it was launched in it */
};

/* The event of `s`, by its kind: a call, work of a device, or anything else. What these set in `s`
 * is as before when they return. */
int slices_pass_call(const struct pass *p, struct slice *s);
int slices_pass_work(const struct pass *p, struct slice *s);
int slices_pass_other(const struct pass *p, struct slice *s);

/* Behind all events: what was laid aside until all calls were known. */
int slices_tell_pending(const struct pass *p);

#endif
