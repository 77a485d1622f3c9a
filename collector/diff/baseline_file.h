/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A baseline: runs as a small file, which can be kept in a repository. JSON, a line for each run
 * and each kernel, so that its changes can be read:
 *
 *     {"gpuprof_baseline": 1,
 *     "runs": [
 *     {"name": .., "steps": .., "warm_up": .., "energy_steps": .., "cost": .., "metrics": {KEY: ..,
 *      ..}, "facts": {..}},
 *     ..],
 *     "kernel_steps": ..,
 *     "kernels": [
 *     {"count": .., "ns": .., "name": .., "operator": .., "library": .., "range": .., "line": ..},
 *     ..]}
 *
 * with the keys of run_metrics.def and run_facts.def; what a run does not know is not there, and
 * what a reader does not know it passes by. A value that cannot be is refused. Kernels are those of
 * all runs together, those that took longest, BASELINE_KERNELS_MAX at most. A reader takes its own
 * version only.
 *
 * Memory: a file is read whole, BASELINE_BYTES_MAX at most, and its texts are kept.
 */
#ifndef GPUPROF_COLLECTOR_BASELINE_FILE_H
#define GPUPROF_COLLECTOR_BASELINE_FILE_H

#include <stdio.h>

#include "diff/run_summary.h"

#define BASELINE_VERSION     1
#define BASELINE_BYTES_MAX   (16u << 20)
#define BASELINE_KERNELS_MAX 500
#define BASELINE_NAME_BYTES  128
#define BASELINE_FOLDER      ".gpuprof/baselines"

/* Writes the set, whose kernels it brings into another order. */
void baseline_write(struct run_set *s, FILE *out);

/* Adds what the text says. 0; GPUPROF_NOT_OURS, GPUPROF_VERSION, GPUPROF_DAMAGED (`why` says what
 * it is, where), GPUPROF_LIMIT or GPUPROF_NO_MEMORY. */
#define BASELINE_WHY_BYTES 160
int baseline_read(struct run_set *s, const char *text, size_t length, char why[BASELINE_WHY_BYTES]);

#endif
