/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of sums that a report is made of. Each is declared in one file of this folder, and
 * has its row in analyses.def; query/sums.h says what a declaration is.
 */
#ifndef GPUPROF_COLLECTOR_ANALYSES_H
#define GPUPROF_COLLECTOR_ANALYSES_H

#include "query/report_parts.h"
#include "query/sums.h"

#define TABLES(...)
#define ANALYSIS(info) ANALYSIS_##info,
enum analysis {
#include "analyse/analyses.def"
    ANALYSES_COUNT
};
#undef ANALYSIS

#define ANALYSIS(info) extern const struct sums_info info;
#include "analyse/analyses.def"
#undef ANALYSIS

#define ANALYSIS(info) &info,
static const struct sums_info *const analyses[] = {
#include "analyse/analyses.def"
};
#undef ANALYSIS
#undef TABLES

#endif
