/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void text_numbers_release(struct text_numbers *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->texts[i].text);
    free(t->texts);
    number_set_release(&t->set);
    *t = (struct text_numbers){0};
}

static uint32_t hash_of(const void *item)
{
    return ((const struct text_number *)item)->hash;
}

static bool is_same(const void *left, const void *right)
{
    const struct text_number *a = left, *b = right;
    return a->hash == b->hash && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new)
{
    static const struct number_kind kind = {sizeof(struct text_number), 0, hash_of, is_same};
    struct text_number wanted = {(char *)text, (uint32_t)length, text_hash(text, length)};
    uint32_t *number = number_set_find(&t->set, &kind, t->texts, t->count, &wanted);
    *is_new = false;
    if (!number || *number)
        return number ? *number : 0;
    if (t->count == TEXT_NUMBERS_MAX || length >= TEXT_NUMBERS_BYTES - t->bytes)
        return 0;
    wanted.text = malloc(length + 1);
    if (!wanted.text || ARRAY_PUSH(t->texts, t->count, &wanted) < 0) {
        free(wanted.text);
        return 0;
    }
    memcpy(wanted.text, text, length);
    t->bytes += length;
    *is_new = true;
    return *number = t->count;
}
