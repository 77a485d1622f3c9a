/* SPDX-License-Identifier: Apache-2.0 */
/* The units of sizes and times, as users write them. */
#ifndef GPUPROF_FORMATS_UNIT_WORD_H
#define GPUPROF_FORMATS_UNIT_WORD_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of "K", "KB" or "KiB", which are the same, and of M, G and T, in any case: 1024 of the
 * one before. 0: it is none of them. */
uint64_t unit_bytes(const char *word, size_t length);

/* The nanoseconds of "ns", "us", "ms", "s", "m" or "min", and "h"; 0. */
uint64_t unit_ns(const char *word, size_t length);

#endif
