/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph: the call tree with numbers per node and sorted children, of a recording or of two
 * sides that are compared. flame.c builds it; each format has a function that writes it, and
 * flame_verb.c chooses the format. */
#ifndef GPUPROF_COLLECTOR_FLAME_H
#define GPUPROF_COLLECTOR_FLAME_H

#include "base/options.h"
#include "output/output.h"
#include "resolve/stack_costs.h"

/* In the order of --format and --weight. */
enum flame_format { FLAME_FOLDED, FLAME_SPEEDSCOPE, FLAME_SVG, FLAME_BY_NAME, FLAME_PPROF };
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

/* The options that only `flame` has. */
struct flame_options {
    enum flame_format format; /* FLAME_BY_NAME: by the file's name; FLAME_PPROF: of `export` */
    enum flame_weight weight;
    bool threads;
    bool is_mine; /* only the user's own frames (shown_frame.h) */
    bool folds_unnamed;
    bool merges_ranks;
    bool is_shares;
};

extern const struct verb flame_verb;

extern const struct weight_info {
    const char *text;    /* "time of calls on the host" */
    const char *unit;    /* as speedscope names it */
    const char *command; /* records what the weight needs */
} flame_weights[];

enum flame_side { FLAME_BEFORE, FLAME_NOW, FLAME_SIDES };

struct flame_node {
    uint64_t own[FLAME_SIDES]; /* excluding children */
    uint64_t total[FLAME_SIDES];
    uint64_t width; /* total, of each stack on the side where it is higher; 0: not shown */
    uint64_t left;  /* the width of all before it */
};

#define FLAME_TEXT_BYTES 640

struct flame {
    const struct stack_costs *costs; /* a view; NULL: a comparison */
    const struct call_tree *tree;    /* a view */
    struct flame_node *nodes;        /* owned, by number; nodes[0] is the root */
    uint32_t *order; /* owned: numbers of nodes shown, parents first, children by label */
    uint32_t count;
    enum flame_weight weight;
    bool compares;                /* else only FLAME_NOW is used */
    uint64_t stackless;           /* what no stack has */
    char title[FLAME_TEXT_BYTES]; /* "train.py (8 processes): time of calls on the host: 1 ms" */
    char note[FLAME_TEXT_BYTES];  /* what has no stack and why, or what is compared */
};

/* Builds the graph after a walk with the costs' consumer, with symbols from `symbol_folder`
 * (symbols.h). The costs must stay; the caller owns the nodes. */
void flame_make(struct flame *f, struct stack_costs *costs, enum flame_weight weight,
                const char *symbol_folder);

/* Prints on stderr what has no stack and why; `command` is how gpuprof was called (NULL:
 * unknown). */
void flame_say(const struct flame *f, const char *command);

/* Computes the totals, widths and order from the nodes' own numbers. */
void flame_arrange(struct flame *f);

const char *flame_value_text(enum flame_weight weight, char *text, uint64_t value);

/* "x 2.0", "+3.4 %", "new" or "gone"; returns `text`. */
#define FLAME_CHANGE_BYTES 32
char *flame_change_text(char *text, const uint64_t totals[FLAME_SIDES]);

/* Each writes the whole file; pprof's has all weights, and no comparison. */
void flame_write_folded(const struct flame *f, struct output *out);
void flame_write_speedscope(const struct flame *f, struct output *out);
void flame_write_svg(const struct flame *f, struct output *out);
void flame_write_pprof(const struct flame *f, struct output *out);

#endif
