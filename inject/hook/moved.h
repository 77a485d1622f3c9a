/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that end on another thread than they began on: a coroutine waited inside one and was
 * resumed elsewhere. Their ends are stored here until the thread with their record takes them. At
 * most MOVED_MAX at a time; the oldest are dropped, and become abandoned calls. Any thread, inside
 * our own code; async-signal-safe.
 */
#ifndef GPUPROF_INJECT_MOVED_H
#define GPUPROF_INJECT_MOVED_H

#include "hook/call_place.h"

#define MOVED_MAX 64

struct moved_end {
    const struct call_site *site;
    uint64_t end;
    int result;
    uint64_t words[API_ARGS_MAX]; /* only late arguments */
};

/* Stores the end of a call on thread `t`, which has no record of it. */
void moved_put(struct thread *t, struct call *c, const struct call_site *site, uint64_t end,
               int result, const uint64_t *words);

/* Returns the first end after `begin` of a call at that address. It belongs to the call that began
 * then, since two frames cannot be in one place. False: none is known. */
bool moved_take(const struct call *c, uint64_t begin, struct moved_end *m);

#endif
