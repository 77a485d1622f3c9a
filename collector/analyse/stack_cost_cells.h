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
    CALLS, HOST, WORKS, GPU, BYTES, CALLS_ALL, HOST_ALL, WORKS_ALL, GPU_ALL, BYTES_ALL, COLUMNS

/* Fills the five cells from CALLS or CALLS_ALL on. The text leaves empty what there was none of. */
void stack_cost_fill(const struct stack_cost *cost, enum report_format format, struct cell *cells);

/* A member of the JSON, and a comma. */
void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out);

#endif
