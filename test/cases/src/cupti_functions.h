/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CUPTI_FUNCTIONS_H
#define TEST_CUPTI_FUNCTIONS_H

/* CUPTI's functions as pointers of their names, out of the library that CUPTI_LIB names. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_cupti_abi.h"

#define FUNCTION(name, params) static CUptiResult(*name) params;
SIM_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION

static void library_load(void)
{
    const char *name = getenv("CUPTI_LIB");
    void *library = dlopen(name, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define FUNCTION(function, params)                                                                 \
    function = (CUptiResult(*) params)(uintptr_t)dlsym(library, #function);                        \
    if (!function)                                                                                 \
        printf("missing %s\n", #function);
    SIM_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
}

static unsigned record_bytes(int kind)
{
    uint64_t buffer[64];
    void *record = NULL;
    for (unsigned i = 0; i < 64; i++)
        buffer[i] = (uint64_t)kind;
    if (cuptiActivityGetNextRecord((uint8_t *)buffer, sizeof buffer, &record) ||
        cuptiActivityGetNextRecord((uint8_t *)buffer, sizeof buffer, &record))
        return 0;
    return (unsigned)((char *)record - (char *)buffer);
}

#endif
