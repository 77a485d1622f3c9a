/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that calls have returned: which, how often, and where each came first. The very first
 * is what went wrong; an error of a device stays, and all calls after it return it, too.
 */
#ifndef GPUPROF_COLLECTOR_FAILURES_H
#define GPUPROF_COLLECTOR_FAILURES_H

#include <stdio.h>

#include "model/slice.h"
#include "table/table.h"

#define FAILURES_MAX 64

/* One error of one function. Views of the recording. */
struct failure {
    const struct function *function; /* the first of its name */
    const struct process *process;   /* where it came first */
    const struct thread *thread;
    int32_t result;
    uint64_t count;
    uint64_t first_ns;
    uint64_t begin_ns; /* of that call: rows stand in this order, those of one process at one */
    uint32_t place;    /* time by this: in the parts that are added up */
};

struct failures {
    struct failure rows[FAILURES_MAX]; /* in the order of their first coming */
    uint32_t count;
    uint64_t begin_ns; /* of the first call: times of the table are from then on */
    uint64_t others;   /* calls with an error for which there was no row */
};

/* Takes a CALL with an error, for `weight` calls. */
void failures_take(struct failures *f, const struct event *e, uint64_t weight);

/* Takes the call of a library that the slice closes, if it failed. */
void failures_take_library(struct failures *f, const struct slice *s);

/* Of all calls. */
uint64_t failures_count(const struct failures *f);

/* Are they of one error and function? */
bool failures_are_one(const struct failure *a, const struct failure *b);

/* Of a struct failures. */
extern const struct table_info failures_table;

/* "cudaErrorMemoryAllocation", which may be in `text`. */
#define FAILURE_TEXT_BYTES 96
const char *failure_name(const struct failure *row, char text[static FAILURE_TEXT_BYTES]);

#endif
