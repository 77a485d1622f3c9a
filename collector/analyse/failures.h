/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that calls have returned: which, how often, and where each came first. The very first
 * is what went wrong; an error of a device stays, and all calls after it return it, too. Rows are
 * in the order of their first coming.
 */
#ifndef GPUPROF_COLLECTOR_FAILURES_H
#define GPUPROF_COLLECTOR_FAILURES_H

#include "analyse/analyses.h"

#define FAILURES_MAX 4096

/* Takes all that fail, for a walk whose other consumers do not call the functions below. */
struct consumer failures_consumer(struct sums *s);

/* Takes a CALL with an error, for `weight` calls. 0 or GPUPROF_NO_MEMORY. */
int failures_take(struct sums *s, const struct event *e, uint64_t weight);

/* Takes the call of a library that the slice closes, if it failed. Likewise. */
int failures_take_library(struct sums *s, const struct slice *slice);

/* "cudaErrorMemoryAllocation", which may be in `text`. */
#define FAILURE_TEXT_BYTES 96
const char *failure_name(const struct sums_row *row, char text[static FAILURE_TEXT_BYTES]);

#endif
