/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define SLOTS_FIRST 1024 /* power of two */

void number_set_release(struct number_set *s)
{
    free(s->slots);
    *s = (struct number_set){0};
}

static const void *item_of(const struct number_kind *kind, const void *items, uint32_t number)
{
    return (const char *)items + (number - 1) * kind->item_bytes;
}

static uint32_t *find(const struct number_set *s, const struct number_kind *kind, const void *items,
                      const void *item)
{
    uint32_t at = kind->hash(item) & (s->slot_count - 1);
    while (s->slots[at] && !kind->same(item_of(kind, items, s->slots[at]), item))
        at = (at + 1) & (s->slot_count - 1);
    return &s->slots[at];
}

static bool grow(struct number_set *s, const struct number_kind *kind, const void *items,
                 uint32_t count)
{
    uint32_t slot_count = s->slot_count ? 2 * s->slot_count : SLOTS_FIRST;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    free(s->slots);
    s->slots = slots;
    s->slot_count = slot_count;
    for (uint32_t number = 1; number <= count; number++)
        *find(s, kind, items, item_of(kind, items, number)) = number;
    return true;
}

uint32_t *number_set_find(struct number_set *s, const struct number_kind *kind, const void *items,
                          uint32_t count, const void *item)
{
    if (count >= s->slot_count / 2 && !grow(s, kind, items, count))
        return NULL;
    uint32_t *place = find(s, kind, items, item);
    assert(*place <= count);
    return place;
}

int64_t number_set_add(struct number_set *s, const struct number_kind *kind, void *items,
                       uint32_t *count, uint32_t count_max, const void *item)
{
    const void *list;
    memcpy(&list, items, sizeof list); /* whatever it points to */
    uint32_t *number = number_set_find(s, kind, list, *count, item);
    if (!number)
        return GPUPROF_NO_MEMORY;
    if (*number || *count >= count_max)
        return *number;
    int error = array_push(items, count, kind->item_bytes, item);
    if (error == 0)
        *number = *count;
    return error < 0 ? error : (int64_t)*number;
}
