/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream file opened for reading, and a pool that bounds the open files: the least recently used
 * one is closed, and opened again when needed. Bytes are read by pread within a size taken once, so
 * a file that shrinks meanwhile gives an error, never a signal.
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

#define FILE_POOL_MAX       128   /* open descriptors */
#define STREAM_WINDOW_BYTES 32768 /* for each of these, the bytes around its last block */
struct stream_file {
    char *path; /* owned */
    dev_t device;
    ino_t inode;
    uint64_t size;        /* bytes to read; later additions of a running process are ignored */
    uint64_t first_block; /* offset after the stream header */
    uint64_t used;        /* last use, on the pool's clock */
    int fd;               /* -1: closed by the pool */
    bool is_own;          /* an unnamed file that the pool does not close */
    uint8_t *window;      /* owned while open: the last bytes read; NULL: none */
    uint64_t window_from; /* its offset in the file */
    size_t window_bytes;
    uint32_t block_bytes; /* header and stored payload of the last block read */
};

struct file_pool {
    struct stream_file *open[FILE_POOL_MAX];
    unsigned count;
    uint64_t clock;
};

/* Opens `path` and takes its size without reading. Returns 0, GPUPROF_IO (errno), or
 * GPUPROF_NOT_OURS if it is not a regular file. After 0, call stream_file_release. */
int stream_file_init(struct stream_file *f, struct file_pool *pool, const char *path);
void stream_file_release(struct stream_file *f, struct file_pool *pool);

/* Takes the size again, to see additions of a running process. Returns 0 or GPUPROF_IO. */
int stream_file_resize(struct stream_file *f, struct file_pool *pool);

/* Reopens it if another file has its name now. Returns as stream_file_init. */
int stream_file_renew(struct stream_file *f, struct file_pool *pool);

/* From now on it is the unnamed copy open as `fd`, which it owns. Returns 0 or GPUPROF_IO. */
int stream_file_exchange(struct stream_file *f, struct file_pool *pool, int fd);

/* Reads the header and sets first_block. Returns 0 or an error of stream_header_read or pread. */
int stream_file_header(struct stream_file *f, struct file_pool *pool, struct stream_header *h);

/* Reads the header of a file that is not open. Returns 0, or an error as above. */
int stream_header_of(const char *path, struct stream_header *h);

/* Reads the block at `offset`. Sets *stored to its payload, which is in `data`
 * (BLOCK_STORED_BYTES_MAX) or visible until the next read of a file. Returns its header's bytes,
 * which precede the payload in the file, GPUPROF_DAMAGED or GPUPROF_IO. */
int stream_file_block(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                      struct block_header *h, uint8_t *data, const uint8_t **stored);

/*
 * Walks a stream file from header to header without decompressing. After damage it searches forward
 * from the last valid byte for the next header with a correct checksum. So it finds every whole
 * block, and counts the bytes between.
 */
struct stream_scan {
    struct stream_file *file;
    struct file_pool *pool;
    uint64_t offset;
    uint64_t search_from;  /* where to search if `offset` has no header */
    uint64_t skipped;      /* bytes outside of blocks, without the torn end */
    uint64_t torn;         /* bytes of an incomplete last block */
    bool torn_header_read; /* its header is complete: torn_header */
    struct block_header torn_header;
};

struct block_place {
    uint64_t offset; /* in the stream file, or LIVE_BLOCK + index in live.blocks */
    struct block_header header;
    bool is_taken; /* it only has facts about functions and the process, already known */
    bool apart;    /* the block before it in the file is left out */
};
#define LIVE_BLOCK (1ull << 63)

/* Starts at `offset`, which must be a block header's or the end. */
void stream_scan_init(struct stream_scan *s, struct stream_file *file, struct file_pool *pool,
                      uint64_t offset);

/* Returns 1 and sets offset and header of a block with its payload inside the file (checksum not
 * yet verified), 0 at the end, or GPUPROF_IO. */
int stream_scan_next(struct stream_scan *s, struct block_place *block);

/* A block's stored payload: verification and decompression. */

/* Verifies the checksum of the stored_bytes at `stored` and decompresses them to `out`, which has
 * room for h->payload_bytes. Returns 0 or GPUPROF_DAMAGED. */
int payload_open(struct zstandard *z, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out);

/*
 * Makes a block of the encoder's records, with times in `scale` (NULL: unchanged). Sets *stored
 * (the caller frees it) and `h`, except sequence, thread, position and flags, which the caller
 * sets. Returns 0 or an error of the encoder.
 */
int block_store(struct zstandard *z, struct block_encoder *e, const struct clock_scale *scale,
                struct block_header *h, uint8_t **stored);

#endif
