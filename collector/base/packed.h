/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte stream in a file, compressed in pieces of PACKED_PIECE_BYTES (the last may be shorter), so
 * that any part can be read alone. Pieces are stored one after the other, uncompressed if
 * compression does not help; then follows each piece's size in the file (u32, little-endian).
 * Memory: a writer holds one piece and 4 bytes per piece written. A reader holds 8 bytes per piece;
 * all readers share one cache of PACKED_SLOTS pieces, 4 MiB.
 */
#ifndef GPUPROF_COLLECTOR_PACKED_H
#define GPUPROF_COLLECTOR_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "base/zstandard.h"

#define PACKED_PIECE_BYTES 16384
#define PACKED_STORED_MIN  16 /* least bytes of a piece, except the last */
#define PACKED_SLOTS       256

struct packed_writer {
    int fd;          /* a view */
    uint64_t at;     /* file offset of the next write */
    uint64_t length; /* of the stream so far */
    uint8_t *piece;  /* owned: the current, incomplete piece */
    uint32_t *sizes; /* owned: sizes of the pieces in the file */
    uint32_t count;
    struct zstandard zstd;
};

/* Starts a stream at offset `at` of the file. Release it also after an error. Functions that return
 * int return 0, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY. */
int packed_writer_init(struct packed_writer *w, int fd, uint64_t at);
void packed_writer_release(struct packed_writer *w);
int packed_put(struct packed_writer *w, const uint8_t *data, size_t length);

/* Ends the stream; w->at is then its end in the file. */
int packed_end(struct packed_writer *w);

struct packed_slot {
    const struct packed *of; /* NULL: free */
    uint64_t piece, used;    /* used: time on the cache's clock */
    uint8_t *data;           /* owned */
};

struct packed_cache {
    struct zstandard zstd;
    uint64_t clock;
    struct packed_slot slots[PACKED_SLOTS];
};

/* Returns 0 or GPUPROF_NO_MEMORY. Release it in both cases. */
int packed_cache_init(struct packed_cache *c);
void packed_cache_release(struct packed_cache *c);

/* A stream for reading. It must not move after the first packed_read. */
struct packed {
    int fd;                     /* a view */
    uint64_t length;            /* of the stream */
    uint64_t *begins;           /* owned: offset of each piece; piece i ends where i + 1 begins */
    struct packed_cache *cache; /* a view; set it before the first packed_read */
};

/* Opens a stream of `length` bytes that takes `stored` bytes of the file from `at`. Returns 0,
 * GPUPROF_DAMAGED, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY; call packed_release in each case. */
int packed_open(struct packed *p, int fd, uint64_t at, uint64_t length, uint64_t stored);
void packed_release(struct packed *p);

/* Copies bytes, which must lie within the stream. Errors as above. */
int packed_read(struct packed *p, uint64_t at, uint8_t *to, size_t length);

#endif
