/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/cuda_error.h"

#include <stddef.h>
#include <stdlib.h>

#include "api/api.h"

struct cuda_error {
    int32_t code;
    const char *runtime;
    const char *driver;
};

static const struct cuda_error errors[] = {
#define CUDA_ERROR(code, runtime, driver) {code, runtime, driver},
#include "symbol/cuda_errors.def"
#undef CUDA_ERROR
};

static int compare_codes(const void *left, const void *right)
{
    int32_t a = ((const struct cuda_error *)left)->code;
    int32_t b = ((const struct cuda_error *)right)->code;
    return a < b ? -1 : a > b;
}

const char *cuda_error_name(unsigned domain, int32_t code)
{
    struct cuda_error key = {.code = code};
    const struct cuda_error *found =
        bsearch(&key, errors, sizeof errors / sizeof errors[0], sizeof errors[0], compare_codes);
    if (!found)
        return NULL;
    const char *name = domain == API_DRIVER ? found->driver : found->runtime;
    return name[0] ? name : NULL;
}
