/* SPDX-License-Identifier: Apache-2.0 */
#include "base/packed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file_at.h"
#include "bytes.h"
#include "error.h"

#define SIZE_BYTES 4 /* bytes of a piece's length in the file */
#define WAYS       4 /* cache slots that a piece may use */

static uint64_t pieces_of(uint64_t length)
{
    return length / PACKED_PIECE_BYTES + (length % PACKED_PIECE_BYTES != 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

int packed_writer_init(struct packed_writer *w, int fd, uint64_t at)
{
    *w = (struct packed_writer){.fd = fd, .at = at, .piece = malloc(PACKED_PIECE_BYTES)};
    return w->piece ? zstandard_init(&w->zstd) : GPUPROF_NO_MEMORY;
}

void packed_writer_release(struct packed_writer *w)
{
    free(w->piece);
    free(w->sizes);
    zstandard_release(&w->zstd);
    *w = (struct packed_writer){0};
}

static int write_piece(struct packed_writer *w, size_t length)
{
    uint8_t *packed = NULL;
    size_t stored = 0;
    int error = zstandard_pack(&w->zstd, w->piece, length, &packed, &stored);
    if (error < 0)
        return error;
    bool is_smaller = stored < length && stored >= PACKED_STORED_MIN;
    stored = is_smaller ? stored : length;
    error = file_write_at(w->fd, w->at, is_smaller ? packed : w->piece, stored);
    free(packed);
    w->at += stored;
    return error < 0 ? error : ARRAY_PUSH(w->sizes, w->count, &(uint32_t){htole32(stored)});
}

int packed_put(struct packed_writer *w, const uint8_t *data, size_t length)
{
    int error = 0;
    while (length && error == 0) {
        size_t there = w->length % PACKED_PIECE_BYTES, room = PACKED_PIECE_BYTES - there;
        size_t taken = length < room ? length : room;
        memcpy(w->piece + there, data, taken);
        w->length += taken;
        data += taken;
        length -= taken;
        if (taken == room)
            error = write_piece(w, PACKED_PIECE_BYTES);
    }
    return error;
}

int packed_end(struct packed_writer *w)
{
    size_t rest = w->length % PACKED_PIECE_BYTES;
    int error = rest ? write_piece(w, rest) : 0;
    if (error == 0)
        error = file_write_at(w->fd, w->at, w->sizes, (size_t)w->count * SIZE_BYTES);
    w->at += (uint64_t)w->count * SIZE_BYTES;
    return error;
}

/* ---- reading --------------------------------------------------------------------------------- */

int packed_cache_init(struct packed_cache *c)
{
    *c = (struct packed_cache){0};
    return zstandard_init(&c->zstd);
}

void packed_cache_release(struct packed_cache *c)
{
    for (unsigned i = 0; i < PACKED_SLOTS; i++)
        free(c->slots[i].data);
    zstandard_release(&c->zstd);
}

int packed_open(struct packed *p, int fd, uint64_t at, uint64_t length, uint64_t stored)
{
    uint64_t count = pieces_of(length);
    *p = (struct packed){.fd = fd, .length = length};
    if (count > stored / SIZE_BYTES)
        return GPUPROF_DAMAGED;
    uint64_t end = at + stored - count * SIZE_BYTES;
    p->begins = malloc((count + 1) * sizeof *p->begins);
    if (!p->begins)
        return GPUPROF_NO_MEMORY;
    /* Reads the sizes into the table's upper half; computing begins overwrites them in order. */
    uint8_t *sizes = (uint8_t *)(p->begins + 1) + count * SIZE_BYTES;
    ssize_t got = file_read_at(fd, end, sizes, count * SIZE_BYTES);
    bool is_good = got == (ssize_t)(count * SIZE_BYTES);
    p->begins[0] = at;
    for (uint64_t i = 0; i < count && is_good; i++) {
        uint32_t size = load_u32(sizes + i * SIZE_BYTES);
        uint64_t bytes = length - i * PACKED_PIECE_BYTES;
        bool is_last = bytes <= PACKED_PIECE_BYTES;
        is_good = size && size <= (is_last ? bytes : PACKED_PIECE_BYTES) &&
                  (is_last || size >= PACKED_STORED_MIN);
        p->begins[i + 1] = p->begins[i] + size;
    }
    return got < 0 ? (int)got : is_good && p->begins[count] == end ? 0 : GPUPROF_DAMAGED;
}

void packed_release(struct packed *p)
{
    free(p->begins);
    *p = (struct packed){0};
}

/* Reads piece `piece` into the slot. */
static int packed_load(struct packed *p, uint64_t piece, struct packed_slot *slot)
{
    uint8_t stored[PACKED_PIECE_BYTES];
    uint64_t left = p->length - piece * PACKED_PIECE_BYTES;
    size_t bytes = left < PACKED_PIECE_BYTES ? left : PACKED_PIECE_BYTES;
    size_t size = p->begins[piece + 1] - p->begins[piece];
    slot->of = NULL;
    if (!slot->data && !(slot->data = malloc(PACKED_PIECE_BYTES)))
        return GPUPROF_NO_MEMORY;
    ssize_t got = file_read_at(p->fd, p->begins[piece], size < bytes ? stored : slot->data, size);
    if (got != (ssize_t)size)
        return got < 0 ? (int)got : GPUPROF_DAMAGED;
    int error =
        size < bytes ? zstandard_unpack(&p->cache->zstd, stored, size, slot->data, bytes) : 0;
    slot->piece = piece;
    slot->of = error == 0 ? p : NULL;
    return error;
}

/* Returns the piece, in place of the least recently used of its slots. NULL: *error. */
static const uint8_t *fetch(struct packed *p, uint64_t piece, int *error)
{
    struct packed_cache *c = p->cache;
    uint64_t mixed = ((uintptr_t)p / sizeof *p + piece) * 0x9e3779b97f4a7c15u;
    struct packed_slot *slots = &c->slots[(mixed >> 32) % (PACKED_SLOTS / WAYS) * WAYS];
    struct packed_slot *oldest = slots;
    for (unsigned i = 0; i < WAYS; i++) {
        struct packed_slot *slot = &slots[i];
        if (slot->of == p && slot->piece == piece) {
            slot->used = ++c->clock;
            return slot->data;
        }
        oldest = slot->used < oldest->used ? slot : oldest;
    }
    oldest->used = ++c->clock;
    *error = packed_load(p, piece, oldest);
    return *error < 0 ? NULL : oldest->data;
}

int packed_read(struct packed *p, uint64_t at, uint8_t *to, size_t length)
{
    assert(at <= p->length && length <= p->length - at);
    while (length) {
        int error = 0;
        size_t from = at % PACKED_PIECE_BYTES, there = PACKED_PIECE_BYTES - from;
        size_t bytes = length < there ? length : there;
        const uint8_t *data = fetch(p, at / PACKED_PIECE_BYTES, &error);
        if (!data)
            return error;
        memcpy(to, data + from, bytes);
        to += bytes;
        at += bytes;
        length -= bytes;
    }
    return 0;
}
