/* SPDX-License-Identifier: Apache-2.0 */
#include "base/key_map.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "error.h"

void key_map_release(struct key_map *m)
{
    free(m->slots);
    *m = (struct key_map){.count_max = m->count_max};
}

static int grow(struct key_map *m)
{
    uint32_t slot_count = m->slot_count ? 2 * m->slot_count : 64;
    struct key_slot *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < m->slot_count; i++)
        if (m->slots[i].value)
            slots[key_find(slots, slot_count, m->slots[i].key)] = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
    return 0;
}

int key_map_set(struct key_map *m, struct key key, uint64_t value)
{
    uint32_t count_max = m->count_max ? m->count_max : KEY_MAP_MAX;
    assert(value != 0);
    if (m->count >= m->slot_count / 2 && grow(m) < 0)
        return GPUPROF_NO_MEMORY;
    struct key_slot *slot = &m->slots[key_find(m->slots, m->slot_count, key)];
    if (!slot->value) {
        if (m->count >= count_max)
            return GPUPROF_LIMIT;
        m->count++;
    }
    *slot = (struct key_slot){.key = key, .value = value};
    return 0;
}

int key_map_item(struct key_map *m, struct key key, void *list, uint32_t *count, size_t item_bytes,
                 uint32_t most, const void *item, uint32_t *number)
{
    *number = (uint32_t)key_map_get(m, key);
    if (*number || *count >= most)
        return 0;
    int error = key_map_set(m, key, *count + 1ull);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    error = array_push(list, count, item_bytes, item);
    if (error < 0)
        key_map_remove(m, key);
    else
        *number = *count;
    return error;
}

int key_map_set_anew(struct key_map *m, struct key key, uint64_t value, uint32_t count_max)
{
    m->count_max = count_max;
    int error = key_map_set(m, key, value);
    if (error != GPUPROF_LIMIT)
        return error;
    key_map_release(m);
    return key_map_set_anew(m, key, value, count_max);
}

/* What stands behind the hole and could not stand in its own place moves up. */
void key_map_remove(struct key_map *m, struct key key)
{
    if (!m->count)
        return;
    uint32_t mask = m->slot_count - 1;
    uint32_t hole = key_find(m->slots, m->slot_count, key);
    if (!m->slots[hole].value)
        return;
    for (uint32_t at = (hole + 1) & mask; m->slots[at].value; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)key_hash(m->slots[at].key) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole].value = 0;
    m->count--;
    assert(!key_map_get(m, key));
}
