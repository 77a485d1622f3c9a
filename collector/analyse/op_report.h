/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, labels and modules: how often each ran, how long, and how long the GPU
 * worked on what was begun in it, in all and without what is inside of it; its floating point
 * operations, and what its backward operators took. Work belongs to the innermost operator that was
 * open on its call's thread; that of a graph launched in none to those that captured it
 * (graph_origins.h); what has none, or no call that is known, is said apart, by cause. What
 * torch.compile traces does nothing and is left out.
 *
 * Memory: 600 bytes for each row, here and in its table, of which there are OP_ROWS_FREE and one
 * more for each OP_ROW_BYTES of the files, OP_ROWS_MAX at most; 150 bytes for each set of inputs
 * that has floating point operations and each pair of a backward operator and its forward one, as
 * many as rows, beyond which neither is known, and a few for each row besides; 16 MiB at most for
 * what captured calls were in; and 1 byte for each thread. The texts of sizes are among those of
 * the walk. graph_origins.h and op_stack.h say what bounds theirs.
 */
#ifndef GPUPROF_COLLECTOR_OP_REPORT_H
#define GPUPROF_COLLECTOR_OP_REPORT_H

#include "flops/op_flops.h"
#include "query/sums.h"
#include "resolve/event_walk.h"
#include "resolve/graph_origins.h"

#define OP_ROWS_FREE     4096
#define OP_ROW_BYTES     64
#define OP_ROWS_MAX      (1u << 18)
#define OP_FORMULA_SLOTS 1024

/* What a row adds up, of which three numbers are of FLOPs: so many, of `known` calls, of those that
 * should have some. */
enum op_measure {
    OP_SEEN, /* it is more than what others are inside of */
    OP_CALLS,
    OP_TOTAL,
    OP_SELF,
    OP_GPU,
    OP_GPU_SELF,
    OP_GRAPH,    /* of OP_GPU_SELF: replays of what it captured */
    OP_BACKWARD, /* of its backward operators */
    OP_BACKWARD_GPU,
    OP_GPU_BOTH,            /* OP_GPU and OP_BACKWARD_GPU */
    OP_PROFILER,            /* as with_flops counts */
    OP_COUNTER = 13,        /* as flop_counter does; of a module, of operators in it ... */
    OP_BACKWARD_FLOPS = 16, /* ... and of their backward ones */
    OP_RATE_FLOPS = 19,
    OP_RATE_NS, /* of the GPU for these */
    OP_PEAK,    /* 128 bits: FLOPs that devices could have done in the time of those with a peak */
    OP_NO_PEAK = 23, /* for some of that, nobody knows what the device can do */
    OP_FLOPS_NS,     /* of the GPU, in an operator whose FLOPs are known */
    OP_MARK,         /* it is what is under no operator; of a label: it stands for several */
    OP_VALUES
};

/* Work in no operator. */
enum none_cause {
    NONE_COMPILED,
    NONE_GRAPH,
    NONE_THREAD, /* without operators */
    NONE_CALL,   /* that is not known */
    NONE_BETWEEN,
    NONE_CAUSES
};

/* Keys and values of its table; while the walk lasts, rows are by their cause, with the graph's
 * origin and one more than the thread (NONE_WHY), and by what they are called. */
enum { NONE_WHY, NONE_WHAT };
enum { NONE_COUNT, NONE_NS };
#define NONE_ROWS_MAX 16384

/* Its tables, in the order of analyses.def. */
enum op_table { OP_OPERATORS, OP_UNDER_NONE, OP_LABELS, OP_MODULES, OP_HOOKS, OP_TABLES };

/* Adds to OP_PEAK what has these two words, the low one first. */
static inline void op_peak_add(uint64_t *values, uint64_t low, uint64_t high)
{
    values[OP_PEAK + 1] += high;
    values[OP_PEAK + 1] += __builtin_add_overflow(values[OP_PEAK], low, &values[OP_PEAK]);
}

/* A row before what is alike in several processes is one. */
struct op_row {
    const struct process *process; /* that has its numbers; NULL: all for which there was no row */
    const struct kernel_name *text;
    uint64_t name; /* where it has no text */
    uint64_t inputs;
    const struct kernel_name *range; /* by range: that, or the label, around it; NULL: none */
    uint32_t parent;                 /* by stack: place of the row around it + 1; 0: none */
    enum op_table table; /* OP_HOOKS: Lightning's; own time is what no hook inside of it takes; up
                            to here: what tells it apart */
    uint32_t first;      /* of rows that are the same around others: place + 1 */
    uint64_t values[OP_VALUES];
};

/* What tells apart calls of one row. */
struct op_class {
    const struct op_formula *formula; /* NULL: none */
    uint64_t inputs;                  /* with a formula; 0: not known */
    uint32_t row;
    uint32_t forward;     /* row of their forward operator + 1; 0: none */
    uint32_t module;      /* entry of the module that they are in + 1; 0: none */
    uint32_t backward_of; /* likewise, of that of their forward operator, which they or one around
                             them have; then `module` is 0 */
    bool is_backward;     /* nothing around them has backward_of */
    bool is_covered;      /* flop_counter counts what is around them */
    bool counts;          /* flop_counter counts them, or what is around them */
    bool is_compiled;     /* a label of compiled code */
    uint32_t reserved;
};

/* The devices that did work. */
struct op_devices {
    uint64_t device;
    bool has_any;
    bool is_mixed; /* there were several */
};

/* What such calls have in common. */
struct op_entry {
    struct op_class is;
    struct op_devices devices;
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
};

struct op_report {
    struct walk *walk;
    struct sums *sums; /* OP_TABLES of them */
    enum report_by by;
    uint32_t rows_max;   /* of rows, and of entries */
    struct op_row *rows; /* owned; number n is rows[n - 1], and so of entries */
    uint32_t count;
    struct number_set row_numbers;
    struct op_entry *entries; /* owned; struct op has the place of its entry for a row */
    uint32_t entry_count;
    struct number_set entry_numbers;
    struct {
        const struct kernel_name *text;
        const struct op_formula *formula;
    } formulae[OP_FORMULA_SLOTS]; /* found last */
    struct op_pairs pairs;
    struct graph_origins graphs;
    struct {
        uint32_t
            *words; /* owned: of captured calls, a count and that many entries, innermost first */
        uint32_t count;
    } chains;
    bool has_more; /* there was more than it could keep */
    bool *has_ops; /* owned, by thread index: operators began on it */
};

/* Work in no operator, named or not. 0 or GPUPROF_NO_MEMORY. (op_report_rows.c, as the next) */
int op_report_add_none(struct op_report *o, uint64_t why, const struct kernel_name *what,
                       uint64_t count, uint64_t ns);

/* Behind the walk: fills the tables. 0 or GPUPROF_NO_MEMORY. */
int op_report_complete(struct op_report *o);

const char *op_none_word(enum none_cause cause);

#endif
