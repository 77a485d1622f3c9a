/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stack or a line cost, as cells of a row: its own, and with all that it led to. A table's
 * list of columns ends with STACK_COST_COLUMNS; the other columns are its own.
 */
#ifndef GPUPROF_COLLECTOR_STACK_COST_CELLS_H
#define GPUPROF_COLLECTOR_STACK_COST_CELLS_H

#include "model/stack_costs.h"
#include "table/table.h"

#define STACK_COST_COLUMNS                                                                         \
    CALLS, HOST, WORKS, GPU, BYTES, CALLS_ALL, HOST_ALL, WORKS_ALL, GPU_ALL, BYTES_ALL,            \
        IS_OWN, /* from here on for the csv alone */                                               \
        MEAN, MAX, GPU_MEAN, IS_ALL, MEAN_ALL, MAX_ALL, GPU_MEAN_ALL, COLUMNS

/* What a row becomes in csv: one for the host and, if there is GPU work, one for that. */
#define STACK_COST_FORMS(kind)                                                                     \
    {kind, "host", 0, IS_OWN, {CALLS, HOST, MEAN, 0, 0, MAX, BYTES}},                              \
    {                                                                                              \
        kind, "gpu", 0, WORKS,                                                                     \
        {                                                                                          \
            WORKS, GPU, GPU_MEAN                                                                   \
        }                                                                                          \
    }
#define STACK_COST_FORMS_ALL(kind)                                                                 \
    {kind, "host", 0, IS_ALL, {CALLS_ALL, HOST_ALL, MEAN_ALL, 0, 0, MAX_ALL, BYTES_ALL}},          \
    {                                                                                              \
        kind, "gpu", 0, WORKS_ALL,                                                                 \
        {                                                                                          \
            WORKS_ALL, GPU_ALL, GPU_MEAN_ALL                                                       \
        }                                                                                          \
    }

/* Fills the five cells from CALLS or CALLS_ALL on, and the four of csv from IS_OWN or IS_ALL on.
 * The text leaves empty what there was none of. */
void stack_cost_fill(const struct stack_cost *cost, enum report_format format, struct cell *cells,
                     struct cell *csv_cells);

/* A member of the JSON, and a comma. */
void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out);

#endif
