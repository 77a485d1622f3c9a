/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of sums that a report is made of. Each is declared in one file of this folder, and
 * has its row here; query/sums.h says what a declaration is.
 */
#ifndef GPUPROF_COLLECTOR_ANALYSES_H
#define GPUPROF_COLLECTOR_ANALYSES_H

#include "query/sums.h"
#include "report/report_parts.h"

#define ANALYSES(X)                                                                                \
    X(functions_sums)                                                                              \
    X(threads_sums)

#define ANALYSIS_NUMBER(info) ANALYSIS_##info,
enum analysis { ANALYSES(ANALYSIS_NUMBER) ANALYSES_COUNT };

#define ANALYSIS_DECLARE(info) extern const struct sums_info info;
ANALYSES(ANALYSIS_DECLARE)

#define ANALYSIS_ADDRESS(info) &info,
static const struct sums_info *const analyses[] = {ANALYSES(ANALYSIS_ADDRESS)};

#endif
