/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuprof itself has cost, on paper: all processes of a report together. */
#ifndef GPUPROF_COLLECTOR_COST_REPORT_H
#define GPUPROF_COLLECTOR_COST_REPORT_H

#include <stdio.h>

#include "recording.h"

/* Nothing where it was not measured, as in older recordings and those of a moment. */
void cost_report_print_text(const struct recording *rec, FILE *out);
void cost_report_print_csv(const struct recording *rec, FILE *out);

/* The member "own_cost", behind a comma. */
void cost_report_print_json(const struct recording *rec, FILE *out);

/* A line for the summary of a run, if anything was given up. */
void cost_report_print_summary(const struct recording *rec, FILE *out);

#endif
