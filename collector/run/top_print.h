/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpuprof top` has found, as text for a terminal, JSON (a line each time) or OpenMetrics. */
#ifndef GPUPROF_COLLECTOR_TOP_PRINT_H
#define GPUPROF_COLLECTOR_TOP_PRINT_H

#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "run/ctl_folder.h"

enum top_state {
    TOP_RECORDING,
    TOP_STOPPED, /* by the program or gpuprof ctl */
    TOP_BETWEEN, /* its windows */
    TOP_SILENT,  /* it has not answered, lately or ever */
    TOP_ENDED,
};

struct top_row {
    const struct ctl_process *process; /* its status counts unless the state is TOP_SILENT, ... */
    enum top_state state;              /* ... or it has ended */
    /* Since the answer before this one; NAN: not known. */
    double calls_per_second;
    double launches_per_second;
    double busy_share; /* of its devices' time */
};

/* The row's figure; CONTROL_UNKNOWN: it has none. */
uint64_t top_figure(const struct top_row *row, enum control_figure which);

/* Rows stand by rank, then by process; `width` of a terminal in columns and `height` in lines, 0:
 * any. The caller looks after the stream's errors. */
void top_print(FILE *out, enum top_format format, const struct top_row *rows, uint32_t count,
               uint32_t width, uint32_t height);

#endif
