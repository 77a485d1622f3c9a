/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, labels and modules: how often each ran, its time on the host and on the GPU,
 * in all and without what ran inside it, its floating point operations, and the cost of its
 * backward operators. Work belongs to the innermost operator open on the launching thread. Work of
 * a graph launched outside operators belongs to the operators that captured it (graph_origins.h).
 * Work without an operator, or without a known call, is listed apart, by cause. What torch.compile
 * traces does not run and is left out.
 *
 * Memory: 350 bytes for each class of calls, and 300 for each row, for OP_ROWS_FREE classes and one
 * more for each OP_ROW_BYTES of the files, OP_ROWS_MAX at most, beyond which calls share one by
 * name, a quarter more, and then all of a table; calls are apart by their inputs too if these say
 * how many floating point operations there are, and by their forward operator and module; and 1
 * byte a thread. The texts of sizes are among those of the walk. graph_origins.h and spans.h say
 * what bounds theirs.
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

/* The sums of a row. FLOPs take three values: the FLOPs, the calls with known ones, and the calls
 * that should have some. */
enum op_measure {
    OP_SEEN, /* the row has calls or GPU time */
    OP_CALLS,
    OP_TOTAL,
    OP_SELF,
    OP_GPU,
    OP_GPU_SELF,
    OP_GRAPH,    /* part of OP_GPU_SELF: replays of captured graphs */
    OP_BACKWARD, /* of its backward operators */
    OP_BACKWARD_GPU,
    OP_GPU_BOTH,            /* OP_GPU and OP_BACKWARD_GPU */
    OP_PROFILER,            /* counted as with_flops does */
    OP_COUNTER = 13,        /* counted as flop_counter does; for a module, of its operators ... */
    OP_BACKWARD_FLOPS = 16, /* ... and of their backward ones */
    OP_RATE_FLOPS = 19,
    OP_RATE_NS,  /* GPU time of these */
    OP_PEAK,     /* thousands of FLOPs that devices could have done in that time */
    OP_NO_PEAK,  /* the peak of some device is not known */
    OP_FLOPS_NS, /* GPU time in operators with known FLOPs */
    OP_MARK,     /* row without an operator; a label that stands for several */
    OP_VALUES
};

/* Why work has no operator. */
enum none_cause {
    NONE_COMPILED,
    NONE_GRAPH,
    NONE_THREAD, /* a thread without operators */
    NONE_CALL,   /* an unknown call */
    NONE_BETWEEN
};

/* Keys and values of its table. During the walk rows are keyed by cause, with the graph's origin
 * and thread + 1 (NONE_WHY), and by name. */
enum { NONE_WHY, NONE_WHAT };
enum { NONE_COUNT, NONE_NS };
#define NONE_ROWS_MAX 16384

/* Its tables, in the order of analyses.def. */
enum op_table { OP_OPERATORS, OP_UNDER_NONE, OP_LABELS, OP_MODULES, OP_HOOKS, OP_TABLES };

/* Distinguishes calls. */
struct op_class {
    const struct process *process;    /* NULL: all others of the table */
    const struct kernel_name *text;   /* NULL: not known */
    const struct op_formula *formula; /* NULL: none */
    const struct kernel_name *range;  /* by range: the range or label around it; NULL: none */
    uint64_t inputs;                  /* with a formula, or by shape; 0: not known */
    uint32_t parent;      /* by stack: entry around it, + 1, like those below; 0: none */
    uint32_t forward;     /* its forward operator */
    uint32_t module;      /* the enclosing module; of a hook, the enclosing hook */
    uint32_t backward_of; /* the module of their forward operator or of one around them; then
                             `module` is 0 */
    uint8_t table;        /* enum op_table; OP_HOOKS: Lightning's, with the time that no hook inside
                             takes as own time */
    bool is_backward;     /* nothing around them has backward_of */
    bool is_covered;      /* flop_counter counts what is around them */
    bool counts;          /* flop_counter counts them, or what is around them */
    bool is_compiled;     /* a label of compiled code */
    uint8_t reserved[3];
};

/* Sums over the calls of one class. Those that its key names have smaller numbers. */
struct op_entry {
    struct op_class is;
    uint64_t device;     /* that did its last work */
    uint64_t duplicates; /* calls that are the only content of a call of the same name */
    uint64_t captured;   /* calls captured into graphs: they did no work themselves ... */
    uint64_t replays;    /* ... but this often through replays */
    uint64_t inner_ns;   /* of modules and hooks: host time of those directly inside */
    uint64_t found_ns;   /* part of its GPU time under no inner operator with a formula */
    uint32_t first;      /* by stack: first entry with equal names here and around, + 1 */
    uint64_t values[OP_VALUES];
};

struct op_report {
    struct walk *walk;
    struct sums *sums; /* OP_TABLES of them */
    enum report_by by;
    struct op_entry *entries; /* owned; number n is entries[n - 1]; struct host_span has the place
                                 of its entry for a row */
    uint32_t count, count_max;
    struct number_set numbers;
    struct {
        const struct kernel_name *text;
        const struct op_formula *formula;
    } formulae[OP_FORMULA_SLOTS]; /* cache of the last lookups */
    struct op_pairs pairs;
    struct graph_origins graphs;
    bool has_more; /* rows were dropped for lack of room */
    bool *has_ops; /* owned, by thread index: operators began on it */
};

/* Adds work without an operator; `what` may be NULL. (op_report_rows.c, like the next) */
void op_report_add_none(struct op_report *o, uint64_t why, const struct kernel_name *what,
                        uint64_t count, uint64_t ns);

/* Adds a FLOPs sum such as OP_PROFILER to another; on overflow, its calls count as unknown. */
void op_report_add_flops(uint64_t *sum, const uint64_t *from);

/* Call after the walk: fills the tables. */
void op_report_complete(struct op_report *o);

#endif
