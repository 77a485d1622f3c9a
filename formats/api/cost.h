/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuprof's own cost is made of: the rows of costs.def, and the steps against too much of it.
 */
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

/* What is given up to stay within --overhead-max, as it is numbered in STEP_DOWN records; in which
 * order says ladder.c. */
enum ladder_step {
    LADDER_STACKS,
    LADDER_QUERIES,
    LADDER_CALLBACKS,
    LADDER_TENTH,
    LADDER_HUNDREDTH,
    LADDER_CUPTI,
    LADDER_STEP_COUNT,
    LADDER_BOTTOM =
        LADDER_STEP_COUNT, /* nothing is left to give up: the budget is not attainable */
    LADDER_SHAPES,         /* of PyTorch's operators */
    LADDER_OPERATORS,
    LADDER_OP_STACKS, /* of those */
    LADDER_ARGUMENTS, /* of libraries' calls */
    LADDER_LIBRARIES,
    LADDER_CODE_COUNT,
};

/* "stacks off"; of LADDER_BOTTOM that the budget is not attainable. NULL: not known. */
const char *ladder_step_text(unsigned step);

#endif
