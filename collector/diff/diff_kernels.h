/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that explain a comparison: which take longer or shorter in a step, what is new, gone,
 * renamed or fused. They do not gate: of hundreds some always differ.
 */
#ifndef GPUPROF_COLLECTOR_DIFF_KERNELS_H
#define GPUPROF_COLLECTOR_DIFF_KERNELS_H

#include <stddef.h>

#include "diff/kernel_match.h"
#include "diff/run_set.h"

struct diff_kernels {
    struct kernel_match match;
    bool is_made;
    uint32_t name_width; /* of names in a text; 0: they are not cut */
};

/* Of the runs, and of those that they are compared with, which must stay. 0 or GPUPROF_NO_MEMORY;
 * diff_kernels_release in both cases. */
int diff_kernels_make(struct diff_kernels *k, const struct run_set *runs,
                      const struct run_set *against);
void diff_kernels_release(struct diff_kernels *k);

/*
 * The next row after number *at - 1 that takes longer (`slower`) or shorter, by a thousandth of the
 * time of all kernels at least, the one that changes most first; *at moves on, and is 0 at first.
 * NULL: there is none.
 */
const struct match_row *diff_kernels_next(const struct diff_kernels *k, bool slower, uint32_t *at);

/* What the row is, in new memory; NULL: no memory: its name; "new: NAME", "gone: NAME"; "renamed:
 * OLD -> NEW (same operator: aten::mm)". No name is wider than `width`, if that is not 0. */
char *diff_kernels_text(const struct match_row *row, size_t width);

#endif
