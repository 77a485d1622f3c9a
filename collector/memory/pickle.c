/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/snapshot.h"

#include <string.h>

#define HEAD_BYTES 16 /* an opcode with its number */

/* Named as in Python's pickletools. */
enum opcode {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    BINUNICODE = 'X',
    BININT1 = 'K',
    LONG1 = 0x8a,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    TUPLE2 = 0x86,
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    BINGET = 'h',
    LONG_BINGET = 'j'
};

/* Writes the opcode and `bytes` bytes of the number, lowest first. */
static void pickle_put(struct pickle *p, enum opcode opcode, uint64_t number, unsigned bytes)
{
    char *out = output_room(p->out, HEAD_BYTES);
    *out++ = (char)opcode;
    for (; bytes--; number >>= 8)
        *out++ = (char)(number & 0xff);
    output_advance(p->out, out);
}

/* Starts an item; long lists get theirs in batches. */
static void begin_item(struct pickle *p)
{
    if (!p->depth || !p->open[p->depth - 1].is_list)
        return;
    if (p->open[p->depth - 1].items++ == PICKLE_BATCH) {
        pickle_put(p, APPENDS, 0, 0);
        pickle_put(p, MARK, 0, 0);
        p->open[p->depth - 1].items = 1;
    }
}

void pickle_begin(struct pickle *p, struct output *out)
{
    *p = (struct pickle){.out = out};
    pickle_put(p, PROTO, 2, 1);
}

void pickle_end(struct pickle *p)
{
    assert(p->depth == 0);
    pickle_put(p, STOP, 0, 0);
}

static void open_item(struct pickle *p, enum opcode opcode, bool is_list)
{
    assert(p->depth < PICKLE_DEPTH_MAX);
    begin_item(p);
    pickle_put(p, opcode, 0, 0);
    pickle_put(p, MARK, 0, 0);
    p->open[p->depth].is_list = is_list;
    p->open[p->depth++].items = 0;
}

void pickle_open_dict(struct pickle *p)
{
    open_item(p, EMPTY_DICT, false);
}

void pickle_open_list(struct pickle *p)
{
    open_item(p, EMPTY_LIST, true);
}

void pickle_close(struct pickle *p)
{
    assert(p->depth > 0);
    pickle_put(p, p->open[--p->depth].is_list ? APPENDS : SETITEMS, 0, 0);
}

void pickle_text(struct pickle *p, const char *text)
{
    size_t length = strlen(text);
    begin_item(p);
    pickle_put(p, BINUNICODE, length, 4);
    output_write(p->out, text, length);
}

/* LONG1 is signed: one more byte if the highest bit is set. */
static void pickle_put_number(struct pickle *p, uint64_t number)
{
    if (number <= UINT8_MAX) {
        pickle_put(p, BININT1, number, 1);
    } else {
        unsigned bytes = 2;
        while (bytes < 9 && number >> (8 * bytes - 1))
            bytes++;
        pickle_put(p, LONG1, bytes, 1);
        char *out = output_room(p->out, HEAD_BYTES);
        for (unsigned i = 0; i < bytes; i++)
            *out++ = (char)(i < 8 ? number >> (8 * i) & 0xff : 0);
        output_advance(p->out, out);
    }
}

void pickle_number(struct pickle *p, uint64_t number)
{
    begin_item(p);
    pickle_put_number(p, number);
}

void pickle_bool(struct pickle *p, bool value)
{
    begin_item(p);
    pickle_put(p, value ? NEWTRUE : NEWFALSE, 0, 0);
}

void pickle_pair(struct pickle *p, uint64_t first, uint64_t second)
{
    begin_item(p);
    pickle_put_number(p, first);
    pickle_put_number(p, second);
    pickle_put(p, TUPLE2, 0, 0);
}

uint32_t pickle_remember(struct pickle *p)
{
    uint32_t number = p->memo_count++;
    if (number <= UINT8_MAX)
        pickle_put(p, BINPUT, number, 1);
    else
        pickle_put(p, LONG_BINPUT, number, 4);
    return number + 1;
}

void pickle_again(struct pickle *p, uint32_t remembered)
{
    begin_item(p);
    if (remembered - 1 <= UINT8_MAX)
        pickle_put(p, BINGET, remembered - 1, 1);
    else
        pickle_put(p, LONG_BINGET, remembered - 1, 4);
}
