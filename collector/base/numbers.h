/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing numbers and times. */
#ifndef GPUPROF_COLLECTOR_NUMBERS_H
#define GPUPROF_COLLECTOR_NUMBERS_H

#include <stdint.h>

static inline uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How long both times last. */
static inline uint64_t overlap_ns(uint64_t begin_ns, uint64_t end_ns, uint64_t other_begin_ns,
                                  uint64_t other_end_ns)
{
    uint64_t from_ns = max_of(begin_ns, other_begin_ns), to_ns = min_of(end_ns, other_end_ns);
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

#endif
