/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a library computes and what it must move at least, from its arguments: floating
 * point operations (a multiplication and an addition are two; of complex numbers four times as
 * many), and the bytes of its operands and its result, each counted once. Where an argument is not
 * known, or the number does not fit, the answer is that it is not known.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_FLOPS_H
#define GPUPROF_COLLECTOR_LIBRARY_FLOPS_H

#include <stddef.h>

#include "flops/library_shape.h"

struct library_work {
    bool has_flops;
    bool has_bytes;
    uint8_t type; /* cudaDataType of both factors; LIBRARY_TYPE_NONE: they differ, or not known */
    uint64_t flops;
    uint64_t bytes;
};

/* Of a call of a function that does that (enum api_role). */
struct library_work library_work_of(unsigned does, const struct library_shape *shape);

/* The same of what the text of a LIBRARY_PLAN record says. */
struct library_work library_plan_work(const char *text, size_t bytes);

#endif
