/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cupti.h"

/* Failures asked for by SIMCUPTI_FAIL="function:call=code,...": calls count from 1, * is each. */

enum { FAILURE_COUNT_MAX = 16, NAME_BYTES = 64 };

static struct {
    char name[NAME_BYTES];
    uint64_t call; /* 0: each */
    uint64_t count;
    int code;
} failures[FAILURE_COUNT_MAX];
static unsigned failure_count;

__attribute__((constructor)) static void failures_read(void)
{
    const char *text = getenv("SIMCUPTI_FAIL");
    for (; text && *text && failure_count < FAILURE_COUNT_MAX; failure_count++) {
        char call[24];
        if (sscanf(text, "%63[^:]:%23[^=]=%d", failures[failure_count].name, call,
                   &failures[failure_count].code) != 3)
            cupti_misuse("SIMCUPTI_FAIL: cannot use \"%s\"", text);
        failures[failure_count].call = strtoull(call, NULL, 10);
        const char *comma = strchr(text, ',');
        text = comma ? comma + 1 : NULL;
    }
}

CUptiResult cupti_failure(const char *function)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (unsigned i = 0; i < failure_count; i++) {
        if (strcmp(failures[i].name, function) != 0)
            continue;
        uint64_t count = __atomic_add_fetch(&failures[i].count, 1, __ATOMIC_RELAXED);
        if (!failures[i].call || failures[i].call == count)
            result = failures[i].code;
    }
    return result;
}
