/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/name_texts.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/pages.h"
#include "record/state.h"
#include "record/thread.h"

#define UNIT            16u /* sizes are multiples of this */
#define PAGE_BYTES      (64u << 10)
#define TEXTS_BYTES_MAX (64u << 20)
#define HASH_DIGITS     16u

_Static_assert(NAME_BYTES_MAX <= RECORD_BYTES_MAX, "a name fits into a record");

struct text {
    struct page *page;
    union {
        struct text *next; /* the next free text of the page */
        char bytes[1];
    };
};

#define SIZES ((sizeof(struct text) + NAME_BYTES_MAX) / UNIT + 1)

/* A page of texts of one size, which follow the header. A page without texts can be used for any
 * size. */
struct page {
    struct page *next, *previous; /* pages with space for that size, or empty pages */
    struct text *free;
    uint32_t fresh; /* offset of the part that was never used */
    uint32_t used;
    uint32_t text_bytes;
};

/* Protected by the lock of names.c. */
static struct {
    struct page *with_room[SIZES + 1]; /* by size, in units */
    struct page *empty;
    size_t total;
} texts;

static void link_page(struct page **list, struct page *page)
{
    page->previous = NULL;
    page->next = *list;
    if (page->next)
        page->next->previous = page;
    *list = page;
}

static void unlink_page(struct page **list, struct page *page)
{
    if (page->next)
        page->next->previous = page->previous;
    if (page->previous)
        page->previous->next = page->next;
    else
        *list = page->next;
}

static bool name_texts_has_room(const struct page *page)
{
    return page->free || page->fresh + page->text_bytes <= PAGE_BYTES;
}

/* Returns NULL if there is no space. */
static struct page *open_page(size_t units)
{
    struct page *page = texts.empty;
    if (page) {
        unlink_page(&texts.empty, page);
    } else {
        page = texts.total < TEXTS_BYTES_MAX ? pages_map(PAGE_BYTES) : NULL;
        if (!page)
            return NULL;
        texts.total += PAGE_BYTES;
    }
    page->free = NULL;
    page->fresh = sizeof *page;
    page->used = 0;
    page->text_bytes = (uint32_t)(units * UNIT);
    link_page(&texts.with_room[units], page);
    return page;
}

const char *name_text_keep(const char *name)
{
    size_t length = strlen(name), units = (offsetof(struct text, bytes) + length) / UNIT + 1;
    struct page *page = texts.with_room[units];
    if (!page)
        page = open_page(units);
    if (!page)
        return NULL;
    struct text *text = page->free;
    if (text) {
        page->free = text->next;
    } else {
        text = (struct text *)(void *)((char *)page + page->fresh);
        page->fresh += page->text_bytes;
    }
    page->used++;
    if (!name_texts_has_room(page))
        unlink_page(&texts.with_room[units], page);
    text->page = page;
    return memcpy(text->bytes, name, length + 1);
}

void name_text_drop(const char *bytes)
{
    struct text *text = (struct text *)((uintptr_t)bytes - offsetof(struct text, bytes));
    struct page *page = text->page, **list = &texts.with_room[page->text_bytes / UNIT];
    if (!name_texts_has_room(page))
        link_page(list, page);
    text->next = page->free;
    page->free = text;
    if (--page->used)
        return;
    unlink_page(list, page);
    link_page(&texts.empty, page);
}

const char *name_as_recorded(const char *name, char cut[NAME_BYTES_MAX + 1], size_t *length)
{
    static const char hex[] = "0123456789abcdef";
    *length = strlen(name);
    if (*length <= NAME_BYTES_MAX)
        return name;
    counter_add(COUNTER_NAMES_TRUNCATED, 1);
    uint64_t hash = hash_bytes(name, *length);
    char *digits = cut + NAME_BYTES_MAX - HASH_DIGITS;
    memcpy(cut, name, NAME_BYTES_MAX - HASH_DIGITS);
    digits[-1] = '~';
    for (unsigned i = 0; i < HASH_DIGITS; i++)
        digits[i] = hex[hash >> (60 - 4 * i) & 15];
    *length = NAME_BYTES_MAX;
    cut[NAME_BYTES_MAX] = '\0';
    return cut;
}
