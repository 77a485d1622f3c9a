/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: per function count, times and bytes over all recordings given. Memory does not
 * depend on the number of calls: quantiles come from a log-linear histogram (histogram.h).
 */
#ifndef GPUPROF_COLLECTOR_REPORT_H
#define GPUPROF_COLLECTOR_REPORT_H

#include <stdio.h>

/*
 * Writes about ten lines on the recordings in `dir` to `out`: wall time, processes, calls, the
 * functions with most time, bytes copied, losses. Above REPORT_SUMMARY_BYTES_MAX of stream files
 * only block headers are read. Returns an enum exit_code; with EXIT_USAGE (no recording there) it
 * has written nothing.
 */
#define REPORT_SUMMARY_BYTES_MAX (256ull << 20)
int report_summary(const char *dir, FILE *out);

#endif
