/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hang, explained: the call that does not return and from where it was made, the work of the
 * device that does not end, the collective that not all ranks have come to, and the process that
 * makes no call any more. Of recordings in which nothing hangs there is nothing.
 */
#ifndef GPUPROF_COLLECTOR_HANG_H
#define GPUPROF_COLLECTOR_HANG_H

#include "find/collectives.h"
#include "find/open_calls.h"
#include "find/quiet.h"
#include "find/unfinished.h"

struct hang {
    struct open_calls open;
    struct unfinished unfinished;
    struct collectives collectives;
    struct quiet quiet;
    bool needs_stacks; /* of the walk: some may have to be told */
    struct told_stacks stacks;
    bool *has_hung; /* owned, by process index: a call of it has been open for a second */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; hang_release in both cases. */
int hang_init(struct hang *h, struct walk *walk);
void hang_release(struct hang *h);

/*
 * Calls are told by hang_take, in the order of time; the rest needs the consumer of `unfinished`,
 * if unfinished_may_be, and that of `collectives`, with stacks if needs_stacks.
 */
static inline void hang_take(struct hang *h, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->record->flags & RECORD_OPEN && e->end_ns - e->begin_ns >= SURVEY_HANG_NS)
        h->has_hung[e->process->index] = true;
    open_calls_take(&h->open, s);
}

/* Likewise calls of libraries: needs WALK_LIBRARIES. */
static inline void hang_take_library(struct hang *h, const struct slice *s)
{
    if (s->library_change == LIBRARY_OPEN)
        open_calls_take_library(&h->open, s);
}

/* After the walk: what the stacks are, with names from `symbol_folder` (symbols.h). 0 or an error.
 */
int hang_finish(struct hang *h, const char *symbol_folder);

/* What there is to be said first. Views, for as long as the hang. */
struct hang_told {
    const struct open_call *call;            /* that has lasted longest; NULL: none */
    const char *line;                        /* the user's own that made it; NULL: not known */
    const struct unfinished_row *unfinished; /* of its process, waited for; NULL: none */
};

/* False: no call has been open for a second, and no stream is waited for. */
bool hang_first(const struct hang *h, struct hang_told *told);

/* A line for the summary of a run. */
void hang_print_summary(const struct hang *h, FILE *out);

#endif
