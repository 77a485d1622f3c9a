/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains a hang: the call that never returned, with its stack; unfinished work of the device; the
 * collective that some rank has not joined; the process that makes no calls any more. Without a
 * hang there are no rows.
 */
#ifndef GPUPROF_COLLECTOR_HANG_H
#define GPUPROF_COLLECTOR_HANG_H

#include "analyse/collectives.h"
#include "analyse/open_calls.h"
#include "analyse/unfinished.h"

/*
 * Processes that worked and then made no call for long, until now or their end. That is a hang in
 * host code, such as a lock or a read, which no record shows. A process inside a call is among the
 * open calls; one that others wait for is among the collectives.
 *
 * How long depends. If other ranks wait in an NCCL kernel that no reported collective explains,
 * SURVEY_HANG_NS is enough: they may wait for this process. Otherwise it takes QUIET_NS_MIN and at
 * least its longest gap between calls. A process that ended by itself also needs a tenth of its
 * life: it may have computed results or waited for others. Processes without launches and copies,
 * such as launchers, and those that may have made unrecorded calls are left out.
 */
#define QUIET_NS_MIN   5000000000u
#define QUIET_ROWS_MAX 32u /* rows: the longest */

struct quiet_row {
    const struct process *process;
    const struct process_place *place;
    uint64_t since_ns; /* end of its last call */
    uint64_t for_ns;
    struct reported_stack reported;
};

struct quiet {
    struct quiet_row rows[QUIET_ROWS_MAX]; /* longest first */
    uint32_t count;
    uint32_t total; /* with those that have no row */
};

/* "now", "killed" or "end": when its records end. */
const char *quiet_until(const struct quiet_row *row);

struct hang {
    struct open_calls open;
    struct unfinished unfinished;
    struct collectives collectives;
    struct quiet quiet;
    bool needs_stacks; /* the walk must read stacks: some may be reported */
    struct reported_stacks stacks;
    bool *has_hung; /* owned, by process index: one of its calls was open for a second */
};

/* `walk` must outlive it. Returns 0 or GPUPROF_NO_MEMORY; call hang_release in both cases. */
int hang_init(struct hang *h, struct walk *walk);
void hang_release(struct hang *h);

/*
 * Pass calls to hang_take in the order of time. The rest needs the consumer of `unfinished`, if
 * unfinished_may_be, and that of `collectives`, with stacks if needs_stacks.
 */
static inline void hang_take(struct hang *h, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->record->flags & RECORD_OPEN && e->end_ns - e->begin_ns >= SURVEY_HANG_NS)
        h->has_hung[e->process->index] = true;
    open_calls_take(&h->open, s);
}

/* The same for library calls; needs WALK_LIBRARIES. */
static inline void hang_take_library(struct hang *h, const struct slice *s)
{
    if (s->library_change == LIBRARY_OPEN)
        open_calls_take_library(&h->open, s);
}

/* After the walk: finds what hangs, and names its stacks with `symbol_folder` (symbols.h). Returns
 * 0 or an error. */
int hang_finish(struct hang *h, const char *symbol_folder);

/* What to report first; views into struct hang. */
struct hang_reported {
    const struct open_call *call; /* the longest open call; NULL: none */
    const char *line;             /* the user's line of that call; NULL: not known */
    const struct unfinished_row
        *unfinished; /* unfinished work that its process waits for; NULL: none */
};

/* Returns false if no call was open for a second and no stream is waited for. */
bool hang_first(const struct hang *h, struct hang_reported *reported);

/* Prints lines for the summary of a run. */
void hang_print_summary(const struct hang *h, struct screen *s);

#endif
