/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table row of a range: by its domain and text. If rows are groups, by the subject of the text
 * (range_text.h): XlaModule:#hlo_module=jit_f,..# becomes "XlaModule: jit_f". More than
 * RANGES_APART_MAX texts of a domain that differ only in separate numbers ("iteration 17") then
 * share one row, and so do more than RANGES_ALIKE_MAX that differ in any numbers. The row's name
 * has '*' in place of these numbers.
 *
 * The first texts have rows of their own. Once there are too many, further ones go to the group's
 * row, and at the end the first ones join them.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_ROWS_H
#define GPUPROF_COLLECTOR_RANGE_ROWS_H

#include <stdio.h>

#include "query/sums.h"
#include "resolve/range_text.h"

#define RANGES_APART_MAX 8
#define RANGES_ALIKE_MAX 256

struct range_rows {
    struct sums *sums;     /* a view; its keys are the text and the domain */
    unsigned marks;        /* index of the value that counts groups in a row */
    struct key_map counts; /* (pattern, domain) -> rows of their own */
};

/* Returns the row of a range; `text` and `domain`, interned, may be NULL. A view until the next row
 * is made; NULL if out of memory. */
struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain);

/* Call after the last range: groups the rows. 0 or GPUPROF_NO_MEMORY. */
int range_rows_complete(struct range_rows *r);

/*
 * Groups names alone: each of names[count] that belongs to a group within its domain becomes the
 * group's name, with '*'. Names may be NULL or equal; `domains` NULL: all have none. Returns how
 * many names changed, or GPUPROF_NO_MEMORY.
 */
int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          const struct kernel_name *const *domains, uint32_t count);

/* Prints what '*' means, below a table that has one. */
void range_rows_say(FILE *out);

#endif
