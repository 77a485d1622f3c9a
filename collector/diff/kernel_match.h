/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels of one side are which of the other. Names meet in their forms (kernel_form.h),
 * the surest first. Several of one form are told apart by where they were launched, then by how
 * often, then by their order and durations. What no name finds is looked for at its place: what
 * stands where something else stood is that, renamed; three there for one were fused. A kernel that
 * is launched in several places can be all of that at once, so it is places that are matched, and
 * one row has what two names, or what stood at one place, come to. The rest is new or gone.
 *
 * A few launches may lie this or that side of a step's border, or have a place that is not known,
 * with nothing changed: names that are launched as often and in the same places on both sides, but
 * for that, are themselves (kernel_steady.c), and so few launches are nobody's new name.
 *
 * The same input makes the same rows. Takes n log n steps of time for n kernels and places, and 400
 * bytes of memory for each beside two copies of their names. (kernel_matching.c)
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_MATCH_H
#define GPUPROF_COLLECTOR_KERNEL_MATCH_H

#include "diff/kernel_form.h"
#include "diff/run_summary.h"

enum match_kind {
    MATCH_SAME,     /* in `form` */
    MATCH_RENAMED,  /* one for one, and what follows: by `place` */
    MATCH_FUSED,    /* one or few for several */
    MATCH_SPLIT,    /* the other way round */
    MATCH_REPLACED, /* several for as many */
    MATCH_NEW,
    MATCH_GONE,
    MATCH_SELDOM, /* on one side alone, and too few to be new or gone */
    MATCH_KINDS
};

/* The runs of one side, added up: views. */
struct match_side {
    const struct run_kernel *kernels; /* in the order of run_kernels_order */
    uint32_t count;
    uint64_t steps; /* of which they are; 0 is taken for 1 */
};

enum match_which { MATCH_BASE, MATCH_OTHER, MATCH_SIDES };

struct match_row {
    enum match_kind kind;
    enum kernel_form form; /* of MATCH_SAME */
    enum run_place where;  /* of RENAMED ... REPLACED: what agrees */
    const char *place;     /* a view; NULL: the place has no name of its own */
    struct {
        const char
            *name;      /* a view: as it is shown, of the one that takes the longest; NULL: none */
        uint32_t names; /* how many different ones */
        uint64_t count; /* in all steps */
        uint64_t ns;
        uint32_t first; /* its kernels: kernels[members[first]] and so on, by name */
        uint32_t members;
    } side[MATCH_SIDES];
};

struct kernel_match {
    struct match_side sides[MATCH_SIDES];
    struct match_row *rows; /* owned; by how much they change a step's time, the largest first */
    uint32_t count;
    uint32_t *members[MATCH_SIDES]; /* owned: indices of kernels */
    struct match_name *names;       /* owned, as is the next */
    uint32_t name_count;
};

/* The sides' kernels must stay. 0 or GPUPROF_NO_MEMORY; kernel_match_release in both cases. */
int kernel_match_make(struct kernel_match *m, const struct match_side *base,
                      const struct match_side *other);
void kernel_match_release(struct kernel_match *m);

/* Time or launches a step, of a side's row. */
double match_per_step(const struct kernel_match *m, enum match_which which, uint64_t amount);

/* By how many nanoseconds a step takes longer now for what is in the row. */
double match_added(const struct kernel_match *m, const struct match_row *row);

/* "renamed": for a table and a script. */
const char *match_kind_text(enum match_kind kind);

/* As a kernel's name is shown, a view. */
const char *match_shown(const struct kernel_match *m, enum match_which which, uint32_t kernel);

#endif
