/* SPDX-License-Identifier: Apache-2.0 */
/* What the recording lost, and what else it says of itself: a row for each kind. */
#ifndef GPUPROF_COLLECTOR_LOSS_REPORT_H
#define GPUPROF_COLLECTOR_LOSS_REPORT_H

#include "table/table.h"

/* Of a struct report. JSON has it in a form of its own, whatever is asked for, and so it has no
 * key; the text ends with it. In csv it is one of the tables. */
extern const struct table_info losses_table;

#endif
