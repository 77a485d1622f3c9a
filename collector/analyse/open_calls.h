/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of CUDA and of its libraries that had not returned when their process ended or was
 * looked at: where a program that hung did so. Kept are those that have lasted longest, in memory
 * of a fixed size.
 */
#ifndef GPUPROF_COLLECTOR_OPEN_CALLS_H
#define GPUPROF_COLLECTOR_OPEN_CALLS_H

#include <stdio.h>

#include "analyse/told_stacks.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define OPEN_CALLS_MAX 32

/* Views of the recording. */
struct open_call {
    const struct function *function;
    const struct process *process;
    const struct thread *thread;
    const struct kernel_name *kernel; /* that is launched; NULL: none, or not known */
    uint64_t begin_ns;
    uint64_t duration_ns;
    uint64_t args[RECORD_ARGS_MAX];
    uint32_t arg_count;
    struct told_stack told;
};

struct open_calls {
    struct open_call calls[OPEN_CALLS_MAX]; /* longest first; of the same length as they came */
    uint32_t count;
    uint64_t total; /* with those that are not kept */
    const struct told_stacks *stacks;
};

/* Takes the slice, a CALL, if it had not returned. */
void open_calls_take(struct open_calls *o, const struct slice *s);

/* Takes the call of a library that the slice says was open at the end of all, if nothing has come
 * from it for a second: of what hangs in a call of CUDA's in it that one tells. */
void open_calls_take_library(struct open_calls *o, const struct slice *s);

/* Of a struct open_calls. */
extern const struct table_info open_calls_table;

/* A line for the summary of a run. */
void open_calls_print_summary(const struct open_calls *o, FILE *out);

#endif
