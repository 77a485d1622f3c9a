/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the devices of each process burnt: in the run, in a step, and in ranges that are as long as
 * the counter of energy stands still or longer (an epoch, a validation). A figure is an estimate,
 * with the bounds in which the counter's own steps leave it (device_curve.h). Of steps that are
 * shorter there is the mean over all, whose bounds many steps share. Where the bounds are wider
 * than the figure there is none.
 *
 * Memory: 32 bytes for each such range, ENERGY_WINDOWS_MAX of them; later ones are counted.
 */
#ifndef GPUPROF_COLLECTOR_ENERGY_REPORT_H
#define GPUPROF_COLLECTOR_ENERGY_REPORT_H

#include "resolve/device_curve.h"
#include "resolve/event_walk.h"
#include "resolve/steps.h"
#include "table/table.h"

#define ENERGY_WINDOWS_MAX (1u << 16)
#define ENERGY_WINDOW_NS   20000000u /* no counter is known to move more often */
#define ENERGY_ROWS_MAX    4096

enum energy_kind { ENERGY_OF_RUN, ENERGY_OF_STEPS, ENERGY_OF_RANGE };

struct energy_window {
    uint64_t begin_ns;
    uint64_t end_ns;
    const struct process *process;
    const struct kernel_name *text;
};

struct energy_row {
    enum energy_kind kind;
    const struct process *process; /* NULL: of all that had such a range */
    const struct kernel_name *text;
    enum curve_known known; /* why there is no figure */
    bool at_least;          /* a counter began anew, and what was before is lost */
    uint64_t count;         /* steps or ranges that `mj` is of */
    uint64_t left_out_ns;
    uint64_t left_out; /* whose energy is not known: too short, or not between two readings */
    uint64_t ns;
    double mj;
    double error_mj;
};

struct device_report;

struct energy_report {
    const struct device_report *devices; /* a view */
    bool has_ranges;
    struct energy_window *windows; /* owned */
    uint32_t window_count;
    uint64_t beyond;         /* ranges for which there was no room */
    struct energy_row *rows; /* owned */
    uint32_t count;
};

/* Of a struct energy_report, which may be NULL. */
extern const struct table_info energy_table;

#endif
