/* SPDX-License-Identifier: Apache-2.0 */
#include "record/argument_text.h"

#include "api/api.h"

void argument_print(unsigned kind, uint64_t value, FILE *out)
{
    static const char *const kinds[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
    switch (kind) {
    case ARG_BYTES:
    case ARG_COUNT: fprintf(out, "%llu", (unsigned long long)value); break;
    case ARG_DEVICE: fprintf(out, "%d", (int)(int32_t)(uint32_t)value); break;
    case ARG_DIM3:
        fprintf(out, "%u,%u,%u", (unsigned)(uint32_t)value, (unsigned)(value >> 32 & 0xffff),
                (unsigned)(value >> 48));
        break;
    case ARG_KIND:
        if (value < sizeof kinds / sizeof kinds[0])
            fprintf(out, "%s", kinds[value]);
        else
            fprintf(out, "%llu", (unsigned long long)value);
        break;
    default: fprintf(out, "0x%llx", (unsigned long long)value); break;
    }
}
