/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_names.h"

#include "base/hash.h"
#include "base/pages.h"
#include "cuda/name_texts.h"
#include "record/thread.h"

#define NAMES_FIRST 4096u
#define NAMES_MAX   (1u << 22)
#define SEEN_SLOTS  4096u /* power of two */

_Static_assert(SEEN_SLOTS == 1u << 12, "slot_of takes 12 bits");

struct entry {
    uint64_t hash; /* hash of the text; 0: free */
    uint64_t number;
};

/* An address whose text was hashed in this buffer; in a later buffer it may have another text. */
struct seen {
    const char *name;
    uint64_t buffer;
    uint64_t number;
};

/* Used by the parser. */
static struct {
    struct entry *entries; /* from mmap; hash table with open addressing */
    uint32_t capacity;
    uint32_t used;
    uint64_t buffer;
    struct seen seen[SEEN_SLOTS]; /* direct-mapped */
} table;

void gpu_names_next_buffer(void)
{
    table.buffer++;
}

static struct seen *gpu_names_slot_of(const char *name)
{
    return &table.seen[hash_mix(0, (uintptr_t)name) >> 52];
}

static struct entry *gpu_names_entry_of(struct entry *entries, uint32_t capacity, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (capacity - 1);
    while (entries[i].hash && entries[i].hash != hash)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

static bool gpu_names_grow(void)
{
    uint32_t capacity = table.capacity ? 2 * table.capacity : NAMES_FIRST;
    if (capacity > NAMES_MAX)
        return false;
    struct entry *entries = pages_map(capacity * sizeof *entries);
    if (!entries)
        return false;
    for (uint32_t i = 0; i < table.capacity; i++)
        if (table.entries[i].hash)
            *gpu_names_entry_of(entries, capacity, table.entries[i].hash) = table.entries[i];
    if (table.entries)
        munmap(table.entries, table.capacity * sizeof *table.entries);
    table.entries = entries;
    table.capacity = capacity;
    return true;
}

/* Returns 0 if there is no space for the name or its record. Its kernel most likely has no space
 * either; the next one tries again. */
static uint64_t gpu_names_number_of(struct thread *me, const char *name, uint64_t begin)
{
    char cut[NAME_BYTES_MAX + 1];
    size_t length = strlen(name);
    uint64_t hash = hash_bytes(name, length) | 1;
    struct entry *e =
        table.capacity ? gpu_names_entry_of(table.entries, table.capacity, hash) : NULL;
    if (e && e->hash)
        return e->number;
    if (2 * table.used >= table.capacity) {
        if (!gpu_names_grow()) {
            counter_add(COUNTER_NAMES_DROPPED, 1);
            return 0;
        }
        e = gpu_names_entry_of(table.entries, table.capacity, hash);
    }
    const char *text = name_as_recorded(name, cut, &length);
    struct record r = {RECORD_WITH(KERNEL_NAME, [KERNEL_NAME_NAME] = table.used + 1u),
                       .begin = begin, .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)length};
    if (!thread_append(me, &r))
        return 0;
    *e = (struct entry){hash, ++table.used};
    return e->number;
}

uint64_t gpu_name(struct thread *me, const char *name, uint64_t begin)
{
    if (!name)
        return 0;
    struct seen *s = gpu_names_slot_of(name);
    if (s->name != name || s->buffer != table.buffer || !s->number)
        *s = (struct seen){name, table.buffer, gpu_names_number_of(me, name, begin)};
    return s->number;
}
