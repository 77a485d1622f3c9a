/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_at.h"
#include "error.h"

void spool_init(struct spool *s, size_t item_bytes)
{
    assert(item_bytes && item_bytes <= SPOOL_BLOCK_BYTES);
    *s = (struct spool){.item_bytes = item_bytes, .fd = -1, .usable = SPOOL_SLOTS};
    s->block_items = (uint32_t)(SPOOL_BLOCK_BYTES / item_bytes);
}

void spool_release(struct spool *s)
{
    for (unsigned i = 0; i < SPOOL_SLOTS; i++)
        free(s->slots[i].data);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct spool){.fd = -1};
}

static int save(struct spool *s, const struct spool_slot *slot)
{
    if (s->fd < 0 && (s->fd = file_unnamed()) < 0)
        return GPUPROF_IO;
    return file_write_at(s->fd, slot->block * SPOOL_BLOCK_BYTES, slot->data, SPOOL_BLOCK_BYTES);
}

/* What was never saved is zeros. */
static int load(struct spool *s, struct spool_slot *slot)
{
    uint64_t offset = slot->block * SPOOL_BLOCK_BYTES;
    ssize_t got = s->fd < 0 ? 0 : file_read_at(s->fd, offset, slot->data, SPOOL_BLOCK_BYTES);
    if (got < 0)
        return GPUPROF_IO;
    memset((char *)slot->data + got, 0, SPOOL_BLOCK_BYTES - (size_t)got);
    return 0;
}

void *spool_at(struct spool *s, uint64_t index, bool change, int *error)
{
    assert(s->block_items && s->usable && s->usable <= SPOOL_SLOTS);
    uint64_t block = index / s->block_items;
    struct spool_slot *slot = &s->slots[block % s->usable];
    if (!slot->filled || slot->block != block) {
        if (!slot->data && !(slot->data = malloc(SPOOL_BLOCK_BYTES))) {
            *error = GPUPROF_NO_MEMORY;
            return NULL;
        }
        if (slot->filled && slot->changed && (*error = save(s, slot)) < 0)
            return NULL;
        slot->filled = false;
        slot->changed = false;
        slot->block = block;
        if ((*error = load(s, slot)) < 0)
            return NULL;
        slot->filled = true;
    }
    slot->changed |= change;
    return slot->data + index % s->block_items * s->item_bytes;
}

int spool_append(struct spool *s, const void *item)
{
    int error = 0;
    void *place = spool_at(s, s->count, true, &error);
    if (!place)
        return error;
    memcpy(place, item, s->item_bytes);
    s->count++;
    return 0;
}
