/* SPDX-License-Identifier: Apache-2.0 */
/* Baseline files, for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_BASELINE_H
#define GPUPROF_TEST_FUZZ_BASELINE_H

#include <stddef.h>
#include <stdint.h>

/* Reads the file, compares its runs with themselves, and prints that in every form; aborts if what
 * is written of it is not read as the same runs. */
void fuzz_baseline(const char *text, size_t length);

#endif
