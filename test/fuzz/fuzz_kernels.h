/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels of two sides, for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_KERNELS_H
#define GPUPROF_TEST_FUZZ_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Each line of `data` is a kernel: '<' or '>' for its side, its name, and behind tabs its operator,
 * library call, range and line. Matches the sides; aborts if the rows' names and sums are not those
 * of the kernels, if a row's kind is not, or if the sides exchanged come to other rows.
 */
void fuzz_kernels(const uint8_t *data, size_t size);

#endif
