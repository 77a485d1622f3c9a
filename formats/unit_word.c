/* SPDX-License-Identifier: Apache-2.0 */
#include "unit_word.h"

#include <string.h>
#include <strings.h>

#define NUMBER_MAX (UINT64_MAX / 2)
#define BILLION    1000000000u

uint64_t unit_bytes(const char *word, size_t length)
{
    static const char letters[] = "kmgt";
    const char *letter = length ? memchr(letters, word[0] | 0x20, sizeof letters - 1) : NULL;
    const char *rest = length == 2 ? "b" : length == 3 ? "ib" : "";
    bool is_unit =
        letter && strlen(rest) == length - 1 && strncasecmp(word + 1, rest, length - 1) == 0;
    return is_unit ? 1ull << 10 * (letter - letters + 1) : 0;
}

uint64_t unit_ns(const char *word, size_t length)
{
    static const struct {
        const char *word;
        uint64_t ns;
    } units[] = {
        {"ns", 1},           {"us", 1000},          {"ms", 1000000},      {"s", 1000000000},
        {"m", 60000000000u}, {"min", 60000000000u}, {"h", 3600000000000u}};
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].word) == length && memcmp(units[i].word, word, length) == 0)
            return units[i].ns;
    return 0;
}

static bool unit_word_is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

const char *amount_read(const char *text, const char *end, struct amount *a)
{
    const char *p = text;
    uint32_t place = BILLION / 10;
    *a = (struct amount){0};
    for (; unit_word_is_digit(p, end); p++) {
        if (a->whole > NUMBER_MAX / 10 - 1)
            return NULL;
        a->whole = 10 * a->whole + (uint64_t)(*p - '0');
    }
    if (p == end || *p != '.')
        return p == text ? NULL : p;
    a->has_point = true;
    for (p++; unit_word_is_digit(p, end); p++, place /= 10)
        a->billionths += place * (uint32_t)(*p - '0');
    return p[-1] == '.' ? NULL : p;
}

bool amount_times(const struct amount *a, uint64_t unit, uint64_t *number)
{
    if (!unit || a->whole > NUMBER_MAX / unit)
        return false;
    *number =
        a->whole * unit + unit / BILLION * a->billionths + unit % BILLION * a->billionths / BILLION;
    return *number <= NUMBER_MAX;
}
