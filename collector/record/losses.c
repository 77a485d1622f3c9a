/* SPDX-License-Identifier: Apache-2.0 */
#include "record/losses.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data;
    size_t length;
    size_t capacity;
};

__attribute__((format(printf, 2, 3))) static void losses_put(struct text *t, const char *format,
                                                             ...)
{
    va_list list;
    va_start(list, format);
    int more = vsnprintf(t->data + t->length, t->capacity - t->length, format, list);
    va_end(list);
    if (more > 0) {
        size_t room = t->capacity - 1 - t->length;
        t->length += (size_t)more < room ? (size_t)more : room;
    }
}

static const struct loss_info rows[] = {
#define LOSS(key, weight, is_count, leaves_out, text)                                              \
    {#key, text, LOSS_##weight, is_count, leaves_out},
#include "record/losses.def"
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

struct loss_info loss_info(unsigned row)
{
    if (row < ROW_COUNT)
        return rows[row];
    const struct counter_info *counter = &counter_infos[row - ROW_COUNT];
    return (struct loss_info){counter->name, counter->meaning,
                              counter->loss ? LOSS_COUNTED : LOSS_NONE, true,
                              row - ROW_COUNT == COUNTER_PASSED_BY};
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
    struct text t = {.data = text, .capacity = capacity};
    text[0] = '\0';
    for (unsigned row = 0; row < LOSS_COUNT; row++) {
        struct loss_info info = loss_info(row);
        uint64_t value = loss_value(l, row);
        if (!value || info.weight == LOSS_NONE)
            continue;
        losses_put(&t, "%s", t.length ? ", " : "");
        losses_put(&t, "%s", info.text);
        if (info.is_count)
            losses_put(&t, ": %llu", (unsigned long long)value);
    }
    return text;
}

/* Losses that cannot be seen any more in a file that recover wrote. */
static const char *const found_keys[] = {"header_lost",        "damaged_blocks", "damaged_records",
                                         "skipped_bytes",      "torn_bytes",     "repeated_blocks",
                                         "live_damaged_bytes", "live_records",   "open_calls",
                                         "counters_damaged"};

static bool is_found(const char *key, size_t length)
{
    for (size_t i = 0; i < sizeof found_keys / sizeof found_keys[0]; i++)
        if (strlen(found_keys[i]) == length && memcmp(found_keys[i], key, length) == 0)
            return true;
    return false;
}

char *losses_found_text(const struct losses *l, char *text, size_t capacity)
{
    struct text t = {.data = text, .capacity = capacity};
    text[0] = '\0';
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        const char *key = rows[row].key;
        uint64_t value = loss_value(l, row);
        if (value && is_found(key, strlen(key)))
            losses_put(&t, "%s%s=%llu", t.length ? " " : "", key, (unsigned long long)value);
    }
    return text;
}

void losses_found_read(struct losses *l, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "= ");
        for (unsigned row = 0; text[length] == '=' && row < ROW_COUNT; row++) {
            const char *key = rows[row].key;
            if (strlen(key) != length || memcmp(key, text, length) != 0 || !is_found(key, length))
                continue;
            ((uint64_t *)l)[row] += strtoull(text + length + 1, NULL, 10);
        }
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}
