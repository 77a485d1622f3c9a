/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hang, explained: the call that does not return and from where it was made, the work of the
 * device that does not end, the collective that not all ranks have come to, and the process that
 * makes no call any more. Of recordings in which nothing hangs there is nothing.
 */
#ifndef GPUPROF_COLLECTOR_HANG_H
#define GPUPROF_COLLECTOR_HANG_H

#include <stdio.h>

#include "analyse/collectives.h"
#include "analyse/open_calls.h"
#include "analyse/unfinished.h"

/*
 * Processes that worked and then made no call for long, until now or their end: a hang in code of
 * the host, as in a lock or a read, of which no record tells. One that is in a call has it among
 * the open calls, and one that others wait for among the collectives.
 *
 * Long is, where other ranks wait in a kernel of NCCL's that none of the collectives tells of, as
 * long as these must have waited: it is this one that they may wait for. Else it is QUIET_NS_MIN
 * and as long as any time between two of its calls before; of a process that ended by itself, also
 * a tenth of its life: it computes its results, or waits for others. Nothing is said of one that
 * launched and copied nothing, as what starts others does, nor where calls may have been made that
 * were not recorded.
 */
#define QUIET_NS_MIN   5000000000u
#define QUIET_ROWS_MAX 32u /* that are kept: those that have been so longest */

struct quiet_row {
    const struct process *process;
    const struct process_place *place;
    uint64_t since_ns; /* the end of its last call */
    uint64_t for_ns;
    struct told_stack told;
};

struct quiet {
    struct quiet_row rows[QUIET_ROWS_MAX]; /* the longest first */
    uint32_t count;
    uint32_t total; /* with those that are not kept */
};

/* "now", "killed" or "end": until when nothing is recorded of it. */
const char *quiet_until(const struct quiet_row *row);

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
