/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of memory_tables.c: the tables of what failed and of what is in no book; cells of all. */
#ifndef GPUPROF_COLLECTOR_MEMORY_TROUBLE_H
#define GPUPROF_COLLECTOR_MEMORY_TROUBLE_H

#include "memory/memory_rows.h"

/* Of a table whose source is a struct memory_rows. */
const struct memory_report *memory_of_table(const struct table *t);
struct cell memory_owner_cell(const struct table *t, uint32_t origin);

/* "device 1, rank 0: train.py (host, pid 12)" */
struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where);

/* Since the first event. */
struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns);

/* "tensor", "device" or "host"; "+1.5 MiB", or the number. */
const char *memory_where_text(enum memory_where where);
struct cell memory_change_cell(double bytes, enum report_format format);

enum {
    E_NAME,
    E_PLACE,
    E_AT,
    E_WANTED,
    E_LIVE,
    E_RESERVED,
    E_FREE,
    E_IN_HOLES,
    E_HOLE,
    E_TOTAL,
    E_ON_DEVICE,
    E_OWNERS,
    E_ADVICE_ID,
    E_ADVICE,
    E_COLUMNS
};

enum { H_NAME, H_PLACE, H_AT, H_USED, H_HIDDEN, H_OTHERS, H_BEFORE, H_BLAMED_NS, H_BY, H_COLUMNS };

extern const struct column memory_oom_columns[E_COLUMNS];
extern const struct column memory_hidden_columns[H_COLUMNS];

/* As struct table_info has them. */
void memory_ooms_begin(struct table *t, enum report_format format);
void memory_fill_oom(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells);
void memory_hidden_begin(struct table *t, enum report_format format);
void memory_fill_hidden(const struct table *t, uint32_t index, enum report_format format,
                        struct cell *cells);

#endif
