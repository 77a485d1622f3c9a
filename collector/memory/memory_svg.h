/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time, and a flame graph of who held it, as one SVG file (flame.h). */
#ifndef GPUPROF_COLLECTOR_MEMORY_SVG_H
#define GPUPROF_COLLECTOR_MEMORY_SVG_H

#include "memory/memory_rows.h"
#include "output/output.h"

/* Symbols from `symbols` (symbols.h); `is_piece`: the report is of a piece of the time, which the
 * title names. 0 or GPUPROF_NO_MEMORY. */
int memory_svg_write(const struct memory_rows *r, bool is_piece, const char *symbols,
                     struct output *out);

#endif
