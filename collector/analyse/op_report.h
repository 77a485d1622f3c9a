/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, labels and modules: how often each ran, how long, and how long the GPU
 * worked on what was begun in it, in all and without what is inside of it; its floating point
 * operations, and what its backward operators took. Work belongs to the innermost operator that was
 * open on its call's thread; that of a graph launched in none to those that captured it
 * (graph_origins.h); what has none, or no call that is known, is said apart, by cause. What
 * torch.compile traces does nothing and is left out.
 *
 * Memory: 300 bytes for each row, of which there are OP_ROWS_FREE and one more for each
 * OP_ROW_BYTES of the files, OP_ROWS_MAX at most; 150 bytes for each set of inputs that has
 * floating point operations and each pair of a backward operator and its forward one, as many as
 * rows, beyond which neither is known, and as many again for those that Python does; and 16 MiB at
 * most for what captured calls were in. The texts of sizes are among those of the walk.
 * graph_origins.h, op_none.h and op_kind.h say what bounds theirs.
 */
#ifndef GPUPROF_COLLECTOR_OP_REPORT_H
#define GPUPROF_COLLECTOR_OP_REPORT_H

#include "analyse/op_none.h"
#include "base/options.h"
#include "flops/op_flops.h"
#include "model/event_walk.h"
#include "model/graph_origins.h"
#include "model/op_kind.h"
#include "table/table.h"

#define OP_ROWS_FREE     4096
#define OP_ROW_BYTES     64
#define OP_ROWS_MAX      (1u << 18)
#define OP_FORMULA_SLOTS 1024

enum op_row_kind {
    OP_ROW_OPERATOR,
    OP_ROW_NONE,
    OP_ROW_LABEL,
    OP_ROW_MODULE,
    OP_ROW_HOOK, /* of Lightning's: a label, whose own time is what no hook inside of it takes */
    OP_ROW_KINDS
};

/* As one of PyTorch's two ways has them. */
struct op_sum {
    uint64_t flops; /* of `known` calls */
    uint64_t known;
    uint64_t calls; /* that should have some */
};

struct op_row {
    enum op_row_kind kind; /* NONE: GPU work in no operator */
    bool is_others;        /* all for which there was no row */
    bool is_rated;         /* rate_flops and rate_ns are of something */
    bool has_no_peak;      /* for some of that, nobody knows what the device can do */
    const struct kernel_name *text;
    const struct kernel_name *dims; /* NULL: not known, or rows are not by shape */
    const struct process *process;  /* that has its numbers */
    uint64_t name;
    uint64_t inputs;
    uint32_t parent;                 /* by stack: number of the row around it; 0: none */
    uint32_t number;                 /* of this one: its place + 1, until they are sorted */
    uint64_t range_name;             /* by range: the label's number ... */
    const struct kernel_name *range; /* ... or its text; NULL: in none */
    uint64_t calls;
    uint64_t total_ns;
    uint64_t self_ns;
    uint64_t gpu_ns;
    uint64_t gpu_self_ns;
    uint64_t graph_ns;    /* of gpu_self_ns: replays of what it captured */
    uint64_t backward_ns; /* of its backward operators */
    uint64_t backward_gpu_ns;
    struct op_sum profiler; /* as with_flops counts */
    struct op_sum counter;  /* as flop_counter does; of a module, of operators in it ... */
    struct op_sum backward; /* ... and of their backward ones */
    uint64_t rate_flops;
    uint64_t rate_ns; /* of the GPU for these */
    /* That devices could have done in the time of those that have a peak. */
    unsigned __int128 peak_flops;
};

/* What calls of a row have in common. */
struct op_entry {
    uint32_t row;
    uint32_t forward;                 /* row of their forward operator + 1; 0: none */
    uint32_t module;                  /* entry of the module that they are in + 1; 0: none */
    uint32_t backward_of;             /* likewise, of that of their forward operator, which they or
                                         one around them have; then `module` is 0 */
    const struct op_formula *formula; /* NULL: none */
    uint64_t inputs;                  /* with a formula; 0: not known */
    uint64_t calls;
    uint64_t twins;    /* of these calls, in one of the same name and with nothing beside them */
    uint64_t captured; /* of these calls, into graphs: they did no work themselves ... */
    uint64_t replays;  /* ... but so many times for each that was captured */
    uint64_t gpu_ns;
    uint64_t ns; /* of modules: on the host, that of modules directly in them, and that of ... */
    uint64_t inner_ns; /* ... backward operators of those directly in them; of hooks likewise */
    uint64_t backward_ns;
    uint64_t backward_gpu_ns;
    uint64_t found_ns; /* of gpu_ns, work in nothing else that has a formula, inside of them */
    uint64_t device;   /* that did it */
    bool is_backward;  /* nothing around them has backward_of */
    bool is_covered;   /* flop_counter counts what is around them */
    bool counts;       /* flop_counter counts them, or what is around them */
    bool is_compiled;  /* a label of compiled code */
    bool has_device;
    bool is_mixed; /* several devices did */
};

struct op_report {
    struct walk *walk;
    enum report_by by;
    bool groups;         /* labels that differ in numbers alone are one row (range_rows.h) */
    bool has_groups;     /* some do */
    struct op_row *rows; /* owned; complete: labels last, those with most GPU time first */
    uint32_t count;
    uint32_t capacity;
    uint32_t rows_max;
    struct op_entry *entries; /* owned; struct op has the place of its entry for a row */
    uint32_t entry_count;
    uint32_t entry_capacity;
    struct key_map row_places;   /* of rows + 1, by process, kind, name and inputs */
    struct key_map entry_places; /* likewise of entries, and by what else they have in common */
    struct key_map contexts;     /* numbers of what else that is */
    struct {
        const struct kernel_name *text;
        const struct op_formula *formula;
    } formulae[OP_FORMULA_SLOTS]; /* found last */
    struct op_pairs pairs;
    struct graph_origins graphs;
    uint32_t *chains; /* owned: of captured calls, a count and that many entries, innermost first */
    uint32_t chain_count;
    uint32_t chain_capacity;
    struct op_none none;
    uint32_t *places;     /* owned, complete: of rows by their number - 1 */
    uint64_t gpu_ns;      /* of all work */
    uint64_t gpu_none_ns; /* of it, in no operator */
    uint64_t graph_ns;    /* of it, replays of graphs, which went to who captured them */
    uint64_t flops_ns;    /* of it, in an operator whose FLOPs are known */
    bool has_rows;        /* there is an operator, a label or a module, were it an empty one */
    bool has_flops;       /* of any operator FLOPs are known */
    uint64_t self_ns;     /* of all operators */
};

/* 0 or GPUPROF_NO_MEMORY; op_report_release in both cases. */
int op_report_init(struct op_report *o, struct walk *walk, enum report_by by, bool groups);
void op_report_release(struct op_report *o);

/* `has_work`: the recording has, or should have, work of devices. */
struct consumer op_report_consumer(struct op_report *o, bool has_work);

/* The row of that number (struct op_row), once they are complete. */
static inline const struct op_row *op_report_row(const struct op_report *o, uint32_t number)
{
    return &o->rows[o->places[number - 1]];
}

/* ---- op_report_rows.c ---- */

/* Behind the walk: makes the rows complete. 0 or GPUPROF_NO_MEMORY. */
int op_report_complete(struct op_report *o);

/* The place of the row with that key, which may be a new one like `made`; or an error. */
int64_t op_row_place(struct op_report *o, struct key key, const struct op_row *made);

/* ---- op_report_print.c ---- */

/* Operators, GPU time under none of them, and labels, of a struct op_report. */
#define OP_TABLES 3
extern const struct table_info op_tables[OP_TABLES];

/* ---- op_modules.c ---- */

/* Modules, and Lightning's hooks, of a struct op_report. */
extern const struct table_info modules_table;
extern const struct table_info hooks_table;

#endif
