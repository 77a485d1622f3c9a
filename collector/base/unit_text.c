/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unit_text.h"

#include <stdio.h>

#include "base/array.h"

const char *time_text(char *text, uint64_t ns)
{
    double value = (double)ns;
    if (ns < 1000)
        snprintf(text, UNIT_TEXT_BYTES, "%u ns", (unsigned)ns);
    else if (value < 999.9995e3)
        snprintf(text, UNIT_TEXT_BYTES, "%.3f us", value / 1e3);
    else if (value < 999.9995e6)
        snprintf(text, UNIT_TEXT_BYTES, "%.3f ms", value / 1e6);
    else
        snprintf(text, UNIT_TEXT_BYTES, "%.3f s", value / 1e9);
    return text;
}

/* Writes the value in the first unit, each `step` times the last, where it is below `most`. */
static const char *scaled_text(char *text, double value, double step, double most,
                               const char *const *units, const char *format)
{
    for (; value >= most && units[1]; units++)
        value /= step;
    snprintf(text, UNIT_TEXT_BYTES, format, value, *units);
    return text;
}

const char *bytes_text(char *text, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
    if (bytes >= 1024)
        return scaled_text(text, (double)bytes / 1024, 1024, 1023.95, units, "%.1f %s");
    snprintf(text, UNIT_TEXT_BYTES, "%u B", (unsigned)bytes);
    return text;
}

/* 1,234,567 */
const char *count_text(char *text, uint64_t count)
{
    char digits[UNIT_TEXT_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *out = text;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

const char *amount_text(char *text, uint64_t amount)
{
    static const char *const units[] = {"k", "M", "G", "T", "P", "E", NULL};
    if (amount >= 1000)
        return scaled_text(text, (double)amount / 1e3, 1e3, 999.9995, units, "%.3f %s");
    snprintf(text, UNIT_TEXT_BYTES, "%u", (unsigned)amount);
    return text;
}

const char *power_text(char *text, uint64_t mw)
{
    snprintf(text, UNIT_TEXT_BYTES, "%.1f W", (double)mw / 1e3);
    return text;
}

const char *energy_text(char *text, uint64_t mj)
{
    static const char *const units[] = {"J", "kJ", "MJ", "GJ", NULL};
    return scaled_text(text, (double)mj / 1e3, 1e3, 999.9995, units, "%.3f %s");
}

/* ---- several numbers ------------------------------------------------------------------------- */

#define SPANS_SHOWN 8

char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES])
{
    size_t at = 0;
    *text = '\0';
    array_sort_whole(numbers, count);
    for (uint32_t first = 0, end, spans = 0; first < count; first = end, spans++) {
        if (spans == SPANS_SHOWN) {
            snprintf(text + at, NUMBER_SPANS_BYTES - at, " and more");
            break;
        }
        for (end = first + 1; end < count && numbers[end] - numbers[end - 1] <= 1;)
            end++;
        at += (size_t)snprintf(text + at, NUMBER_SPANS_BYTES - at, "%s%llu", first ? ", " : "",
                               (unsigned long long)numbers[first]);
        if (numbers[end - 1] > numbers[first])
            at += (size_t)snprintf(text + at, NUMBER_SPANS_BYTES - at, "-%llu",
                                   (unsigned long long)numbers[end - 1]);
    }
    return text;
}
