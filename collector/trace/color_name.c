/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/color_name.h"

#include <stddef.h>

#define COLOR_NAME(name, red, green, blue)                                                         \
    _Static_assert(sizeof #name <= COLOR_NAME_BYTES, "a name is short");
#include "trace/color_names.def"
#undef COLOR_NAME

#define COLOR_NAME(name, red, green, blue) {#name, {red, green, blue}},
static const struct {
    const char *name;
    int parts[3];
} colors[] = {
#include "trace/color_names.def"
};
#undef COLOR_NAME

/* The eye tells greens apart better than reds, and these better than blues. */
static int distance(const int *a, const int *b)
{
    static const int weights[] = {3, 4, 2};
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += weights[i] * (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

const char *color_name(uint32_t color)
{
    const int parts[] = {(int)(color >> 16 & 0xff), (int)(color >> 8 & 0xff), (int)(color & 0xff)};
    size_t nearest = 0;
    for (size_t i = 1; i < sizeof colors / sizeof colors[0]; i++)
        if (distance(colors[i].parts, parts) < distance(colors[nearest].parts, parts))
            nearest = i;
    return colors[nearest].name;
}
