/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/device_peak.h"

#include <stddef.h>
#include <string.h>

/* c10::ScalarType */
enum { HALF = 5, FLOAT = 6, DOUBLE = 7, BFLOAT16 = 15, FLOAT8_E5M2 = 23, FLOAT8_E4M3 = 24 };

static const struct device_peaks peaks[] = {
#define DEVICE_PEAK(name, double, single, tf32, half, bfloat16, float8, int8, bandwidth)           \
    {name, double, single, tf32, half, bfloat16, float8, int8, bandwidth},
#include "analyse/device_peaks.def"
};

const struct device_peaks *device_peaks_of(const char *name)
{
    for (unsigned i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
        if (strcmp(peaks[i].name, name) == 0)
            return &peaks[i];
    return NULL;
}

uint64_t device_peaks_number(const char *name)
{
    const struct device_peaks *p = device_peaks_of(name);
    return p ? (uint64_t)(p - peaks) + 2 : 1;
}

const struct device_peaks *device_peaks_at(uint64_t number)
{
    return number >= 2 && number - 2 < sizeof peaks / sizeof peaks[0] ? &peaks[number - 2] : NULL;
}

uint32_t device_peak(const char *name, uint8_t type)
{
    const struct device_peaks *p = device_peaks_of(name);
    if (!p)
        return 0;
    switch (type) {
    case DOUBLE: return p->double_;
    case FLOAT: return p->tf32 ? 0 : p->single; /* it may have used TF32 or not */
    case HALF: return p->half;
    case BFLOAT16: return p->bfloat16;
    case FLOAT8_E5M2:
    case FLOAT8_E4M3: return p->float8;
    default: return 0;
    }
}
