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
 * Writes a summary of about ten lines on the recordings in `paths` (folders or files) to `out`:
 * wall time, processes, calls, the functions with most time, bytes copied, losses. The event walk
 * ends after `walk_ns_max`; the summary then says how much was read. After EXIT_USAGE (no
 * recording) nothing was written.
 */
enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max,
                              const struct next_words *next, FILE *out);

/* Runs the verb `report`. `page` writes HTML; it belongs to a layer above. */
enum exit_code report_run(const struct options *options, report_page_fn *page);

#endif
