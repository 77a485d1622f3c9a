/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes in a file, compressed in pieces of PACKED_PIECE_BYTES each (the last may be
 * shorter), so that any of it can be read without the rest. The pieces lie one behind the other,
 * each as it is if compressing does not make it smaller; behind them, for each, how many bytes it
 * takes in the file (u32, little-endian).
 *
 * Memory: a writer has one piece and 4 bytes for each piece that it wrote. A reader has 8 bytes for
 * each piece; all readers together have one cache of PACKED_SLOTS pieces, 4 MiB.
 */
#ifndef GPUPROF_COLLECTOR_PACKED_H
#define GPUPROF_COLLECTOR_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "base/zstandard.h"

#define PACKED_PIECE_BYTES 16384
#define PACKED_STORED_MIN  16 /* bytes that any piece takes, but for the last one */
#define PACKED_SLOTS       256

struct packed_writer {
    int fd;          /* a view */
    uint64_t at;     /* in the file, of what is written next */
    uint64_t length; /* of the stream so far */
    uint8_t *piece;  /* owned: the one that is not full yet */
    uint32_t *sizes; /* owned: of the pieces in the file */
    uint32_t count;
    struct zstandard zstd;
};

/* The stream begins at `at` of the file. Release it also after an error. Functions that return int
 * return 0, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY. */
int packed_writer_init(struct packed_writer *w, int fd, uint64_t at);
void packed_writer_release(struct packed_writer *w);
int packed_put(struct packed_writer *w, const uint8_t *data, size_t length);

/* Nothing follows: w->at is the end of the stream in the file. */
int packed_end(struct packed_writer *w);

struct packed_slot {
    const struct packed *of; /* NULL: free */
    uint64_t piece, used;    /* used: by the cache's clock */
    uint8_t *data;           /* owned */
};

struct packed_cache {
    struct zstandard zstd;
    uint64_t clock;
    struct packed_slot slots[PACKED_SLOTS];
};

/* 0 or GPUPROF_NO_MEMORY; release it in both cases. */
int packed_cache_init(struct packed_cache *c);
void packed_cache_release(struct packed_cache *c);

/* A stream that is read. It must stay where it is after the first packed_read. */
struct packed {
    int fd;          /* a view */
    uint64_t length; /* of the stream */
    uint64_t
        *begins; /* owned: where piece i begins in the file; piece i + 1 begins where it ends */
    struct packed_cache *cache; /* a view; set by the caller before the first packed_read */
};

/* `length` bytes, which take `stored` bytes from `at` of the file on. 0, GPUPROF_DAMAGED,
 * GPUPROF_IO (errno) or GPUPROF_NO_MEMORY; packed_release in each case. */
int packed_open(struct packed *p, int fd, uint64_t at, uint64_t length, uint64_t stored);
void packed_release(struct packed *p);

/* Copies these bytes, which must be within the stream. Errors as above. */
int packed_read(struct packed *p, uint64_t at, uint8_t *to, size_t length);

#endif
