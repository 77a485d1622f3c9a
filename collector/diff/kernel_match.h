/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that explain a comparison. They do not gate: of hundreds some always differ. Which
 * kernels of one side are which of the other: those of the same name; else those whose names
 * are the same without template arguments, at the same place; else those at the same place alone.
 * The rest is new or gone. The place of a name is where it takes the longest.
 *
 * Names that are launched seldom are matched by their whole name only: of equal programs a few
 * launches lie this or that side of a step's border.
 *
 * The same input makes the same rows. Takes n log n steps of time for n kernels, and 300 bytes of
 * memory for each beside three copies of their names.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_MATCH_H
#define GPUPROF_COLLECTOR_KERNEL_MATCH_H

#include "diff/run_summary.h"

#define SELDOM_RATE 0.1 /* launches a step: a name with fewer is seldom */

enum match_kind {
    MATCH_SAME,     /* by `by` */
    MATCH_RENAMED,  /* one for one, and what follows: by `place` */
    MATCH_FUSED,    /* one or few for several */
    MATCH_SPLIT,    /* the other way round */
    MATCH_REPLACED, /* several for as many */
    MATCH_NEW,
    MATCH_GONE,
    MATCH_SELDOM, /* on one side alone, and too few to be new or gone */
    MATCH_KINDS
};

enum match_which { MATCH_BASE, MATCH_OTHER, MATCH_SIDES };

struct match_row {
    enum match_kind kind;
    const char *by;       /* of MATCH_SAME: "exact" or "template", which names are equal */
    enum run_place where; /* of RENAMED ... REPLACED: what agrees */
    const char *place;    /* a view; NULL: none agrees */
    struct {
        const char *name; /* a view: as it is shown, the one that takes the longest; NULL: none */
        uint32_t names;   /* how many different ones */
        uint64_t count;   /* in all steps */
        uint64_t ns;
        uint64_t longest_ns; /* of `name` */
    } side[MATCH_SIDES];
};

struct kernel_match {
    const struct run_summary *sides[MATCH_SIDES]; /* views */
    struct match_row *rows; /* owned; by how much they change a step's time, the largest first */
    uint32_t count;
    struct match_name *names; /* owned */
    uint32_t name_count;
    uint32_t name_width; /* set by who has made it: of names in a text; 0: they are not cut */
};

/* Of kernels in the order of run_kernels_order; 0 steps are taken for 1. The sides must stay. 0 or
 * GPUPROF_NO_MEMORY; kernel_match_release in both cases. */
int kernel_match_make(struct kernel_match *m, const struct run_summary *base,
                      const struct run_summary *other);
void kernel_match_release(struct kernel_match *m);

/* Time or launches a step, of a side's row. */
double match_per_step(const struct kernel_match *m, enum match_which which, uint64_t amount);

/* By how many nanoseconds a step takes longer now for what is in the row. */
double match_added(const struct kernel_match *m, const struct match_row *row);

/* "renamed": for a table and a script. */
const char *match_kind_text(enum match_kind kind);

#endif
