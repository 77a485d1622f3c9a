/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument words of a call that CUPTI reports, the same that the wrapper of its row in api.def
 * takes. A callback gets its arguments as a structure, one member a parameter, in their order and
 * with their types; the rows give that structure as well.
 */
#ifndef GPUPROF_INJECT_CUPTI_PARAMS_H
#define GPUPROF_INJECT_CUPTI_PARAMS_H

#include <stdbool.h>

#include "api/api.h"
#include "base/macro_each.h"

#define CUPTI_PARAMS_MEMBER(declaration) declaration;

/* The structure of one row of api.def; test/abi holds it against CUPTI's own. */
#define CUPTI_PARAMS(id, params, names)                                                            \
    struct params_##id {                                                                           \
        MACRO_EACH_IN(names, CUPTI_PARAMS_MEMBER, params)                                          \
    };

/*
 * Puts the words of `params`, a callback's functionParams, into words[]; returns how many, which is
 * the row's arg_count. Words that only a call that has succeeded can tell are 0 unless `succeeded`:
 * so false at entry, and at exit what the result says. Reads what the wrapper would read, and
 * nothing else; from the callback, on the thread of the call.
 */
unsigned cupti_params_words(enum api_code code, const void *params, bool succeeded,
                            uint64_t words[API_ARGS_MAX]);

#endif
