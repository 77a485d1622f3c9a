/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why processes have no stacks, none with Python frames, or no rows of the GPU: what they said in a
 * META record, each reason once.
 */
#ifndef GPUPROF_COLLECTOR_ABSENCE_H
#define GPUPROF_COLLECTOR_ABSENCE_H

#include <stdio.h>

#include "read/recording.h"

#define ABSENCES_MAX 4 /* different reasons */

struct absence {
    const char *reason; /* a view */
    uint32_t processes; /* that gave it */
};

/* The reasons under that key ("stacks", "python") into `found`, of ABSENCES_MAX; their number. */
unsigned absences_find(const struct recording *rec, const char *key, struct absence *found);

/* The same for what the library has to say of the recording: whole sentences. */
unsigned notes_find(const struct recording *rec, struct absence *found);

/* The same for the kinds of rows of the GPU that CUPTI refused ("kernels: not supported here"). */
unsigned gpu_lacks_find(const struct recording *rec, struct absence *found);

/* The same for how each process got its rows of the GPU, or why it has none ("absent: REASON"). */
unsigned gpu_statuses_find(const struct recording *rec, struct absence *found);

/* As a JSON list: `word` is the name of the reason in it. */
void absences_print_json(const struct absence *found, unsigned count, const char *word, FILE *out);

/* "Python frames absent: REASON", and in how many processes, in new memory; NULL: no memory. */
char *absence_text(const struct absence *a, const struct recording *rec, const char *what);

#endif
