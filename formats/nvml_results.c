/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml_results.h"

#include <stddef.h>

static const struct {
    int number;
    const char *text;
} results[] = {
#define NVML_RESULT(name, number, text) {number, text},
#include "nvml_results.def"
};

const char *nvml_result_text(int result)
{
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i].number == result)
            return results[i].text;
    return "an error that gpuprof does not know";
}
