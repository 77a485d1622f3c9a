/* SPDX-License-Identifier: Apache-2.0 */
/* Topics of help and pages of the manual besides verbs, made from declarations. */
#ifndef GPUPROF_COLLECTOR_TOPICS_H
#define GPUPROF_COLLECTOR_TOPICS_H

#include <stdbool.h>

#include "base/options.h"
#include "cli/help_rows.h"

/* Topics of help besides verbs; the last row has no name. */
struct topic {
    const char *name;
    const char *title;
    const char *about; /* printed above the rows */
    /* Passes on its rows. `column` takes columns of tables, for a page of the manual with whole
     * texts; NULL: the short form of help. */
    void (*each)(const struct verb *const *verbs, item_fn *item, item_fn *column);
};

extern const struct topic topics[];

/* The topic of that name; NULL: none. */
const struct topic *topic_find(const char *name);
void help_topic(const struct verb *const *verbs, const struct topic *topic);
bool help_finding(const char *name); /* false: no such finding */

#endif
