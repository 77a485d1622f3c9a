/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cost.h"

#include <stddef.h>

const struct cost_info cost_infos[COST_COUNT] = {
#define COST(NAME, name, place, meaning) {name, COST_PLACE_##place, meaning},
#include "api/costs.def"
#undef COST
};

const char *ladder_step_text(unsigned step)
{
    static const char *const texts[LADDER_CODE_COUNT] = {
        [LADDER_STACKS] = "stacks off",
        [LADDER_QUERIES] = "event records and queries off",
        [LADDER_CALLBACKS] = "CUPTI's callbacks off",
        [LADDER_TENTH] = "1 of 10 launches and copies recorded",
        [LADDER_HUNDREDTH] = "1 of 100 launches and copies recorded",
        [LADDER_CUPTI] = "CUPTI off",
        [LADDER_BOTTOM] = "budget not attainable",
        [LADDER_SHAPES] = "inputs of operators off",
        [LADDER_OPERATORS] = "operators off",
        [LADDER_OP_STACKS] = "stacks of operators off",
        [LADDER_ARGUMENTS] = "arguments of libraries' calls off",
        [LADDER_LIBRARIES] = "libraries' calls off",
    };
    return step < LADDER_CODE_COUNT ? texts[step] : NULL;
}
