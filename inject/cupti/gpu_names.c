/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_names.h"

#include <string.h>

#include "base/pages.h"
#include "record/thread.h"

#define NAMES_FIRST    4096u
#define NAMES_MAX      (1u << 22)
#define NAME_BYTES_MAX 4096u

struct entry {
    const char *name; /* NULL = free */
    uint64_t number;
};

/* The parser's. */
static struct {
    struct entry *entries; /* mmap'ed; open addressing */
    uint32_t capacity;
    uint32_t used;
} table;

static struct entry *entry_of(struct entry *entries, uint32_t capacity, const char *name)
{
    uint32_t i = (uint32_t)(((uintptr_t)name * 0x9E3779B97F4A7C15u) >> 32) & (capacity - 1);
    while (entries[i].name && entries[i].name != name)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

static bool grow(void)
{
    uint32_t capacity = table.capacity ? 2 * table.capacity : NAMES_FIRST;
    if (capacity > NAMES_MAX)
        return false;
    struct entry *entries = pages_map(capacity * sizeof *entries);
    if (!entries)
        return false;
    for (uint32_t i = 0; i < table.capacity; i++)
        if (table.entries[i].name)
            *entry_of(entries, capacity, table.entries[i].name) = table.entries[i];
    if (table.entries)
        munmap(table.entries, table.capacity * sizeof *table.entries);
    table.entries = entries;
    table.capacity = capacity;
    return true;
}

uint64_t gpu_name(struct thread *me, const char *name, uint64_t begin)
{
    if (!name)
        return 0;
    if (2 * table.used >= table.capacity && !grow()) {
        counter_add(COUNTER_NAMES_DROPPED, 1);
        return 0;
    }
    struct entry *e = entry_of(table.entries, table.capacity, name);
    if (e->name)
        return e->number;
    size_t length = strnlen(name, NAME_BYTES_MAX + 1);
    if (length > NAME_BYTES_MAX) {
        counter_add(COUNTER_NAMES_TRUNCATED, 1);
        length = NAME_BYTES_MAX;
    }
    struct record r = {RECORD_WITH(KERNEL_NAME, [KERNEL_NAME_NAME] = table.used + 1u),
                       .begin = begin, .bytes = (const uint8_t *)name,
                       .byte_count = (uint32_t)length};
    if (!thread_append(me, &r))
        return 0; /* with its kernel's record, most likely; tried again with the next */
    *e = (struct entry){name, ++table.used};
    return e->number;
}
