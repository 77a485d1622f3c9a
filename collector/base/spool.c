/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_at.h"
#include "base/memory.h"

void spool_init(struct spool *s, size_t item_bytes)
{
    assert(item_bytes && item_bytes <= SPOOL_BLOCK_BYTES);
    *s = (struct spool){.item_bytes = item_bytes, .fd = -1, .usable = SPOOL_SLOTS};
    while (item_bytes << (s->block_shift + 1) <= SPOOL_BLOCK_BYTES)
        s->block_shift++;
}

static size_t block_bytes(const struct spool *s)
{
    return s->item_bytes << s->block_shift;
}

void spool_release(struct spool *s)
{
    for (unsigned i = 0; i < SPOOL_SLOTS; i++)
        free(s->slots[i].data);
    file_close(s->fd);
    *s = (struct spool){.fd = -1};
}

static void save(struct spool *s, uint64_t block, const void *data)
{
    if (s->fd < 0)
        s->fd = file_unnamed();
    s->saved = s->saved > block ? s->saved : block + 1;
    if (s->fd < 0 || file_write_at(s->fd, block * block_bytes(s), data, block_bytes(s)) < 0)
        file_unnamed_failed();
}

static bool spool_is_there(const struct spool_slot *slot, uint64_t block)
{
    return slot->filled && slot->block == block;
}

/* Two slots per block, so that two alternating blocks do not evict each other. */
static struct spool_slot *spool_place_of(struct spool *s, uint64_t block)
{
    size_t first = block % s->usable, second = first ^ 1;
    struct spool_slot *a = &s->slots[first], *b = &s->slots[second < s->usable ? second : first];
    if (spool_is_there(b, block))
        return b;
    return spool_is_there(a, block) || !a->filled || (b->filled && a->used < b->used) ? a : b;
}

struct spool_slot *spool_fetch(struct spool *s, uint64_t block)
{
    assert(s->usable && s->usable <= SPOOL_SLOTS);
    struct spool_slot *slot = s->last = spool_place_of(s, block);
    slot->used = ++s->clock;
    if (spool_is_there(slot, block))
        return slot;
    if (!slot->data)
        slot->data = memory_new(1, block_bytes(s));
    if (slot->filled && slot->changed)
        save(s, slot->block, slot->data);
    slot->block = block;
    /* A block that was never saved has no items yet. */
    if (block < s->saved &&
        file_read_at(s->fd, block * block_bytes(s), slot->data, block_bytes(s)) < 0)
        file_unnamed_failed();
    slot->filled = true;
    slot->changed = false;
    return slot;
}

void spool_append(struct spool *s, const void *item)
{
    memcpy(spool_at(s, s->count, true), item, s->item_bytes);
    s->count++;
}
