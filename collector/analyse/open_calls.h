/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CUDA and its libraries that had not returned when their process ended or was sampled:
 * they show where a program hung. Keeps the longest OPEN_CALLS_MAX. */
#ifndef GPUPROF_COLLECTOR_OPEN_CALLS_H
#define GPUPROF_COLLECTOR_OPEN_CALLS_H

#include "analyse/place_lines.h"
#include "resolve/event_walk.h"
#include "table/table.h"

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

/* The table's state is a struct open_calls. */
extern const struct table_info open_calls_table;

/* The longest call in one line, in new memory; NULL: none, or no memory. */
char *open_calls_text(const struct open_calls *o);

#endif
