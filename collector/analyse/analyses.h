/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of sums that a report is made of. Each is declared in one file of this folder, and
 * has its row in analyses.def; query/sums.h says what a declaration is.
 */
#ifndef GPUPROF_COLLECTOR_ANALYSES_H
#define GPUPROF_COLLECTOR_ANALYSES_H

#include "query/report_parts.h"
#include "query/sums.h"

#define ANALYSIS(info) ANALYSIS_##info,
enum sums_table {
#include "analyse/analyses.def"
    ANALYSES_COUNT
};

#define ANALYSIS(info) extern const struct sums_info info;
#include "analyse/analyses.def"

/* Before the walk: starts those of `sums`, of ANALYSES_COUNT, that this --by has, but for what
 * nobody will look at (enum report_part), or only those of these bits (0: all). All others have no
 * `info`. `groups`: see struct sums. */
void analyses_start(struct sums *sums, struct walk *walk, enum report_by by, bool groups,
                    unsigned leaves, uint64_t only, uint64_t *histogram_rows);

/* Those that a bit of enum sums_table says: are they all made of resolved events alone? And the one
 * whose table that is; ANALYSES_COUNT: none. */
bool analyses_are_of_rows(uint64_t tables);
unsigned analyses_find(const struct table_info *table);

/* Adds those that read resolved events to its readers, and puts those into `consumers`, behind
 * *count, that have one of their own. */
void analyses_consumers(struct sums *sums, struct resolver *resolver, struct consumer *consumers,
                        unsigned *count);

/* Of those that are made, drops what nobody looks at (enum report_part). */
void analyses_leave(struct sums *sums, unsigned leaves);

void analyses_release(struct sums *sums);

/* Into a part, and out of it, as sums_put, sums_add and, behind the last part, sums_finish. */
void analyses_put(struct sums *sums, struct part *p);
int analyses_add(struct sums *sums, struct part *p);
int analyses_finish(struct sums *sums);

#endif
