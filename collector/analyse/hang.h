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
#include "table/screen.h"

/*
 * Processes that worked and then made no call for long, until now or their end. That is a hang in
 * host code, such as a lock or a read, which no record shows. A process inside a call is among the
 * open calls; one that others wait for is among the collectives.
 *
 * It takes QUIET_NS_MIN and at least its longest gap between calls. A process that ended by itself
 * also needs a tenth of its life: it may have computed results or waited for others. Processes
 * without launches and copies, such as launchers, and those that may have made unrecorded calls are
 * left out.
 */
#define QUIET_NS_MIN   5000000000u
#define QUIET_ROWS_MAX 32u /* rows: the longest */

struct quiet_row {
    const struct process *process;
    const struct process_place *place;
    uint64_t for_ns; /* since the end of its last call */
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
    struct open_calls open; /* pass it calls in the order of time */
    struct unfinished unfinished;
    struct collectives collectives;
    struct quiet quiet;
    bool needs_stacks;                /* the walk must read stacks: some may be reported */
    struct reported_stack **reported; /* owned: views of those of the rows */
    uint32_t reported_count;
};

/* `h` is zeroed, and `walk` must outlive it. Returns 0 or GPUPROF_NO_MEMORY; call hang_release in
 * both cases. */
int hang_init(struct hang *h, struct walk *walk);
void hang_release(struct hang *h);

/* Puts the consumers into `list`, two at most; returns how many. */
unsigned hang_consumers(struct hang *h, struct consumer *list);

/* After the walk: finds what hangs, and names its stacks with `symbol_folder` (symbols.h). `calls`:
 * collective_calls_sums of a part, or NULL. Returns 0 or an error. */
int hang_finish(struct hang *h, const char *symbol_folder, struct sums *calls);

/* The call that has been open longest, if for a second; NULL: none. */
const struct open_call *hang_call(const struct hang *h);

/* Prints lines of the first screen. */
void hang_print_summary(const struct hang *h, struct screen *s);

#endif
