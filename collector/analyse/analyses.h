/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of sums of a report (report_make.c). One file of this folder declares each;
 * analyses.def has a row for it. query/sums.h explains the declaration.
 */
#ifndef GPUPROF_COLLECTOR_ANALYSES_H
#define GPUPROF_COLLECTOR_ANALYSES_H

#include "query/sums.h"

#define ANALYSIS(info) ANALYSIS_##info,
enum sums_table {
#include "analyse/analyses.def"
    ANALYSES_COUNT
};

#define ANALYSIS(info) extern const struct sums_info info;
#include "analyse/analyses.def"

/* Are all tables of these bits (of enum sums_table) made of resolved events only? False for no
 * bits. analyses_find returns the place of the table, ANALYSES_COUNT if it is none of these. */
bool analyses_are_of_rows(uint64_t tables);
unsigned analyses_find(const struct table_info *table);

/* Drops the tables that are made of the parts in `leaves` (enum report_part). */
void analyses_leave(struct sums *sums, unsigned leaves);

/* The name of a failure's error, "cudaErrorMemoryAllocation"; it may be in `text`. (failures.c) */
#define FAILURES_MAX       4096
#define FAILURE_TEXT_BYTES 96
const char *failure_name(const struct sums_row *row, char text[static FAILURE_TEXT_BYTES]);

/* Write the tables to a part, add a part to them, and finish after the last part. See sums_put,
 * sums_add and sums_finish. */
void analyses_put(struct sums *sums, struct part *p);
void analyses_add(struct sums *sums, struct part *p);
void analyses_finish(struct sums *sums);

#endif
