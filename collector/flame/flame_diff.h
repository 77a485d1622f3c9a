/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two flame graphs as one: what each stack cost now, and what before, both of the average run of
 * their side. Runs come one after the other, and what is kept of them is a tree of their frames by
 * what these are called: places in files without their lines, which any edit moves, and ranks of a
 * program as one. Memory: as call_tree.h has it, and 16 bytes more a node.
 */
#ifndef GPUPROF_COLLECTOR_FLAME_DIFF_H
#define GPUPROF_COLLECTOR_FLAME_DIFF_H

#include "flame/flame.h"

enum flame_side { FLAME_BEFORE, FLAME_NOW, FLAME_SIDES };

struct flame_diff {
    struct call_tree tree;
    struct kernel_names names;    /* of its frames */
    uint64_t (*own)[FLAME_SIDES]; /* owned: of node n own[n - 1]; sums of all runs */
    uint32_t own_capacity;
    uint32_t runs[FLAME_SIDES];
    enum flame_weight weight;
    bool is_shares; /* what was before is scaled, as if both sides had the same in all */
};

void flame_diff_init(struct flame_diff *d, enum flame_weight weight, bool is_shares);
void flame_diff_release(struct flame_diff *d);

/* Adds a run, which may go then. 0 or GPUPROF_NO_MEMORY. */
int flame_diff_add(struct flame_diff *d, enum flame_side side, const struct flame *f);

/* Behind the last run, each once: writes the whole file. `names`: a line that says what was
 * compared. 0 or GPUPROF_NO_MEMORY. */
int flame_diff_write_folded(struct flame_diff *d, struct output *out);
int flame_diff_write_svg(struct flame_diff *d, const char *names, struct output *out);

#endif
