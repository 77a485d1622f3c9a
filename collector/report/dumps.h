/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of flight recorders (run --flight): when and why each was written. */
#ifndef GPUPROF_COLLECTOR_DUMPS_H
#define GPUPROF_COLLECTOR_DUMPS_H

#include "report/report.h"

/* "a step was slow: step 57 took 81.2 ms, 4.1 x the median": why it was written; the caller frees
 * it. NULL: no memory. */
char *dump_line(const struct process_dump *d);

/* The last dump of all processes, and how many there are; NULL: none. */
const struct process_dump *dumps_last(const struct recording *rec, uint64_t *count);

/* Its source is a struct report. */
extern const struct table_info dumps_table;

#endif
