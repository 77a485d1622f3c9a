/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "bytes.h"

#define BLOCKS_MAX 512
#define CHANGES    6 /* at most, of one call */

struct piece {
    const uint8_t *at;
    size_t bytes;
    struct block_header header;
};

struct pieces {
    struct piece list[BLOCKS_MAX];
    size_t count;
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed);

/* Returns the size of what stands before the blocks; 0: there are none. */
static size_t find(struct pieces *p, const uint8_t *data, size_t bytes)
{
    size_t begin = bytes < 8 ? bytes : 8 + (size_t)load_u32(data + 4);
    p->count = 0;
    for (size_t at = begin; at < bytes && p->count < BLOCKS_MAX;) {
        struct piece *piece = &p->list[p->count];
        int head = block_header_read(&piece->header, data + at, bytes - at);
        if (head <= 0 || piece->header.stored_bytes > bytes - at - (size_t)head)
            break;
        piece->at = data + at;
        piece->bytes = (size_t)head + piece->header.stored_bytes;
        at += piece->bytes;
        p->count++;
    }
    return p->count ? begin : 0;
}

static void insert(struct pieces *p, size_t place, struct piece piece)
{
    if (p->count == BLOCKS_MAX)
        return;
    memmove(p->list + place + 1, p->list + place, (p->count - place) * sizeof piece);
    p->list[place] = piece;
    p->count++;
}

static void drop(struct pieces *p, size_t place)
{
    p->count--;
    memmove(p->list + place, p->list + place + 1, (p->count - place) * sizeof p->list[0]);
}

static void change(struct pieces *p, const struct pieces *other, unsigned *random)
{
    size_t a = (unsigned)rand_r(random) % p->count, b = (unsigned)rand_r(random) % p->count;
    struct piece piece = p->list[a];
    switch (rand_r(random) % (other->count ? 6 : 4)) {
    case 0:
        if (p->count > 1)
            drop(p, a);
        break;
    case 1: insert(p, b, piece); break;
    case 2:
        drop(p, a);
        insert(p, b < p->count ? b : p->count, piece);
        break;
    case 3: p->list[a].header.thread = p->list[b].header.thread; break;
    default: insert(p, b, other->list[(unsigned)rand_r(random) % other->count]); break;
    }
}

/* As if the process had written these blocks in this order. */
static void renumber(struct pieces *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct block_header *h = &p->list[i].header;
        uint64_t length = h->position_end - h->position_begin;
        h->sequence = i;
        h->position_begin = 0;
        for (size_t k = 0; k < i; k++)
            if (p->list[k].header.thread == h->thread)
                h->position_begin = p->list[k].header.position_end;
        h->position_end = h->position_begin + length;
    }
}

size_t fuzz_blocks(uint8_t *data, size_t bytes, size_t bytes_max, const uint8_t *other,
                   size_t other_bytes, unsigned seed)
{
    static struct pieces pieces, others;
    size_t begin = find(&pieces, data, bytes), at = begin;
    others.count = 0;
    if (other)
        find(&others, other, other_bytes);
    uint8_t *made = begin && begin <= bytes_max ? malloc(bytes_max) : NULL;
    if (!made)
        return 0;
    for (int i = 1 + rand_r(&seed) % CHANGES; i; i--)
        change(&pieces, &others, &seed);
    if (rand_r(&seed) % 4)
        renumber(&pieces);
    memcpy(made, data, begin);
    for (size_t i = 0; i < pieces.count && pieces.list[i].bytes <= bytes_max - at; i++) {
        const struct piece *piece = &pieces.list[i];
        memcpy(made + at, piece->at, piece->bytes);
        if (piece->bytes - piece->header.stored_bytes == BLOCK_HEADER_BYTES)
            block_header_write(&piece->header, made + at);
        at += piece->bytes;
    }
    memcpy(data, made, at);
    free(made);
    return at;
}

/* ---- for libFuzzer: the first byte says what the rest is (fuzz_stream.c) --------------------- */

static int is_stream(const uint8_t *data, size_t size)
{
    return size && (data[0] & 15) < 2;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t made = 0;
    if (is_stream(data, size) && rand_r(&seed) % 2)
        made = fuzz_blocks(data + 1, size - 1, max_size - 1, NULL, 0, seed);
    if (!made)
        return LLVMFuzzerMutate(data, size, max_size);
    if (rand_r(&seed) % 2) /* and is read in another way */
        data[0] = (uint8_t)((data[0] & 15) | (rand_r(&seed) & 15) << 4);
    return 1 + made;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed)
{
    if (!is_stream(data, size) || !is_stream(other, other_size) || size > max_size)
        return 0;
    memcpy(out, data, size);
    size_t made = fuzz_blocks(out + 1, size - 1, max_size - 1, other + 1, other_size - 1, seed);
    return made ? 1 + made : 0;
}
