/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api_error.h"

#include <stddef.h>

#include "api/api.h"

static const struct {
    int32_t code;
    uint8_t domain;
    const char *name;
} errors[] = {
#define API_ERROR(domain, code, name) {code, API_##domain, name},
#include "api/api.def"
};

const char *api_error_name(unsigned domain, int32_t code)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code && errors[i].domain == domain && errors[i].name[0])
            return errors[i].name;
    return NULL;
}
