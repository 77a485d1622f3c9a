/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_code.h"

#include <string.h>

#include "base/hash.h"
#include "python/python_text.h"

#define CHECK_BYTES                                                                                \
    64u /* bytes of a text or table that are compared to distinguish code objects                  \
         */

#define COUNT_TYPE 8u /* offset of the type if only the reference count is before it */
/* addresses are never this low, and reference counts never this high */
#define COUNT_END 0x400000u

/* `is_known`: do not ask the kernel. */
static bool is_page_readable(struct python_seen *found, uint64_t page, bool is_known)
{
    unsigned place = (unsigned)(page * 0x9E3779B97F4A7C15u >> 32) % PYTHON_PAGES;
    if (page && (found->pages[place] == page || found->pages[place ^ 1] == page))
        return true;
    if (!page || !(is_known || memory_is_readable(page * MEMORY_PAGE_BYTES)))
        return false;
    found->pages[place ^ 1] = found->pages[place];
    found->pages[place] = page;
    return true;
}

/* Can all of it be read in place? */
static bool are_readable(struct python_seen *found, uint64_t address, uint64_t bytes, bool is_known)
{
    uint64_t end = address + bytes, page = address / MEMORY_PAGE_BYTES;
    if (end < address)
        return false;
    if (address >= found->low && end <= found->high)
        return true;
    while (page * MEMORY_PAGE_BYTES < end && is_page_readable(found, page, is_known))
        page++;
    return page * MEMORY_PAGE_BYTES >= end;
}

static void python_code_see(struct python_seen *seen, enum known_kind kind, uint64_t address)
{
    if (seen->place_count < PYTHON_PLACES)
        seen->places[seen->place_count++] = address | kind;
}

const uint8_t *python_view(const struct python_view *v, enum known_kind kind, uint64_t address,
                           uint8_t *copy, uint32_t bytes)
{
    /* reference counts, which may change, are at the start of objects */
    uint32_t counts = v->layout->type;
    if (v->interrupted)
        python_code_see(v->interrupted, kind, address);
    if (v->is_own && known_has(kind, address))
        return (const uint8_t *)(uintptr_t)address;
    if (address & KNOWN_MASK || !address || bytes > LAYOUT_PART_BYTES_MAX)
        return NULL;
    if (v->interrupted) {
        /* The thread's state exists as long as the interpreter lists it. */
        bool is_known = kind == KNOWN_THREAD && known_has(kind, address);
        if (!are_readable(v->interrupted, address, bytes, is_known))
            return NULL;
        if (kind == KNOWN_THREAD)
            known_add(kind, address);
        return (const uint8_t *)(uintptr_t)address;
    }
    if (!memory_read(address, copy, bytes))
        return NULL;
    if (kind < KNOWN_CODE && v->frame_facts)
        python_facts_add(v->frame_facts, address, copy, bytes);
    else if (kind >= KNOWN_CODE && v->code_facts)
        python_facts_add(v->code_facts, address + counts, copy + counts, bytes - counts);
    return copy;
}

static bool has_type(const struct python_layout *l, uint64_t object, uint64_t type)
{
    uint64_t found = 0;
    return !(object & KNOWN_MASK) && memory_read(object + l->type, &found, sizeof found) &&
           found == type;
}

static bool is_text(const struct python_layout *l, uint64_t object)
{
    uint64_t type = 0;
    return !(object & KNOWN_MASK) && memory_read(object + l->type, &type, sizeof type) &&
           python_type_is_text(l, type);
}

const uint8_t *python_code_head(const struct python_view *v, uint64_t code, uint8_t *copy)
{
    const struct python_layout *l = v->layout;
    const uint8_t *head = python_view(v, KNOWN_CODE, code, copy, l->code_bytes);
    if (!head || python_word(head, l->type) != l->code_type)
        return NULL;
    if (known_has(KNOWN_CODE, code))
        return head;
    if (!has_type(l, python_word(head, l->code_lines), l->bytes_type) ||
        !is_text(l, python_word(head, l->code_file)) ||
        !is_text(l, python_word(head, l->code_function)))
        return NULL;
    known_add(KNOWN_CODE, code);
    return head;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, uint32_t count)
{
    uint64_t word;
    for (; count >= sizeof word; count -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = hash_mix(hash, word);
    }
    word = count;
    memcpy(&word, bytes, count);
    return hash_mix(hash, word);
}

/* Hashes the end of an object's contents: `length` items of `size` bytes from `data` on. The
 * beginnings of two objects are more often the same. */
static bool mix_object(const struct python_view *v, enum known_kind kind, uint64_t address,
                       uint32_t data, uint64_t length, uint32_t size, uint64_t *hash)
{
    uint8_t copy[CHECK_BYTES];
    uint64_t bytes = length * size;
    uint32_t count = bytes < CHECK_BYTES ? (uint32_t)bytes : CHECK_BYTES;
    uint64_t from = address + data + (bytes - count);
    const uint8_t *p = copy;
    bool is_seen = v->is_own && known_has(kind, address);
    if (is_seen || (v->interrupted && are_readable(v->interrupted, from, count, false)))
        p = (const uint8_t *)(uintptr_t)from;
    else if (v->interrupted || !memory_read(from, copy, count))
        return false;
    if (v->is_own && !is_seen)
        known_add(kind, address);
    else if (v->code_facts)
        python_facts_add(v->code_facts, from, copy, count);
    *hash = mix_bytes(hash_mix(*hash, bytes), p, count);
    return true;
}

/* Hashes the end of the str at `address`, and its address. */
static bool mix_text(const struct python_view *v, uint64_t address, uint64_t *hash)
{
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    const uint8_t *p = python_view(v, KNOWN_TEXT, address, copy, v->layout->text_ascii);
    if (!p)
        return false;
    struct python_characters in = python_characters(v->layout, p);
    *hash = hash_mix(*hash, address);
    if (in.size)
        return mix_object(v, KNOWN_TEXT, address, in.data, in.length, in.size, hash);
    char text[CHECK_BYTES];
    if (v->code_facts)
        python_facts_spoil(v->code_facts); /* what it reads is not noted here */
    uint32_t length = python_text(v->layout, address, text, sizeof text);
    *hash = mix_bytes(*hash, (const uint8_t *)text, length);
    return true;
}

/* Is the object in use? A freed one has a reference count of 0, or the address of the next free
 * block there. Only checked if the count is a separate word, and not for immortal objects. */
static bool is_alive(const struct python_layout *l, const uint8_t *head)
{
    uint64_t count = python_word(head, 0);
    return l->type == COUNT_TYPE && count > 0 && count < COUNT_END;
}

/* Hashes the file name, which most functions of a stack share: once per walk in a handler. */
static bool mix_file(const struct python_view *v, uint64_t address, uint64_t *hash)
{
    struct python_seen *seen = v->interrupted;
    uint64_t found = 0;
    if (seen && seen->file == address) {
        found = seen->file_hash;
    } else if (!mix_text(v, address, &found)) {
        return false;
    } else if (seen) {
        seen->file = address;
        seen->file_hash = found;
    }
    *hash = hash_mix(*hash, found);
    return true;
}

/* Up to 3.11 code objects have no version numbers: uses their texts, tables and addresses. */
static uint64_t check_of_contents(const struct python_view *view, const uint8_t *head)
{
    const struct python_layout *l = view->layout;
    struct python_view led = *view, *v = &led;
    led.is_own |= view->interrupted && is_alive(l, head);
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    uint64_t lines = python_word(head, l->code_lines);
    uint64_t hash = hash_mix(python_half(head, l->code_first_line), python_word(head, l->size));
    if (!mix_file(v, python_word(head, l->code_file), &hash) ||
        !mix_text(v, python_word(head, l->code_function), &hash))
        return 0;
    const uint8_t *p = python_view(v, KNOWN_BYTES, lines, copy, l->bytes_data);
    if (!p || python_word(p, l->type) != l->bytes_type)
        return 0;
    uint64_t length = python_word(p, l->size);
    if (length > INT32_MAX || !mix_object(v, KNOWN_BYTES, lines, l->bytes_data, length, 1, &hash))
        return 0;
    return hash | 1;
}

uint64_t python_code_check(const struct python_view *v, const uint8_t *head)
{
    const struct python_layout *l = v->layout;
    uint32_t version = l->code_version == LAYOUT_NONE ? 0 : python_half(head, l->code_version);
    if (!version) /* none are left after four thousand million, or it is a frozen module's */
        return check_of_contents(v, head);
    return (uint64_t)python_half(head, l->code_first_line) << 32 | version;
}

void python_code_place(const struct python_view *v, uint64_t code, const uint8_t *head,
                       uint64_t instruction, struct python_place *place)
{
    const struct python_layout *l = v->layout;
    place->file_bytes =
        python_text(l, python_word(head, l->code_file), place->file, sizeof place->file);
    place->function_bytes = python_text(l, python_word(head, l->code_function), place->function,
                                        sizeof place->function);
    place->line =
        python_line(l, python_word(head, l->code_lines), python_half(head, l->code_first_line),
                    (int64_t)(instruction - code - l->code_instructions));
}
