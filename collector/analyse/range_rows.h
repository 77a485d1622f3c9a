/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table row of a range: by its domain and text. If rows are groups, by the subject of the text
 * (range_text.h): XlaModule:#hlo_module=jit_f,..# becomes "XlaModule: jit_f". More than
 * RANGES_APART_MAX texts of a domain that differ only in separate numbers ("iteration 17") then
 * share one row, and so do more than RANGES_ALIKE_MAX that differ in any numbers. The row's name
 * has '*' in place of these numbers.
 *
 * Each text has its own row at first. Rows are grouped by separate numbers whenever their count has
 * doubled, and by all numbers at the end or when there is no room for another row.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_ROWS_H
#define GPUPROF_COLLECTOR_RANGE_ROWS_H

#include <stdio.h>

#include "query/sums.h"
#include "resolve/range_text.h"

#define RANGES_APART_MAX 8
#define RANGES_ALIKE_MAX 256

struct range_rows {
    struct sums *sums;  /* a view; its keys are the text and the domain */
    unsigned marks;     /* index of the value that counts groups in a row */
    uint32_t count_max; /* row count that triggers the next grouping */
    bool is_unsure;     /* there was no room, so the rows depend on the order of ranges */
};

/* Returns the row of a range; `text` and `domain`, interned, may be NULL. A view until the next row
 * is made; NULL if out of memory. */
struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain);

/* Call after the last range. 0 or GPUPROF_NO_MEMORY. */
int range_rows_complete(struct range_rows *r);

/*
 * Groups names alone: each of names[count] that belongs to a group within its domain becomes the
 * group's name, with '*'. Names may be NULL or equal; `domains` NULL: all have none. Groups by the
 * kinds of numbers up to `last`. Returns how many names changed, or GPUPROF_NO_MEMORY.
 */
int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          const struct kernel_name *const *domains, uint32_t count,
                          enum range_numbers last);

/* Prints what '*' means, below a table that has one. */
void range_rows_say(FILE *out);

#endif
