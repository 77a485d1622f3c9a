/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text_numbers.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 256

void text_numbers_release(struct text_numbers *t)
{
    for (uint32_t i = 0; i < t->slot_count; i++)
        free(t->slots[i].text);
    free(t->slots);
    *t = (struct text_numbers){0};
}

uint32_t text_hash(const char *text, size_t length)
{
    uint64_t hash = length, word;
    for (; length >= sizeof word; text += sizeof word, length -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (; length; text++, length--)
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
    return (uint32_t)(hash ^ hash >> 29);
}

static struct text_number *place_of(const struct text_numbers *t, const char *text, size_t length,
                                    uint32_t hash)
{
    uint32_t at = hash & (t->slot_count - 1);
    for (;; at = (at + 1) & (t->slot_count - 1)) {
        struct text_number *slot = &t->slots[at];
        if (!slot->text ||
            (slot->hash == hash && slot->length == length && memcmp(slot->text, text, length) == 0))
            return slot;
    }
}

static bool grow(struct text_numbers *t)
{
    struct text_numbers grown = *t;
    grown.slot_count = t->slot_count ? 2 * t->slot_count : SLOTS_FIRST;
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    for (uint32_t i = 0; grown.slots && i < t->slot_count; i++) {
        const struct text_number *old = &t->slots[i];
        if (old->text)
            *place_of(&grown, old->text, old->length, old->hash) = *old;
    }
    if (!grown.slots)
        return false;
    free(t->slots);
    *t = grown;
    return true;
}

uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new)
{
    uint32_t hash = text_hash(text, length);
    *is_new = false;
    if (t->slot_count) {
        const struct text_number *known = place_of(t, text, length, hash);
        if (known->text)
            return known->number;
    }
    bool has_room = t->count < TEXT_NUMBERS_MAX && length < TEXT_NUMBERS_BYTES - t->bytes;
    if (!has_room || (2 * t->count >= t->slot_count && !grow(t)))
        return 0;
    struct text_number *slot = place_of(t, text, length, hash);
    slot->text = malloc(length + 1);
    if (!slot->text)
        return 0;
    memcpy(slot->text, text, length);
    slot->length = (uint32_t)length;
    slot->hash = hash;
    slot->number = ++t->count;
    t->bytes += length;
    *is_new = true;
    return slot->number;
}
