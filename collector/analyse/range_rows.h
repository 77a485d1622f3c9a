/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which row of a table a range belongs to: that of its domain and its text; or, where rows are
 * groups, of what its text is about (range_text.h), so that XlaModule:#hlo_module=jit_f,..# is
 * "XlaModule: jit_f". More than RANGES_APART_MAX texts of a domain that differ in numbers alone,
 * which stand apart ("iteration 17"), are one row then, and so are more than RANGES_ALIKE_MAX that
 * differ in any numbers: their name has '*' in the place of these.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_ROWS_H
#define GPUPROF_COLLECTOR_RANGE_ROWS_H

#include <stdio.h>

#include "query/sums.h"

#define RANGES_APART_MAX 8
#define RANGES_ALIKE_MAX 256

struct range_group {
    uint32_t first; /* row + 1: the last one that came; the others follow by their `next` */
    uint32_t count; /* of them that have not joined another */
    uint32_t row;   /* + 1: all are this one; 0: not yet */
    uint32_t texts; /* that have come so far, at most one more than would make a row */
};

/* Beside a row of the table. */
struct range_link {
    uint32_t next[2]; /* another row of its group + 1 */
    uint32_t into;    /* the row that has what it had + 1; 0: itself */
};

struct range_rows {
    struct sums *sums;          /* a view, and so is `texts`; keys are the text and the domain */
    struct kernel_names *texts; /* NULL: rows are no groups */
    unsigned marks;             /* the value that counts groups in a row */
    struct key_map places;      /* of groups + 1, by pattern and domain */
    struct range_group *groups; /* owned; one for a row at most, and each of two kinds of numbers */
    uint32_t count, capacity;
    struct range_link *links; /* owned, by row */
    uint32_t link_count;
    bool is_unsure; /* in another order of ranges rows might be others */
};

void range_rows_release(struct range_rows *r);

/* The row of a range; `text` and `domain`, interned, may be NULL. A view until the next row is
 * made; NULL: no memory. */
struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain);

/*
 * The same of names that are all known: each of names[count], which may be NULL and may be the same
 * as others, becomes the one with '*' in it where it is in a group. How many do, or
 * GPUPROF_NO_MEMORY.
 */
int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          uint32_t count);

/* What '*' stands for, below the text of a table that has any. */
void range_rows_say(FILE *out);

#endif
