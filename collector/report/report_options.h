/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of `report` say; report_verb.c declares them. */
#ifndef GPUPROF_COLLECTOR_REPORT_OPTIONS_H
#define GPUPROF_COLLECTOR_REPORT_OPTIONS_H

#include "base/options.h"
#include "table/table.h"

/* Rows of ranges that are groups: scripts look for rows by their names. */
enum report_groups { GROUPS_IN_TEXT, GROUPS_ALWAYS, GROUPS_NEVER };

/* What the options say beyond those of all verbs that read recordings. */
struct report_options {
    struct table_options table;
    enum report_by by;
    enum report_groups groups;
    bool is_mine;        /* the user's own lines only (own_line.h) */
    const char *source;  /* a folder; NULL: none */
    double step_samples; /* 0: not said */
    bool is_partial;
    const char *share; /* I/N; NULL: as the launcher says */
    bool is_combined;
};

#endif
