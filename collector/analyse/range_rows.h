/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which row of a table a range belongs to: that of its domain and its text; or, where rows are
 * groups, of what its text is about (range_text.h), so that XlaModule:#hlo_module=jit_f,..# is
 * "XlaModule: jit_f". More than RANGES_APART_MAX texts of a domain that differ in numbers alone,
 * which stand apart ("iteration 17"), are one row then, and so are more than RANGES_ALIKE_MAX that
 * differ in any numbers: their name has '*' in the place of these.
 *
 * Each text has a row of its own at first. Rows are grouped by numbers that stand apart whenever
 * there are twice as many as after the last time, and by all numbers at the end, or if there is no
 * room for a further one.
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
    unsigned marks;     /* the value that counts groups in a row */
    uint32_t count_max; /* with so many rows they are grouped next */
    bool is_unsure;     /* there was no room: in another order of ranges rows might be others */
};

/* The row of a range; `text` and `domain`, interned, may be NULL. A view until the next row is
 * made; NULL: no memory. */
struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain);

/* Behind the last range. 0 or GPUPROF_NO_MEMORY. */
int range_rows_complete(struct range_rows *r);

/*
 * The same of names alone: each of names[count], which may be NULL and may be the same as others,
 * becomes the one with '*' in it where it is in a group of those of its domain (NULL: all have
 * none). `last`: by these numbers at most. How many do, or GPUPROF_NO_MEMORY.
 */
int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          const struct kernel_name *const *domains, uint32_t count,
                          enum range_numbers last);

/* What '*' stands for, below the text of a table that has any. */
void range_rows_say(FILE *out);

#endif
