/* SPDX-License-Identifier: Apache-2.0 */
#include "report/device_peak.h"

#include <string.h>

/* c10::ScalarType */
enum { HALF = 5, FLOAT = 6, DOUBLE = 7, BFLOAT16 = 15, FLOAT8_E5M2 = 23, FLOAT8_E4M3 = 24 };

static const struct {
    const char *name;
    uint32_t double_, float_, half, bfloat16, float8;
} peaks[] = {
#define DEVICE_PEAK(name, double, float, half, bfloat16, float8)                                   \
    {name, double, float, half, bfloat16, float8},
#include "report/device_peaks.def"
};

uint32_t device_peak(const char *name, uint8_t type)
{
    for (unsigned i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        if (strcmp(peaks[i].name, name) != 0)
            continue;
        switch (type) {
        case DOUBLE: return peaks[i].double_;
        case FLOAT: return peaks[i].float_;
        case HALF: return peaks[i].half;
        case BFLOAT16: return peaks[i].bfloat16;
        case FLOAT8_E5M2:
        case FLOAT8_E4M3: return peaks[i].float8;
        default: return 0;
        }
    }
    return 0;
}
