/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons why processes have no stacks, no Python frames, or no GPU rows. The processes give them
 * in META records; each reason is listed once.
 */
#ifndef GPUPROF_COLLECTOR_MISSING_REASON_H
#define GPUPROF_COLLECTOR_MISSING_REASON_H

#include <stdio.h>

#include "read/recording.h"

#define MISSING_REASONS_MAX 4 /* different reasons */

struct missing_reason {
    const char *reason; /* a view */
    uint32_t processes; /* number of processes that gave it */
};

/* Finds the reasons under a key ("stacks", "python"), MISSING_REASONS_MAX at most; returns their
 * number. */
unsigned missing_reasons_find(const struct recording *rec, const char *key,
                              struct missing_reason *found);

/* The same for the notes of the injected library, which are whole sentences. */
unsigned notes_find(const struct recording *rec, struct missing_reason *found);

/* The same for the kinds of GPU rows that CUPTI refused ("kernels: not supported here"). */
unsigned gpu_lacks_find(const struct recording *rec, struct missing_reason *found);

/* The same for how each process recorded GPU rows, or why it has none ("absent: REASON"). */
unsigned gpu_statuses_find(const struct recording *rec, struct missing_reason *found);

/* Prints them as a JSON list; `word` is the key of the reason. */
void missing_reasons_print_json(const struct missing_reason *found, unsigned count,
                                const char *word, FILE *out);

/* "Python frames absent: REASON", with the number of processes, in new memory; NULL: none. */
char *missing_reason_text(const struct missing_reason *a, const struct recording *rec,
                          const char *what);

#endif
