/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators and labels: how often each ran, how long, and how long the GPU worked on what
 * was begun in it, in all and without what is inside of it. Work belongs to the innermost operator
 * that was open on its call's thread; what has none, or no call that is known, is said apart. What
 * torch.compile traces does nothing and is left out. Memory: 200 bytes for each row, of which there
 * are OP_ROWS_FREE and one more for each OP_ROW_BYTES of the files, OP_ROWS_MAX at most; the texts
 * of sizes are among those of the walk.
 */
#ifndef GPUPROF_COLLECTOR_OP_REPORT_H
#define GPUPROF_COLLECTOR_OP_REPORT_H

#include "base/options.h"
#include "model/event_walk.h"
#include "table/table.h"

#define OP_ROWS_FREE 4096
#define OP_ROW_BYTES 64
#define OP_ROWS_MAX  (1u << 18)

enum op_row_kind { OP_ROW_OPERATOR, OP_ROW_NONE, OP_ROW_LABEL };

struct op_row {
    enum op_row_kind kind; /* NONE: GPU work in no operator */
    bool is_others;        /* all for which there was no row */
    const struct kernel_name *text;
    const struct kernel_name *dims; /* NULL: not known, or rows are not by shape */
    const struct process *process;  /* that has its numbers */
    uint64_t name;
    uint64_t inputs;
    uint64_t calls;
    uint64_t total_ns;
    uint64_t self_ns;
    uint64_t gpu_ns;
    uint64_t gpu_self_ns;
};

struct op_report {
    struct walk *walk;
    bool by_shape;
    bool groups;         /* labels that differ in numbers alone are one row (range_rows.h) */
    bool has_groups;     /* some do */
    struct op_row *rows; /* owned; complete: labels last, those with most GPU time first */
    uint32_t count;
    uint32_t capacity;
    uint32_t rows_max;
    struct key_map places; /* of rows + 1, by process, kind, name and inputs */
    uint64_t gpu_ns;       /* of all work */
    uint64_t gpu_none_ns;  /* of it, in no operator */
    uint64_t self_ns;      /* of all operators */
};

void op_report_init(struct op_report *o, struct walk *walk, enum report_by by, bool groups);
void op_report_release(struct op_report *o);

/* `has_work`: the recording has, or should have, work of devices. */
struct consumer op_report_consumer(struct op_report *o, bool has_work);

/* Operators, and labels, of a struct op_report. (op_report_print.c) */
extern const struct table_info op_tables[2];

#endif
