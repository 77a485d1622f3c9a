/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAILURE_COUNT_MAX = 64, CODE_HANG = -1 };

static struct sim_failure failures[FAILURE_COUNT_MAX];
static unsigned failure_count;

bool sim_failure_init(const char *text)
{
    char *copy = text && *text ? strdup(text) : NULL;
    char *saved = NULL;
    if (!copy)
        return false;
    for (char *item = strtok_r(copy, ",", &saved); item; item = strtok_r(NULL, ",", &saved)) {
        char *colon = strchr(item, ':');
        char *equals = colon ? strchr(colon, '=') : NULL;
        if (!equals || failure_count == FAILURE_COUNT_MAX) {
            fprintf(stderr, "simcuda: SIMCUDA_FAIL: cannot use \"%s\"\n", item);
            continue;
        }
        struct sim_failure *failure = &failures[failure_count++];
        failure->name = item;
        failure->name_bytes = (size_t)(colon - item);
        failure->call_number = colon[1] == '*' ? 0 : strtoull(colon + 1, NULL, 10);
        failure->code = strcmp(equals, "=hang") == 0 ? CODE_HANG : atoi(equals + 1);
    }
    return failure_count > 0;
}

/* _v2, _v3 ... _ptsz, _ptds in that order. */
static bool is_variant_suffix(const char *suffix)
{
    if (suffix[0] == '_' && suffix[1] == 'v' && suffix[2] >= '2' && suffix[2] <= '9')
        suffix += 3;
    return !*suffix || strcmp(suffix, "_ptsz") == 0 || strcmp(suffix, "_ptds") == 0;
}

const struct sim_failure *sim_failure_find(const char *symbol)
{
    for (unsigned i = 0; i < failure_count; i++)
        if (strncmp(symbol, failures[i].name, failures[i].name_bytes) == 0 &&
            is_variant_suffix(symbol + failures[i].name_bytes))
            return &failures[i];
    return NULL;
}

int sim_failure_code(struct sim_symbol *symbol)
{
    uint64_t number = __atomic_add_fetch(&symbol->call_count, 1, __ATOMIC_RELAXED);
    int code = 0;
    for (unsigned i = 0; i < failure_count; i++) {
        const struct sim_failure *failure = &failures[i];
        if (strncmp(symbol->name, failure->name, failure->name_bytes) == 0 &&
            is_variant_suffix(symbol->name + failure->name_bytes) &&
            (failure->call_number == 0 || failure->call_number == number))
            code = failure->code;
    }
    while (code == CODE_HANG)
        pause();
    return code;
}
