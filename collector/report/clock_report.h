/* SPDX-License-Identifier: Apache-2.0 */
/* How the clocks of several hosts were put on one (host_clocks.h): a row for each host. */
#ifndef GPUPROF_COLLECTOR_CLOCK_REPORT_H
#define GPUPROF_COLLECTOR_CLOCK_REPORT_H

#include "table/table.h"

/* Of a struct report. */
extern const struct table_info clocks_table;

#endif
