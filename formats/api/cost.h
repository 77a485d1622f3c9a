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

/* Arguments of a COST record. */
enum cost_argument { COST_ARG_COUNT, COST_ARG_TIMED, COST_ARG_TIMED_NS, COST_ARG_TOTAL_NS };

/* Arguments of a COST_SUM record. */
enum cost_sum_argument {
    COST_SUM_THREADS,
    COST_SUM_WALL_NS,
    COST_SUM_COST_NS,
    COST_SUM_WORST_THREAD,
    COST_SUM_WORST_WALL_NS,
    COST_SUM_WORST_COST_NS,
    COST_SUM_OWN_NS,
    COST_SUM_SPAN_NS,
    COST_SUM_IS_SHARED,
    COST_SUM_BUDGET,
};

/* What is given up, in this order, to stay within --overhead-max; codes of STEP_DOWN records. */
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
    LADDER_CODE_COUNT,
};

/* Arguments of a STEP_DOWN record. Shares are parts per million. */
enum step_down_argument { STEP_DOWN_SHARE, STEP_DOWN_BUDGET };

/* "stacks off"; of LADDER_BOTTOM that the budget is not attainable. NULL: not known. */
const char *ladder_step_text(unsigned step);

#endif
