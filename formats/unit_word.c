/* SPDX-License-Identifier: Apache-2.0 */
#include "unit_word.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

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
