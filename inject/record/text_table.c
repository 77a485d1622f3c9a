/* SPDX-License-Identifier: Apache-2.0 */
#include "record/text_table.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/pages.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/thread.h"

#define TABLE_LOCK_NS                                                                              \
    10000000u /* held for less than a microsecond, unless its holder is not scheduled */

static size_t slot_bytes(const struct text_table *table)
{
    return sizeof(struct text_pages) + 2 * (size_t)table->entries_max * sizeof(uint32_t);
}

static size_t page_bytes(const struct text_table *table)
{
    return slot_bytes(table) + table->entries_max * sizeof(struct text_entry) + table->text_max;
}

/* The lock must be held, also below. */
static struct text_pages *text_table_prepare(struct text_table *table)
{
    struct text_pages *p = atomic_load(&table->pages);
    if (p)
        return p;
    p = pages_map(page_bytes(table));
    if (p) {
        p->entries = (struct text_entry *)(void *)((uint8_t *)p + slot_bytes(table));
        p->text = (uint8_t *)(p->entries + table->entries_max);
        atomic_store(&table->pages, p);
    }
    return p;
}

static bool text_table_has_room(const struct text_table *table, uint32_t byte_count)
{
    return table->count + 1 < table->entries_max &&
           byte_count + 1 <= table->text_max - table->text_bytes;
}

/* Returns 0 if there is no space. No entry has the number 0. */
static uint32_t find_or_make(struct text_table *table, struct text_pages *p, const uint8_t *bytes,
                             uint32_t byte_count, uint64_t hash)
{
    uint32_t mask = 2 * table->entries_max - 1, i = (uint32_t)hash & mask, number;
    for (; (number = atomic_load_explicit(&p->slots[i], memory_order_relaxed)); i = (i + 1) & mask)
        if (p->entries[number].hash == hash && p->entries[number].byte_count == byte_count &&
            memcmp(p->text + p->entries[number].text_at, bytes, byte_count) == 0)
            return number;
    if (!text_table_has_room(table, byte_count))
        return 0;
    number = ++table->count;
    struct text_entry *e = &p->entries[number];
    *e = (struct text_entry){.hash = hash, .text_at = table->text_bytes, .byte_count = byte_count};
    memcpy(p->text + e->text_at, bytes, byte_count);
    table->text_bytes += byte_count + 1;
    e->mark = table->mark ? table->mark(p->text + e->text_at, byte_count) : 0;
    atomic_store_explicit(&p->slots[i], number, memory_order_release);
    return number;
}

/* Does not hold the lock while it appends: that may wait for space, and other threads would wait
 * for us. */
static uint32_t text_table_own_add(struct text_table *table, struct thread *t, const uint8_t *bytes,
                                   uint32_t byte_count, uint64_t hash)
{
    if (!lock_take(&table->lock, TABLE_LOCK_NS))
        return 0;
    struct text_pages *p = text_table_prepare(table);
    uint32_t number = p ? find_or_make(table, p, bytes, byte_count, hash) : 0;
    struct text_entry *e = number ? &p->entries[number] : NULL;
    bool due = e && !atomic_exchange_explicit(&e->is_written, 1, memory_order_relaxed);
    lock_drop(&table->lock);
    if (!due)
        return number;
    struct record r = {.type = table->record_type,
                       .begin = ticks_now(),
                       .arg_count = 1,
                       .args = {number},
                       .bytes = p->text + e->text_at,
                       .byte_count = e->byte_count};
    if (thread_append(t, &r))
        return number;
    /* the next thread tries again */
    atomic_store_explicit(&e->is_written, 0, memory_order_relaxed);
    return 0;
}

uint32_t text_table_add(struct text_table *table, struct thread *t, const uint8_t *bytes,
                        uint32_t byte_count, uint64_t hash)
{
    int saved = errno;
    uint64_t signals = block_signals(); /* it counts as written before it is */
    uint32_t number = text_table_own_add(table, t, bytes, byte_count, hash);
    restore_signals(signals);
    errno = saved;
    return number;
}

bool text_table_is_full(struct text_table *table, uint32_t byte_count)
{
    uint64_t signals = block_signals();
    bool locked = lock_take(&table->lock, TABLE_LOCK_NS);
    bool is_full = locked && !text_table_has_room(table, byte_count);
    if (locked)
        lock_drop(&table->lock);
    restore_signals(signals);
    return is_full;
}

void text_table_reset(struct text_table *table)
{
    struct text_pages *p = atomic_exchange(&table->pages, NULL);
    atomic_store(&table->lock.holder, 0);
    table->count = table->text_bytes = 0;
    if (p)
        munmap(p, page_bytes(table));
}
