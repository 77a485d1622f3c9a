/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains a hang: the call that never returned, with its stack; unfinished work of the device; the
 * collective that some rank has not joined; the process that makes no calls any more. Without a
 * hang there are no rows.
 */
#ifndef GPUPROF_COLLECTOR_HANG_H
#define GPUPROF_COLLECTOR_HANG_H

#include "analyse/collectives.h"
#include "analyse/unfinished.h"
#include "table/screen.h"

/*
 * Calls of CUDA and its libraries that had not returned when their process ended or was sampled.
 * The longest OPEN_CALLS_MAX are kept.
 */
#define OPEN_CALLS_MAX       32
#define OPEN_CALLS_BACKTRACE "--backtrace=launch,library,sync,copy,alloc" /* their stacks */

/* Views of the recording. */
struct open_call {
    const struct function *function;
    const struct process *process;
    const struct thread *thread;
    const struct kernel_name *kernel; /* the launched kernel; NULL: none, or not known */
    uint64_t begin_ns;
    uint64_t duration_ns;
    uint64_t args[RECORD_ARGS_MAX];
    uint32_t arg_count;
    struct reported_stack reported;
};

struct open_calls {
    struct open_call calls[OPEN_CALLS_MAX]; /* longest first; equal ones in order of arrival */
    uint32_t count;
    uint64_t total; /* including dropped ones */
};

/* Takes the slice, a CALL, if it had not returned. */
void open_calls_take(struct open_calls *o, const struct slice *s);

/* Takes a library call that was open at the end, if no CUDA call came from it for the last second.
 * Otherwise the CUDA call inside it already shows the hang. */
void open_calls_take_library(struct open_calls *o, const struct slice *s);

/* The longest call in one line, in new memory; NULL: none. */
char *open_calls_text(const struct open_calls *o);

/* The table's state is a struct open_calls. */
extern const struct table_info open_calls_table;

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

/* `h` is zeroed, and `walk` must outlive it. */
void hang_init(struct hang *h, struct walk *walk);
void hang_release(struct hang *h);

/* After the walk: finds what hangs, and names its stacks with `symbol_folder` (symbols.h). `calls`:
 * collective_calls_sums of a part, or NULL. */
void hang_finish(struct hang *h, const char *symbol_folder, struct sums *calls);

/* The call that has been open longest, if for a second; NULL: none. */
const struct open_call *hang_call(const struct hang *h);

/* Prints lines of the first screen. */
void hang_print_summary(const struct hang *h, struct screen *s);

#endif
