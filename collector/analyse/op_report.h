/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, labels and modules: how often each ran, its time on the host and on the GPU,
 * in all and without what ran inside it, its floating point operations, and the cost of its
 * backward operators. Work belongs to the innermost operator open on the launching thread. Work of
 * a graph launched outside operators belongs to the operators that captured it (graph_origins.h).
 * Work without an operator, or without a known call, is listed apart, by cause. What torch.compile
 * traces does not run and is left out.
 *
 * Memory: 600 bytes a row, here and in its table, for OP_ROWS_FREE rows and one more for each
 * OP_ROW_BYTES of the files, OP_ROWS_MAX at most; 150 bytes for each set of inputs with floating
 * point operations and each pair of a backward operator and its forward one, as many as rows,
 * beyond which neither is known, and a few for each row besides; 16 MiB at most for operators
 * around captured calls; and 1 byte a thread. The texts of sizes are among those of the walk.
 * graph_origins.h and op_stack.h say what bounds theirs.
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
    NONE_BETWEEN,
    NONE_CAUSES
};

/* Keys and values of its table. During the walk rows are keyed by cause, with the graph's origin
 * and thread + 1 (NONE_WHY), and by name. */
enum { NONE_WHY, NONE_WHAT };
enum { NONE_COUNT, NONE_NS };
#define NONE_ROWS_MAX 16384

/* Its tables, in the order of analyses.def. */
enum op_table { OP_OPERATORS, OP_UNDER_NONE, OP_LABELS, OP_MODULES, OP_HOOKS, OP_TABLES };

/* A row, before equal rows of several processes are merged. */
struct op_row {
    const struct process *process;  /* its numbers' process; NULL: all without a row */
    const struct kernel_name *text; /* NULL: not known */
    uint64_t inputs;
    const struct kernel_name *range; /* by range: the range or label around it; NULL: none */
    uint32_t parent;                 /* by stack: index of the row around it + 1; 0: none */
    enum op_table table; /* OP_HOOKS: Lightning's, with the time that no hook inside takes as own
                            time. Members up to here are the key */
    uint32_t first;      /* first row that is equal but for what is around it: index + 1 */
    uint64_t values[OP_VALUES];
};

/* Distinguishes the calls of one row. */
struct op_class {
    const struct op_formula *formula; /* NULL: none */
    uint64_t inputs;                  /* used with a formula; 0: not known */
    uint32_t row;
    uint32_t forward;     /* row of the forward operator + 1; 0: none */
    uint32_t module;      /* entry of the enclosing module + 1; 0: none */
    uint32_t backward_of; /* likewise, of the module of their forward operator or of one around
                             them; then `module` is 0 */
    bool is_backward;     /* nothing around them has backward_of */
    bool is_covered;      /* flop_counter counts what is around them */
    bool counts;          /* flop_counter counts them, or what is around them */
    bool is_compiled;     /* a label of compiled code */
    uint32_t reserved;
};

/* Sums over the calls of one class. */
struct op_entry {
    struct op_class is;
    uint64_t device; /* that did its last work */
    uint64_t calls;
    uint64_t duplicates; /* calls that are the only content of a call of the same name */
    uint64_t captured;   /* calls captured into graphs: they did no work themselves ... */
    uint64_t replays;    /* ... but this often through replays */
    uint64_t gpu_ns;
    uint64_t ns;       /* for modules, host time of modules directly inside, and time of ... */
    uint64_t inner_ns; /* ... backward operators of those; for hooks likewise */
    uint64_t backward_ns;
    uint64_t backward_gpu_ns;
    uint64_t found_ns; /* part of gpu_ns under no inner operator with a formula */
};

struct op_report {
    struct walk *walk;
    struct sums *sums; /* OP_TABLES of them */
    enum report_by by;
    uint32_t rows_max;   /* limit of rows, and of entries */
    struct op_row *rows; /* owned; number n is rows[n - 1], likewise for entries */
    uint32_t count;
    struct number_set row_numbers;
    struct op_entry *entries; /* owned; struct op has the place of its entry for a row */
    uint32_t entry_count;
    struct number_set entry_numbers;
    struct {
        const struct kernel_name *text;
        const struct op_formula *formula;
    } formulae[OP_FORMULA_SLOTS]; /* cache of the last lookups */
    struct op_pairs pairs;
    struct graph_origins graphs;
    struct {
        uint32_t
            *words; /* owned: for captured calls, a count and that many entries, innermost first */
        uint32_t count;
    } chains;
    bool has_more; /* rows were dropped for lack of room */
    bool *has_ops; /* owned, by thread index: operators began on it */
};

/* Adds work without an operator; `what` may be NULL. 0 or GPUPROF_NO_MEMORY. (op_report_rows.c,
 * like the next) */
int op_report_add_none(struct op_report *o, uint64_t why, const struct kernel_name *what,
                       uint64_t count, uint64_t ns);

/* Call after the walk: fills the tables. 0 or GPUPROF_NO_MEMORY. */
int op_report_complete(struct op_report *o);

/* A cause as one word, in the table's rows, and in the sentence above the table. */
struct none_words {
    const char *word, *row, *sentence;
};
extern const struct none_words none_words[NONE_CAUSES];

#endif
