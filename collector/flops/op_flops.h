/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floating point operations of an operator, from what it was called with: as torch.profiler's
 * with_flops counts them, and as torch.utils.flop_counter does. Where the inputs are not known, or
 * not of the form that a formula is for, the answer is that it is not known.
 */
#ifndef GPUPROF_COLLECTOR_OP_FLOPS_H
#define GPUPROF_COLLECTOR_OP_FLOPS_H

#include <stdbool.h>
#include <stdint.h>

struct op_formula;

struct op_flops {
    bool is_profiled; /* `profiler` is known */
    bool is_counted;  /* `counter` is */
    uint64_t profiler;
    uint64_t counter;
    uint8_t type; /* of both factors, where `counter` is known; OP_TYPE_MIXED: they differ */
};

#define OP_TYPE_MIXED 255

/* The operator's row of op_flops.def, or NULL. */
const struct op_formula *op_formula_of(const char *name);

/* Who counts it at all? */
bool op_formula_is_profiled(const struct op_formula *f);
bool op_formula_is_counted(const struct op_formula *f);

/* Of one call with these inputs, as an OP_INPUTS record has them. */
struct op_flops op_flops_of(const struct op_formula *f, const char *bytes, uint32_t byte_count);

#endif
