/* SPDX-License-Identifier: Apache-2.0 */
/* What the recording lost, and what else it says of itself: a row for each kind. */
#ifndef GPUPROF_COLLECTOR_LOSS_REPORT_H
#define GPUPROF_COLLECTOR_LOSS_REPORT_H

#include "table/table.h"

/* Of a struct report. JSON and csv have it in a form of their own, whatever is asked for, and so it
 * has no key; the text ends with it. */
extern const struct table_info losses_table;

#endif
