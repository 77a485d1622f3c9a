/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph: the call tree with one number a node, its children in the order of their labels.
 * flame.c makes it, a file for each form writes it, and flame_verb.c chooses among these.
 */
#ifndef GPUPROF_COLLECTOR_FLAME_H
#define GPUPROF_COLLECTOR_FLAME_H

#include "base/options.h"
#include "output/output.h"
#include "resolve/stack_costs.h"

/* In the order of --format and --weight. */
enum flame_format { FLAME_FOLDED, FLAME_SPEEDSCOPE, FLAME_SVG, FLAME_BY_NAME };
enum flame_weight {
    WEIGHT_HOST,
    WEIGHT_GPU,
    WEIGHT_CALLS,
    WEIGHT_BYTES,
    WEIGHT_CPU, /* from samples */
    WEIGHT_OFF_CPU,
    WEIGHT_WALL /* both of these */
};

extern const struct option weight_options[]; /* --weight, of an enum flame_weight */

struct flame_node {
    uint64_t own;         /* without what is below */
    uint64_t total;       /* 0: not shown */
    uint32_t first_child; /* 0: none; children in order */
    uint32_t sibling;     /* the next one; 0: none */
};

struct flame {
    struct stack_costs costs;
    enum flame_weight weight;
    struct flame_node *nodes; /* owned, by number; nodes[0] is the root of all */
};

/* Has anything with that weight no stack? */
bool flame_lacks(enum flame_weight weight, const struct stack_cost *without);

/* What the costs have to count for it, `and_host`: for what the host did, too; to be called behind
 * stack_costs_init. */
void flame_wants(struct flame *f, enum flame_weight weight, bool and_host);

/*
 * Reads all that the costs' walk is of, with symbols from `symbol_folder` (symbols.h); the costs
 * are initialised, their owner and that of the nodes is the caller. 0, or an error that was said.
 */
int flame_gather(struct flame *f, const char *symbol_folder);

/* The same behind a walk of the costs' consumer, without a word. 0 or an error. */
int flame_finish(struct flame *f, const char *symbol_folder);

/* Makes the nodes of costs that are complete; those that there were are the caller's still. 0 or
 * GPUPROF_NO_MEMORY. */
int flame_weigh(struct flame *f, enum flame_weight weight);

/* Says on stderr what has no stack, and why, to who called gpuprof by `command` (NULL: not known).
 */
void flame_say(const struct flame *f, const struct recording *rec, const char *command);

/* The node that comes next when all are visited, parents first; `from` 0 begins, 0 ends. */
uint32_t flame_next(const struct call_tree *tree, const struct flame_node *nodes, uint32_t from);

/* Of nodes that know their own numbers: their totals, and their children in order. 0 or
 * GPUPROF_NO_MEMORY. */
int flame_arrange(const struct call_tree *tree, struct flame_node *nodes);

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value);
const char *flame_weight_text(enum flame_weight weight); /* "time on the host" */

/* "train.py (8 processes) and 1 other: time of calls on the host: 12.000 us"; returns `text`. */
#define FLAME_TITLE_BYTES 512
char *flame_title(const struct flame *f, char *text);

/* "12 calls (3.000 us) have no stack ...", for people; returns `text`. */
#define FLAME_NOTE_BYTES 384
char *flame_note(const struct flame *f, const struct stack_cost *without, char *text);

/* Each writes the whole file. 0 or GPUPROF_NO_MEMORY. */
int flame_write_folded(const struct flame *f, struct output *out);
int flame_write_speedscope(const struct flame *f, struct output *out);
int flame_write_svg(const struct flame *f, struct output *out);

/* A line of folded stacks: the way to a node, and numbers. `path` has room for all nodes. */
void flame_put_stack(const struct call_tree *tree, uint32_t node, uint32_t *path,
                     const uint64_t *numbers, unsigned number_count, struct output *out);

#define FLAME_DESCRIBE_BYTES 160

/* What an SVG file shows: a graph, and what its owner draws above it. (flame_svg.c) */
struct flame_picture {
    const struct call_tree *tree;
    const struct flame_node *nodes;
    enum flame_weight weight;
    const char *title;
    const char *note;
    const char *style; /* CSS of what is drawn above */
    unsigned above;    /* so many px high */
    void (*put_above)(const void *context, unsigned y, struct output *out); /* NULL: nothing */
    /* Of a node, 0 the root of all; NULL: by the kind of its frame, and its number and share. What
     * describes it is without a colon. */
    unsigned (*colour)(const void *context, uint32_t node);
    void (*describe)(const void *context, uint32_t node, uint64_t total, char *text);
    const void *context;
};

/* 0 or GPUPROF_NO_MEMORY. */
int flame_draw(const struct flame_picture *p, struct output *out);

extern const char flame_script[]; /* of the SVG (flame_script.c) */

/* ---- flame_diff.c ---- */

/*
 * Two flame graphs as one: what each stack cost now, and what before, both of the average run of
 * their side. Runs come one after the other, and what is kept of them is a tree of their frames by
 * what these are called: places in files without their lines, which any edit moves, and ranks of a
 * program as one. Memory: as call_tree.h has it, and 16 bytes more a node.
 */
enum flame_side { FLAME_BEFORE, FLAME_NOW, FLAME_SIDES };

struct flame_diff {
    struct call_tree tree;
    struct kernel_names names;    /* of its frames */
    uint64_t (*own)[FLAME_SIDES]; /* owned: of node n own[n - 1]; sums of all runs */
    uint32_t own_count;           /* that there is room for */
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
