/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph: the call tree with a number per node and sorted children. flame.c builds it; each
 * format has a file that writes it, and flame_verb.c chooses the format. */
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
    WEIGHT_WALL /* sum of the two before */
};

extern const struct option weight_options[]; /* --weight, of an enum flame_weight */

struct flame_node {
    uint64_t own;         /* excluding children */
    uint64_t total;       /* 0: not shown */
    uint32_t first_child; /* 0: none; children are sorted by label */
    uint32_t sibling;     /* the next child of the parent; 0: none */
};

struct flame {
    struct stack_costs costs;
    enum flame_weight weight;
    struct flame_node *nodes; /* owned, by number; nodes[0] is the root */
};

/* Returns true if some events of that weight have no stack. */
bool flame_lacks(enum flame_weight weight, const struct stack_cost *without);

/* Sets what the costs must count. Call it after stack_costs_init. */
void flame_wants(struct flame *f, enum flame_weight weight);

/* Walks the recording of the initialised costs, with symbols from `symbol_folder` (symbols.h). The
 * caller owns costs and nodes. Returns 0, or an error after a message. */
int flame_gather(struct flame *f, const char *symbol_folder);

/* The same after a walk with the costs' consumer, without messages. Returns 0 or an error. */
int flame_finish(struct flame *f, const char *symbol_folder);

/* Builds nodes from complete costs; the caller still owns the old nodes. Returns 0 or
 * GPUPROF_NO_MEMORY. */
int flame_weigh(struct flame *f, enum flame_weight weight);

/* Prints on stderr what has no stack and why; `command` is how gpuprof was called (NULL:
 * unknown). */
void flame_say(const struct flame *f, const struct recording *rec, const char *command);

/* Returns the next node of a walk in which parents come first; `from` 0 begins, and 0 ends. */
uint32_t flame_next(const struct call_tree *tree, const struct flame_node *nodes, uint32_t from);

/* Computes the totals from the nodes' own numbers and sorts the children. Returns 0 or
 * GPUPROF_NO_MEMORY. */
int flame_arrange(const struct call_tree *tree, struct flame_node *nodes);

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value);
const char *flame_weight_text(enum flame_weight weight); /* "time on the host" */

/* "train.py (8 processes): time of calls on the host: 12.000 us"; returns `text`. */
#define FLAME_TITLE_BYTES 512
char *flame_title(const struct flame *f, char *text);

/* "12 calls (3.000 us) have no stack ...", for people; returns `text`. */
#define FLAME_NOTE_BYTES 384
char *flame_note(const struct flame *f, const struct stack_cost *without, char *text);

/* Each writes the whole file. Returns 0 or GPUPROF_NO_MEMORY. */
int flame_write_folded(const struct flame *f, struct output *out);
int flame_write_speedscope(const struct flame *f, struct output *out);
int flame_write_svg(const struct flame *f, struct output *out);

/* Writes a line of folded stacks: the path to a node, and numbers. `path` has room for all
 * nodes. */
void flame_put_stack(const struct call_tree *tree, uint32_t node, uint32_t *path,
                     const uint64_t *numbers, unsigned number_count, struct output *out);

#define FLAME_DESCRIBE_BYTES 160

/* The contents of an SVG file: a graph, and what the caller draws above it. (flame_svg.c) */
struct flame_picture {
    const struct call_tree *tree;
    const struct flame_node *nodes;
    enum flame_weight weight;
    const char *title;
    const char *note;
    const char *style; /* CSS for what is drawn above */
    unsigned above;    /* its height in px */
    void (*put_above)(const void *context, unsigned y, struct output *out); /* NULL: nothing */
    /* The colour of a node (0: the root), and its description, without a colon. NULL: by the
     * frame's kind, and number and share. */
    unsigned (*colour)(const void *context, uint32_t node);
    void (*describe)(const void *context, uint32_t node, char *text);
    const void *context;
};

/* Returns 0 or GPUPROF_NO_MEMORY. */
int flame_draw(const struct flame_picture *p, struct output *out);

extern const char flame_script[]; /* for the SVG (flame_script.c) */

/* ---- flame_diff.c ---- */

/*
 * Compares two flame graphs: the cost of each stack now and before, averaged over the runs of each
 * side. Runs are added one at a time into one tree. It joins frames by label without line numbers,
 * which every edit changes, and joins a program's ranks. Memory: as in call_tree.h, and 16 bytes a
 * node.
 */
enum flame_side { FLAME_BEFORE, FLAME_NOW, FLAME_SIDES };

struct flame_diff {
    struct call_tree tree;
    struct kernel_names names;    /* names of its frames */
    uint64_t (*own)[FLAME_SIDES]; /* owned: own[n - 1] of node n; sums of all runs */
    uint32_t own_count;           /* capacity */
    uint32_t runs[FLAME_SIDES];
    enum flame_weight weight;
    bool is_shares; /* scales `before` as if both sides had equal totals */
};

void flame_diff_init(struct flame_diff *d, enum flame_weight weight, bool is_shares);
void flame_diff_release(struct flame_diff *d);

/* Adds a run, which may be released afterwards. Returns 0 or GPUPROF_NO_MEMORY. */
int flame_diff_add(struct flame_diff *d, enum flame_side side, const struct flame *f);

/* Write the whole file; call one of them, once, after the last run. `names`: a line that says what
 * was compared. Return 0 or GPUPROF_NO_MEMORY. */
int flame_diff_write_folded(struct flame_diff *d, struct output *out);
int flame_diff_write_svg(struct flame_diff *d, const char *names, struct output *out);

#endif
