/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table row of a range: by its domain and text. If rows are groups, by the subject of the text
 * (range_text.h): XlaModule:#hlo_module=jit_f,..# becomes "XlaModule: jit_f". More than
 * RANGES_APART_MAX texts of a domain that differ only in separate numbers ("iteration 17") then
 * share one row, and so do more than RANGES_ALIKE_MAX that differ in any numbers. The row's name
 * has '*' in place of these numbers, and its value `marks` (struct sums_info) is not 0.
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

/* For struct sums_info: returns the row of a range, whose keys are its text and domain. */
struct sums_row *range_row(struct sums *s, struct key key);

/* Likewise, when all rows exist: groups them. */
void range_rows_complete(struct sums *s);

/* Groups names alone: each of names[count] that belongs to a group within its domain becomes the
 * group's name, with '*'. Names may be NULL or equal; `domains` NULL: all have none. */
void range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                       const struct kernel_name *const *domains, uint32_t count);

/* Prints what '*' means, below a table of sums that has one. */
void range_rows_say(const struct table *t, FILE *out);

#endif
