/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory_read.h"
#include "python/python_layout.h"

#define WINDOW_BYTES    512u
#define TABLE_BYTES_MAX (1u << 20)
#define REPLACEMENT     0xfffdu

#define FLAG_IS_TEXT (1u << 28) /* in every version so far */

/* Bytes read one after another, by checked reads of a window each. */
struct window {
    uint64_t next; /* address of what is not read yet */
    uint64_t left; /* so much of it there is */
    uint32_t at;
    uint32_t end;
    bool failed;
    uint8_t bytes[WINDOW_BYTES];
};

/* The next `size` bytes (1, 2 or 4: the window's length is a multiple) as a number; 0 at the end.
 */
static uint32_t take_number(struct window *w, uint32_t size)
{
    if (w->at == w->end) {
        uint64_t length = w->left < WINDOW_BYTES ? w->left : WINDOW_BYTES;
        w->failed |= length < size || !memory_read(w->next, w->bytes, length);
        if (w->failed)
            return 0;
        w->next += length;
        w->left -= length;
        w->at = 0;
        w->end = (uint32_t)length;
    }
    uint32_t value = 0;
    memcpy(&value, w->bytes + w->at, size);
    w->at += size;
    return value;
}

static bool is_at_end(const struct window *w)
{
    return w->failed || (w->at == w->end && w->left == 0);
}

/* Returns the number of bytes; 0 if there is not so much room. */
static uint32_t put_utf8(uint32_t c, char *to, uint32_t room)
{
    if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        c = REPLACEMENT;
    uint32_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (length > room)
        return 0;
    for (uint32_t i = length - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(leads[length] | c);
    return length;
}

bool python_type_is_text(const struct python_layout *l, uint64_t type)
{
    uint64_t flags = 0;
    return type == l->text_type ||
           (!(type & KNOWN_MASK) && memory_read(type + l->type_flags, &flags, sizeof flags) &&
            flags & FLAG_IS_TEXT);
}

struct python_characters python_characters(const struct python_layout *l, const uint8_t *head)
{
    struct python_characters in = {.length = python_word(head, l->text_length)};
    /* Behind what is interned: 3 bits for a character's size, then compact, ASCII. */
    uint32_t state = python_half(head, l->text_state) >> l->text_kind, size = state & 7;
    in.data = state >> 4 & 1 ? l->text_ascii : l->text_wide;
    if (state >> 3 & 1 && (size == 1 || size == 2 || size == 4) && in.length <= INT32_MAX &&
        python_word(head, l->type) == l->text_type)
        in.size = size;
    return in;
}

/* The characters of a derived class are behind a pointer. */
static bool find_derived(const struct python_layout *l, uint64_t address, const uint8_t *head,
                         struct window *w, uint32_t *size)
{
    uint64_t length = python_word(head, l->text_length);
    *size = python_half(head, l->text_state) >> l->text_kind & 7;
    w->left = length * *size;
    return (*size == 1 || *size == 2 || *size == 4) && length <= INT32_MAX &&
           python_type_is_text(l, python_word(head, l->type)) &&
           memory_read(address + l->text_wide, &w->next, sizeof w->next);
}

uint32_t python_text(const struct python_layout *l, uint64_t address, char *to, uint32_t max)
{
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    struct window w = {0};
    to[0] = '?';
    if (address & KNOWN_MASK || !memory_read(address, head, l->text_ascii))
        return 1;
    struct python_characters in = python_characters(l, head);
    w.next = address + in.data;
    w.left = in.length * in.size;
    if (!in.size && !find_derived(l, address, head, &w, &in.size))
        return 1;
    uint32_t used = 0, put = 1;
    while (!is_at_end(&w) && put > 0) {
        uint32_t c = take_number(&w, in.size);
        put = w.failed ? 0 : put_utf8(c, to + used, max - used);
        used += put;
    }
    return used ? used : in.length > 0;
}

/* Six bits a byte, low ones first; bit 6: there are more. */
static uint32_t take_varint(struct window *w)
{
    uint32_t value = 0, byte = 0x40;
    for (unsigned shift = 0; byte & 0x40 && shift < 32 && !w->failed; shift += 6) {
        byte = take_number(w, 1);
        value |= (byte & 0x3f) << shift;
    }
    return value;
}

static int64_t take_signed_varint(struct window *w)
{
    uint32_t value = take_varint(w);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Kinds of an entry of the table, by bits 3 to 6 of its first byte. */
enum entry { ENTRY_LINE_0 = 10, ENTRY_LINE_2 = 12, ENTRY_NO_COLUMN, ENTRY_LONG, ENTRY_NONE };

/* One entry, the first byte of which is read; returns how far its line is from the last one. */
static int64_t take_entry(struct window *w, unsigned kind)
{
    int64_t delta = 0;
    if (kind == ENTRY_NONE)
        return 0;
    if (kind == ENTRY_LONG || kind == ENTRY_NO_COLUMN)
        delta = take_signed_varint(w);
    if (kind == ENTRY_LONG) {
        for (unsigned i = 0; i < 3; i++) /* end line, columns */
            take_varint(w);
    } else if (kind >= ENTRY_LINE_0 && kind <= ENTRY_LINE_2) {
        delta = kind - ENTRY_LINE_0;
        take_number(w, 1);
        take_number(w, 1);
    } else if (kind < ENTRY_LINE_0) {
        take_number(w, 1);
    }
    return delta;
}

static uint32_t line_of_varints(struct window *w, uint32_t first_line, int64_t offset)
{
    int64_t line = first_line, end = 0;
    while (!is_at_end(w)) {
        uint32_t first = take_number(w, 1);
        unsigned kind = first >> 3 & 0xf;
        line += take_entry(w, kind);
        end += 2 * (int64_t)((first & 7) + 1);
        if (w->failed || !(first & 0x80))
            return 0;
        if (offset < end)
            return kind != ENTRY_NONE && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
    }
    return 0;
}

/*
 * Up to 3.10: bytes of code, and how many lines further. In 3.10 the line is that of the code up to
 * there, or none; before, it is that of the code from there on.
 */
static uint32_t line_of_pairs(struct window *w, uint32_t first_line, int64_t offset,
                              enum python_lines kind)
{
    int64_t line = first_line, at = 0;
    while (!is_at_end(w)) {
        at += take_number(w, 1);
        int further = (int8_t)take_number(w, 1);
        if (w->failed)
            return 0;
        bool is_none = kind == LINES_PAIRS_FROM_END && further == INT8_MIN;
        if (kind == LINES_PAIRS && offset < at)
            break;
        line += is_none ? 0 : further;
        if (kind == LINES_PAIRS_FROM_END && offset < at)
            return is_none || line < 0 || line > INT32_MAX ? 0 : (uint32_t)line;
    }
    return kind == LINES_PAIRS && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

uint32_t python_line(const struct python_layout *l, uint64_t table, uint32_t first_line,
                     int64_t offset)
{
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    struct window w = {0};
    if (offset < 0)
        return first_line;
    if (table & 7 || !memory_read(table, head, l->bytes_data) ||
        python_word(head, l->type) != l->bytes_type)
        return 0;
    w.next = table + l->bytes_data;
    w.left = python_word(head, l->size);
    if (w.left > TABLE_BYTES_MAX)
        return 0;
    return l->lines == LINES_VARINTS ? line_of_varints(&w, first_line, offset)
                                     : line_of_pairs(&w, first_line, offset, l->lines);
}
