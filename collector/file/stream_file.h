/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream file opened for reading, and the pool that bounds how many are open at a time: with
 * thousands of files the one that was not used for longest is closed and opened again when needed.
 * Bytes come by pread within the size taken once, so that a file that shrinks while it is read
 * gives an error, never a signal.
 */
#ifndef GPUPROF_COLLECTOR_STREAM_FILE_H
#define GPUPROF_COLLECTOR_STREAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/zstandard.h"
#include "block.h"
#include "stream.h"

#define FILE_POOL_MAX       128   /* descriptors in use at a time */
#define STREAM_WINDOW_BYTES 32768 /* of each of these, what lies around its last block */
struct stream_file {
    char *path; /* owned */
    dev_t device;
    ino_t inode;
    uint64_t size;        /* bytes that are looked at; what a running process adds is not */
    uint64_t first_block; /* offset behind the stream header */
    uint64_t used;        /* the pool's clock at the last use */
    int fd;               /* -1: closed by the pool */
    bool is_own;          /* it is no file of that name, and is not closed by the pool */
    uint8_t *window;      /* owned while it is open: what was looked at last; NULL: nothing */
    uint64_t window_from; /* it begins there */
    size_t window_bytes;
};

struct file_pool {
    struct stream_file *open[FILE_POOL_MAX];
    unsigned count;
    uint64_t clock;
};

/*
 * Opens `path` and takes its size; reads no byte. 0, GPUPROF_IO (errno), GPUPROF_NOT_OURS if it is
 * no regular file, or GPUPROF_NO_MEMORY. After 0, stream_file_release must follow.
 */
int stream_file_init(struct stream_file *f, struct file_pool *pool, const char *path);
void stream_file_release(struct stream_file *f, struct file_pool *pool);

/* Takes the size again: what a running process has added since becomes visible. 0, GPUPROF_IO. */
int stream_file_resize(struct stream_file *f, struct file_pool *pool);

/* Opens it anew if another file has its name by now. As stream_file_init. */
int stream_file_renew(struct stream_file *f, struct file_pool *pool);

/* From now on it is the one that is open as `fd`, a copy without a name, which it owns. 0 or
 * GPUPROF_IO. */
int stream_file_exchange(struct stream_file *f, struct file_pool *pool, int fd);

/* Reads the stream header and sets first_block; 0 or as stream_header_read and pread. */
int stream_file_header(struct stream_file *f, struct file_pool *pool, struct stream_header *h);

/* Of a file that is not open: 0, or as stream_file_init or stream_header_read. */
int stream_header_of(const char *path, struct stream_header *h);

/*
 * Reads up to `count` bytes at `offset`, fewer only at the end of the file. Returns their number
 * or GPUPROF_IO.
 */
ssize_t stream_file_read(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                         uint8_t *data, size_t count);

/*
 * Makes `count` bytes at `offset`, STREAM_WINDOW_BYTES at most and fewer only at the end of the
 * file, visible at *data, until the next look at a file. If they must be read, `ahead` bytes are,
 * and more and more while looks are near each other, so that small blocks need few reads. Returns
 * how many are visible, or GPUPROF_IO or GPUPROF_NO_MEMORY.
 */
ssize_t stream_file_look(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                         size_t count, size_t ahead, const uint8_t **data);

/*
 * Walks a stream file from block header to block header without decompressing, and finds its way
 * again behind damage: from the last byte that made sense it searches forward for the next block
 * header whose checksum holds. Every whole block is found; what lies between is counted.
 */
struct stream_scan {
    struct stream_file *file;
    struct file_pool *pool;
    uint64_t offset;
    uint64_t search_from;  /* where to look for a header if there is none at `offset` */
    uint64_t skipped;      /* bytes that belong to no block, the torn end left out */
    uint64_t torn;         /* bytes of a last block that is not complete */
    bool torn_header_read; /* its header was whole: torn_header */
    struct block_header torn_header;
};

struct scanned_block {
    struct block_header header;
    uint64_t offset;  /* of the header */
    uint64_t payload; /* of the stored payload */
};

/* Starts at `offset`, which must be the offset of a block header or of the end. */
void stream_scan_init(struct stream_scan *s, struct stream_file *file, struct file_pool *pool,
                      uint64_t offset);

/* 1 and a block whose payload lies within the file (its checksum is not yet tried), 0 at the end,
 * GPUPROF_IO or GPUPROF_NO_MEMORY. */
int stream_scan_next(struct stream_scan *s, struct scanned_block *block);

/* The stored payload of a block, checked and decompressed. */

/*
 * Checks the checksum of the stored_bytes at `stored` and decompresses them to `out`, which has
 * room for h->payload_bytes. 0 or GPUPROF_DAMAGED.
 */
int payload_open(struct zstandard *z, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out);

/*
 * Makes a block of the encoder's records, with their times in `scale` (NULL: as they are): *stored
 * (the caller frees), and `h`, but for its sequence, thread, position and flags, which are the
 * caller's. 0 or GPUPROF_NO_MEMORY.
 */
int block_store(struct zstandard *z, struct block_encoder *e, const struct clock_scale *scale,
                struct block_header *h, uint8_t **stored);

#endif
