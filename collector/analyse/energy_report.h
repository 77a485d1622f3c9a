/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Energy of the devices of each process: in the run, in a step, and in long ranges (an epoch, a
 * validation). Long is at least the counter's period. A figure is an estimate with bounds, from the
 * counter's steps (device_curve.h). Shorter steps get a mean over all of them, which shares the
 * bounds. There is no figure if its bounds are wider than itself.
 *
 * Memory: 32 bytes a range, ENERGY_WINDOWS_MAX of them; later ones are only counted.
 */
#ifndef GPUPROF_COLLECTOR_ENERGY_REPORT_H
#define GPUPROF_COLLECTOR_ENERGY_REPORT_H

#include "resolve/device_curve.h"
#include "resolve/event_walk.h"
#include "table/table.h"

#define ENERGY_WINDOWS_MAX (1u << 16)
#define ENERGY_WINDOW_NS   20000000u /* no known counter changes more often */

enum energy_kind { ENERGY_OF_RUN, ENERGY_OF_STEPS, ENERGY_OF_RANGE };

struct energy_window {
    uint64_t begin_ns;
    uint64_t end_ns;
    const struct process *process;
    const struct kernel_name *text;
};

struct energy_row {
    enum energy_kind kind;
    const struct process *process; /* NULL: all processes with such a range */
    const struct kernel_name *text;
    enum curve_known known; /* why there is no figure */
    bool at_least;          /* a counter restarted; earlier energy is lost */
    uint64_t count;         /* steps or ranges in `mj` */
    uint64_t left_out_ns;
    uint64_t left_out; /* without known energy: too short, or not between two readings */
    uint64_t ns;
    double mj;
    double error_mj;
};

struct device_report;

struct energy_report {
    const struct device_report *devices; /* a view */
    struct energy_window *windows;       /* owned */
    uint32_t window_count;
    uint64_t beyond;         /* ranges beyond the limit */
    struct energy_row *rows; /* owned */
    uint32_t count;
};

/* Its source is a struct energy_report or NULL. */
extern const struct table_info energy_table;

#endif
