/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpuprof memory` has found on paper. */
#ifndef GPUPROF_COLLECTOR_MEMORY_PRINT_H
#define GPUPROF_COLLECTOR_MEMORY_PRINT_H

#include <stdio.h>

#include "memory/memory_rows.h"

struct memory_view {
    const char *tables; /* names, with commas between; NULL: those that tell most, or all */
    bool is_full;
    bool is_piece; /* of a piece of the time: not all tables are */
    struct table_view how;
};

/* EXIT_OK, or EXIT_USAGE after one line: an unknown table or column, or no table of a piece. */
enum exit_code memory_view_check(const struct memory_view *v, enum report_format format);

/* Its tables as csv: see tables_write_csv. */
enum exit_code memory_write_csv(const struct memory_rows *r, const struct memory_view *v,
                                const char *path, uint64_t *room);

/* As text or JSON. 0 or GPUPROF_NO_MEMORY. */
int memory_print(const struct memory_rows *r, const struct memory_view *v,
                 enum report_format format, FILE *out);

/* The first screen: what there was not enough of, the peaks, who held them, what grows, what is
 * hidden; each line as wide as the terminal. (memory_overview.c) */
void memory_overview_print(const struct memory_rows *r, const struct table_view *how, FILE *out);

#endif
