/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the options of `report`; report_verb.c declares them. */
#ifndef GPUPROF_COLLECTOR_REPORT_OPTIONS_H
#define GPUPROF_COLLECTOR_REPORT_OPTIONS_H

#include "base/options.h"
#include "table/table.h"

/* Whether ranges are rows as groups; by default only in text. */
enum report_groups { GROUPS_IN_TEXT, GROUPS_ALWAYS, GROUPS_NEVER };

/* Options that only `report` has. */
struct report_options {
    struct table_options table;
    enum report_by by;
    enum report_groups groups;
    bool is_mine;        /* only the user's own lines (shown_frame.h) */
    const char *source;  /* a folder; NULL: none */
    double step_samples; /* 0: not given */
    bool is_partial;
    const char *share; /* I/N; NULL: taken from the launcher */
    bool is_combined;
};

#endif
