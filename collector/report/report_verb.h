/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `report`, and the summary at the end of `run`. */
#ifndef GPUPROF_COLLECTOR_REPORT_VERB_H
#define GPUPROF_COLLECTOR_REPORT_VERB_H

#include <stdint.h>
#include <stdio.h>

#include "base/message.h"
#include "base/options.h"
#include "report/report.h"
#include "report/report_options.h"

extern const struct option report_options[];

/*
 * Writes about ten lines on the recordings in `paths` (folders, or files) to `out`: wall time,
 * processes, calls, the functions with most time, bytes copied, losses. The walk through the events
 * ends after `walk_ns_max`; the figures then are of what was read, and that is
 * said. With EXIT_USAGE (no recording there) it has written nothing.
 */
enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max,
                              const struct next_words *next, FILE *out);

/* The verb `report`; `page`, which is of a layer above, writes it as HTML. */
enum exit_code report_run(const struct options *options, report_page_fn *page);

#endif
