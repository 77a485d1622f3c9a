/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument words of a call that CUPTI reports, the same as the wrapper of its row in api.def
 * records. A callback receives its arguments as a structure with one member per parameter, in order
 * and with their types. The rows define that structure, too.
 */
#ifndef GPUPROF_INJECT_CUPTI_PARAMS_H
#define GPUPROF_INJECT_CUPTI_PARAMS_H

#include <stdbool.h>

#include "api/api.h"
#include "base/macro_each.h"

#define CUPTI_PARAMS_MEMBER(declaration) declaration;

/* The structure of one row of api.def; test/abi compares it with CUPTI's. */
#define CUPTI_PARAMS(id, params, names)                                                            \
    struct params_##id {                                                                           \
        MACRO_EACH_IN(names, CUPTI_PARAMS_MEMBER, params)                                          \
    };

/*
 * Writes the words of `params`, a callback's functionParams, to words[]. Returns their number,
 * which is the row's arg_count. Words that only a successful call defines are 0 unless `succeeded`:
 * pass false at entry, and at exit whether it succeeded. Reads only what the wrapper would read.
 * Called from the callback, on the thread of the call.
 */
unsigned cupti_params_words(enum api_code code, const void *params, bool succeeded,
                            uint64_t words[API_ARGS_MAX]);

#endif
