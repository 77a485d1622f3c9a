/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen of `gpuprof memory`: what there was not enough of, the peaks, who held them,
 * what grows, what is hidden; at most OVERVIEW_LINES_MAX lines, each as wide as the terminal.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_OVERVIEW_H
#define GPUPROF_COLLECTOR_MEMORY_OVERVIEW_H

#include <stdio.h>

#include "memory/memory_rows.h"

#define OVERVIEW_LINES_MAX 24

void memory_overview_print(const struct memory_rows *r, const struct table_view *how, FILE *out);

#endif
