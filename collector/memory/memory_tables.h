/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `gpuprof memory`, whose source is a struct memory_rows, and cells of several. */
#ifndef GPUPROF_COLLECTOR_MEMORY_TABLES_H
#define GPUPROF_COLLECTOR_MEMORY_TABLES_H

#include <stdio.h>

#include "memory/memory_rows.h"

extern const struct table_info memory_ooms_table, memory_hidden_table; /* memory_trouble.c */
extern const struct table_info memory_steps_table, memory_ranges_table, memory_resident_table,
    memory_curve_table; /* memory_times.c */

/* The first screen: what there was not enough of, the peaks, who held them, what grows, what is
 * hidden; each line as wide as the terminal. (memory_overview.c) */
void memory_overview_print(const struct memory_rows *r, const struct table_view *how, FILE *out);

/* As struct table_rows has it: the struct memory_report. */
const void *memory_of_table(const struct table *t);

struct cell memory_owner_cell(const struct table *t, uint32_t origin);

/* "device 1, rank 0: train.py (host, pid 12)" */
struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where);

/* Since the first event. */
struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns);

/* "tensor", "device" or "host"; "+1.5 MiB", or the number. */
const char *memory_where_text(enum memory_where where);
struct cell memory_change_cell(double bytes, enum report_format format);

#endif
