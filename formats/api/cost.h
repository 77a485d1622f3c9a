/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of gpuprof's own cost (costs.def), and the steps that reduce it. */
#ifndef GPUPROF_FORMATS_COST_H
#define GPUPROF_FORMATS_COST_H

#include <stdint.h>

enum cost_class {
#define COST(NAME, ...) COST_##NAME,
#include "api/costs.def"
#undef COST
    COST_COUNT
};

enum cost_place { COST_PLACE_CALLER, COST_PLACE_EXACT, COST_PLACE_OWN };

struct cost_info {
    const char *name;
    enum cost_place place;
    const char *meaning;
};

extern const struct cost_info cost_infos[COST_COUNT];

/* Steps to stay within --overhead-max, as numbered in STEP_DOWN records; ladder.c has their
 * order. */
enum ladder_step {
    LADDER_STACKS,
    LADDER_QUERIES,
    LADDER_CALLBACKS,
    LADDER_TENTH,
    LADDER_HUNDREDTH,
    LADDER_CUPTI,
    LADDER_STEP_COUNT,
    LADDER_BOTTOM =
        LADDER_STEP_COUNT, /* nothing is left to switch off: the budget is not attainable */
    LADDER_SHAPES,         /* input shapes of PyTorch's operators */
    LADDER_OPERATORS,
    LADDER_OP_STACKS, /* stacks of operators */
    LADDER_ARGUMENTS, /* arguments of library calls */
    LADDER_LIBRARIES,
    LADDER_CODE_COUNT,
};

/* Returns a text such as "stacks off"; NULL: unknown step. */
const char *ladder_step_text(unsigned step);

#endif
