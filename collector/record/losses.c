/* SPDX-License-Identifier: Apache-2.0 */
#include "record/losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct loss_info rows[] = {
#define LOSS(key, weight, is_count, leaves_out, is_found, text)                                    \
    {#key, text, LOSS_##weight, is_count, leaves_out, is_found},
#include "record/losses.def"
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

struct loss_info loss_info(unsigned row)
{
    if (row < ROW_COUNT)
        return rows[row];
    const struct counter_info *counter = &counter_infos[row - ROW_COUNT];
    return (struct loss_info){counter->name,
                              counter->meaning,
                              counter->loss ? LOSS_COUNTED : LOSS_NONE,
                              true,
                              row - ROW_COUNT == COUNTER_PASSED_BY,
                              false};
}

uint64_t loss_value(const struct losses *l, unsigned row)
{
    return ((const uint64_t *)l)[row];
}

void losses_add(struct losses *a, const struct losses *b)
{
    for (unsigned row = 0; row < LOSS_COUNT; row++)
        ((uint64_t *)a)[row] += loss_value(b, row);
}

/* Records outside of blocks are usually of the last second, at most of a minute (--seal). */
#define UNSTORED_NS    60000000000u
#define COUNTS_EACH_NS 64 /* more than all cores of a machine produce together */

uint64_t losses_believable(uint64_t ns)
{
    return ns < UINT64_MAX / COUNTS_EACH_NS - UNSTORED_NS ? COUNTS_EACH_NS * (ns + UNSTORED_NS)
                                                          : UINT64_MAX;
}

enum loss_weight losses_weight(const struct losses *l)
{
    enum loss_weight weight = LOSS_NONE;
    for (unsigned row = 0; row < LOSS_COUNT; row++)
        if (loss_value(l, row) && loss_info(row).weight > weight)
            weight = loss_info(row).weight;
    return weight;
}

char *losses_text(const struct losses *l, char *text, size_t capacity)
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned row = 0; row < LOSS_COUNT && at < capacity; row++) {
        struct loss_info info = loss_info(row);
        uint64_t value = info.weight == LOSS_NONE ? 0 : loss_value(l, row);
        if (value)
            at += (size_t)snprintf(text + at, capacity - at, "%s%s", at ? ", " : "", info.text);
        if (value && info.is_count && at < capacity)
            at += (size_t)snprintf(text + at, capacity - at, ": %" PRIu64, value);
    }
    return text;
}

char *losses_found_text(const struct losses *l, char *text, size_t capacity)
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned row = 0; row < ROW_COUNT && at < capacity; row++)
        if (rows[row].is_found && loss_value(l, row))
            at += (size_t)snprintf(text + at, capacity - at, "%s%s=%" PRIu64, at ? " " : "",
                                   rows[row].key, loss_value(l, row));
    return text;
}

void losses_found_read(struct losses *l, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "= ");
        for (unsigned row = 0; text[length] == '=' && row < ROW_COUNT; row++)
            if (rows[row].is_found && word_is(text, length, rows[row].key))
                ((uint64_t *)l)[row] += strtoull(text + length + 1, NULL, 10);
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}
