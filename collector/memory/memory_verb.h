/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `memory`, but for the page that it may write, too (page_verb.c). */
#ifndef GPUPROF_COLLECTOR_MEMORY_VERB_H
#define GPUPROF_COLLECTOR_MEMORY_VERB_H

#include "base/options.h"
#include "memory/memory_report.h"
#include "table/table.h"

/* What its options say beyond those of all verbs that read recordings. */
struct memory_options {
    struct table_options table;
    enum memory_by by;
    enum memory_at at;
    double at_seconds; /* of MEMORY_AT_TIME; otherwise -1 */
};

#define MEMORY_OPTIONS_USUAL .table = TABLE_OPTIONS_USUAL, .by = MEMORY_BY_BEST, .at_seconds = -1

extern const struct option memory_options[];
enum exit_code memory_run(const struct options *options);

#endif
