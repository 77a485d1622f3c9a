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

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
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

#define ROW(member, weight, is_count, text)                                                        \
    {                                                                                              \
        {#member, text, weight, is_count, false}, offsetof(struct losses, member)                  \
    }
#define ROW_OUT(member, is_count, text)                                                            \
    {                                                                                              \
        {#member, text, LOSS_NONE, is_count, true}, offsetof(struct losses, member)                \
    }
static const struct {
    struct loss_info info;
    size_t offset;
} rows[] = {
    ROW(header_lost, LOSS_DAMAGE, false, "the file's header is damaged"),
    ROW(damaged_blocks, LOSS_DAMAGE, true, "blocks damaged"),
    ROW(damaged_records, LOSS_DAMAGE, true, "records in damaged blocks"),
    ROW(missing_blocks, LOSS_DAMAGE, true, "blocks missing"),
    ROW(skipped_bytes, LOSS_DAMAGE, true, "bytes that are no block"),
    ROW(torn_bytes, LOSS_DAMAGE, true, "bytes of a block that was cut off"),
    ROW(missing_bytes, LOSS_DAMAGE, true, "bytes of raw records missing"),
    ROW(repeated_blocks, LOSS_DAMAGE, true, "blocks that repeat records"),
    ROW(live_damaged, LOSS_DAMAGE, false, "the live file cannot be read"),
    ROW(live_damaged_bytes, LOSS_DAMAGE, true, "bytes of the live file damaged"),
    ROW(counters_damaged, LOSS_DAMAGE, false,
        "the counters of what was lost are damaged: there may be losses that are not known"),
    ROW(unknown_functions, LOSS_COUNTED, true, "calls of functions that are not described"),
    ROW(not_ended, LOSS_COUNTED, false,
        "no end and no live file: the last second or so may be missing"),
    ROW(live_records, LOSS_NONE, true, "events read from the live file"),
    ROW(open_calls, LOSS_NONE, true, "calls that had not returned"),
    ROW(running, LOSS_NONE, false, "still running when it was read"),
    ROW(may_run, LOSS_NONE, false,
        "not known whether it still runs: it is of another machine or PID namespace"),
    ROW_OUT(flight_unread, false,
            "what its flight recorder holds, and was not dumped, is not read"),
    ROW(gpu_unpaired, LOSS_NONE, true, "GPU work whose call is not recorded"),
    ROW_OUT(gpu_untied, true, "launches without the number that ties work to them"),
    ROW(unmatched_ranges, LOSS_NONE, true, "ends of ranges without a beginning"),
    ROW(deep_ranges, LOSS_NONE, true, "ranges nested too deep to be shown"),
    ROW(unmatched_ops, LOSS_NONE, true, "begins and ends of operators without the other"),
    ROW(deep_ops, LOSS_NONE, true, "operators nested too deep to be shown"),
    ROW_OUT(traced_ops, true, "operators on fake tensors: they are in no table"),
    ROW(nvtx_ops, LOSS_NONE, true,
        "operators and labels known from emit_nvtx's ranges: without types, lists and threads of "
        "their forward ones"),
    ROW(nvtx_ops_again, LOSS_NONE, true,
        "ranges of emit_nvtx that are left among the ranges: their operators are recorded, too"),
    ROW(gpu_missing, LOSS_COUNTED, true, "kernels, copies and fills that are not recorded"),
    ROW(gpu_pending, LOSS_NONE, true,
        "launches whose GPU work had not ended: their threads waited for it"),
    ROW_OUT(gpu_given_up, true,
            "GPU work without its call, or calls without theirs, because of --overhead-max"),
    ROW(devices_unread, LOSS_COUNTED, false, "counters of devices that --device asked for"),
    ROW(stacks_unread, LOSS_COUNTED, true, "records of stacks that cannot be used"),
};
#undef ROW
#undef ROW_OUT
#define ROW_COUNT (sizeof rows / sizeof rows[0])
_Static_assert(ROW_COUNT + COUNTER_COUNT == LOSS_COUNT, "one row per member");
_Static_assert(sizeof(struct losses) == 8 * LOSS_COUNT, "every member has a row");

struct loss_info loss_info(unsigned row)
{
    if (row < ROW_COUNT)
        return rows[row].info;
    const struct counter_info *counter = &counter_infos[row - ROW_COUNT];
    return (struct loss_info){counter->name, counter->meaning,
                              counter->loss ? LOSS_COUNTED : LOSS_NONE, true,
                              row - ROW_COUNT == COUNTER_PASSED_BY};
}

uint64_t loss_value(const struct losses *l, unsigned row)
{
    uint64_t value;
    if (row >= ROW_COUNT)
        return l->counters[row - ROW_COUNT];
    memcpy(&value, (const char *)l + rows[row].offset, sizeof value);
    return value;
}

void losses_add(struct losses *a, const struct losses *b)
{
    for (unsigned row = 0; row < LOSS_COUNT; row++) {
        uint64_t sum = loss_value(a, row) + loss_value(b, row);
        if (row >= ROW_COUNT)
            a->counters[row - ROW_COUNT] = sum;
        else
            memcpy((char *)a + rows[row].offset, &sum, sizeof sum);
    }
}

/* What is in no block yet is of the last second as a rule, and of a minute at most (--seal). */
#define UNSTORED_NS    60000000000u
#define COUNTS_EACH_NS 64 /* more than all cores of a machine come to together */

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
        put(&t, "%s", t.length ? ", " : "");
        put(&t, "%s", info.text);
        if (info.is_count)
            put(&t, ": %llu", (unsigned long long)value);
    }
    return text;
}

/* Of these rows a file says nothing that was read, made whole and written anew. */
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
        const char *key = rows[row].info.key;
        uint64_t value = loss_value(l, row);
        if (value && is_found(key, strlen(key)))
            put(&t, "%s%s=%llu", t.length ? " " : "", key, (unsigned long long)value);
    }
    return text;
}

void losses_found_read(struct losses *l, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "= ");
        for (unsigned row = 0; text[length] == '=' && row < ROW_COUNT; row++) {
            const char *key = rows[row].info.key;
            if (strlen(key) != length || memcmp(key, text, length) != 0 || !is_found(key, length))
                continue;
            uint64_t value = loss_value(l, row) + strtoull(text + length + 1, NULL, 10);
            memcpy((char *)l + rows[row].offset, &value, sizeof value);
        }
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}
