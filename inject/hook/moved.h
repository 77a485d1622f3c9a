/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that end on another thread than they began on: a coroutine waited in the middle of one, and
 * was taken on elsewhere. Their end is kept here until the thread that has their record comes by.
 * Bounded: of more than MOVED_MAX at a time the oldest are forgotten, and are stale then. Any
 * thread, inside our own code; async-signal-safe.
 */
#ifndef GPUPROF_INJECT_MOVED_H
#define GPUPROF_INJECT_MOVED_H

#include "hook/call_place.h"

#define MOVED_MAX 64

struct moved_end {
    const struct call_site *site;
    uint64_t end;
    int result;
    uint64_t words[API_ARGS_MAX]; /* only late ones */
};

/* The thread `t` has no record of the call, which ends on it. */
void moved_put(struct thread *t, struct call *c, const struct call_site *site, uint64_t end,
               int result, const uint64_t *words);

/*
 * The first end, after `begin`, of a call that lay there: that is the one which began then, since
 * one frame lies in one place at a time. False: none is known.
 */
bool moved_take(const struct call *c, uint64_t begin, struct moved_end *m);

#endif
