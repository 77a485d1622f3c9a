/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the floating-point operations of an operator from its inputs, like with_flops of
 * torch.profiler and like torch.utils.flop_counter. Not known if the inputs are not known, or do
 * not fit the formula.
 */
#ifndef GPUPROF_COLLECTOR_OP_FLOPS_H
#define GPUPROF_COLLECTOR_OP_FLOPS_H

#include <stdbool.h>
#include <stdint.h>

struct op_formula {
    const char *name;
    uint8_t profiler; /* enum flop_formula; 0: torch.profiler does not count the operator */
    uint8_t counter;  /* likewise for flop_counter */
    uint8_t first;    /* index of the first input */
};

struct op_flops {
    bool is_profiled; /* `profiler` is known */
    bool is_counted;  /* `counter` is known */
    uint64_t profiler;
    uint64_t counter;
    uint8_t type; /* type of both factors, with `counter`; OP_TYPE_MIXED: they differ */
};

#define OP_TYPE_MIXED 255

/* The operator's formula, or NULL. */
const struct op_formula *op_formula_of(const char *name);

/* The operations of one call with the inputs of an OP_INPUTS record. */
struct op_flops op_flops_of(const struct op_formula *f, const char *bytes, uint32_t byte_count);

#endif
