/* SPDX-License-Identifier: Apache-2.0 */
/* For kernel_matching.c, which makes a kernel_match: both sides while they are matched. */
#ifndef GPUPROF_COLLECTOR_KERNEL_MATCHING_H
#define GPUPROF_COLLECTOR_KERNEL_MATCHING_H

#include <stdbool.h>

#include "base/key_map.h"
#include "diff/kernel_match.h"
#include "diff/pairing.h"

#define STEADY_RATE 0.1 /* launches a step: fewer may be a border's, or say nothing */

/* What may agree of two places, the most telling first. */
enum agreement {
    AGREE_ALL,
    AGREE_LIBRARY,
    AGREE_OPERATOR,
    AGREE_LINE,
    AGREE_FUNCTION, /* of the line, whose number an edit above it changes */
    AGREE_RANGE,
    AGREEMENTS
};

/* A name of one side; its kernels are neighbours in the side's list. */
struct match_name {
    const char *raw;
    char *shown; /* owned, or the same as raw */
    char *text;  /* owned: the form that it has now, of `length` bytes */
    size_t length;
    uint32_t class; /* number of that form; 0: it says nothing */
    uint32_t side;
    uint32_t first, count; /* its kernels */
    uint32_t order;        /* among all names, digits in them by their value */
    uint32_t row;          /* the first that it is in + 1; 0: none yet */
    bool is_numbered;      /* kernel_has_ordinal */
    bool is_vague;         /* its form is one of several things */
    bool is_frequent;      /* one of its kernels is not seldom */
    bool is_steady;        /* as often, and in the same places, on both sides */
    uint64_t launches, ns;
};

/* A kernel at its place. */
struct match_item {
    uint32_t name;
    bool is_seldom;              /* launched less often than STEADY_RATE */
    uint32_t row;                /* + 1; 0: not matched yet */
    uint32_t places[AGREEMENTS]; /* numbers of what may agree; 0: it is not known */
};

struct matching {
    struct kernel_match *m;
    struct match_item *items[MATCH_SIDES]; /* owned, as the sides' kernels */
    uint32_t count;                        /* of both */
    struct pairing_entry *entries;         /* owned: room for all items, or names */
    struct numbered *numbered;             /* owned, likewise */
    struct key_map pairs;                  /* (name + 1, name + 1) -> row + 1 */
    uint32_t row_capacity;
    enum kernel_form form;
};

/* One row of the two names, whatever kernels they have. 0 or GPUPROF_NO_MEMORY. */
int matching_pair_names(struct matching *g, uint32_t base, uint32_t other);

/*
 * Pairs what is launched on both sides as often, and in the same places, but for STEADY_RATE: of
 * equal programs a few launches lie this or that side of a step's border. Sets `is_steady` of all
 * names; of what one side alone has that says that it is seldom. 0 or GPUPROF_NO_MEMORY.
 * (kernel_steady.c)
 */
int matching_find_steady(struct matching *g);

#endif
