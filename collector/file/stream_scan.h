/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a stream file from block header to block header without decompressing, and finds its way
 * again behind damage: from the last byte that made sense it searches forward for the next block
 * header whose checksum holds. Every whole block is found; what lies between is counted.
 */
#ifndef GPUPROF_COLLECTOR_STREAM_SCAN_H
#define GPUPROF_COLLECTOR_STREAM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "file/stream_file.h"

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

#endif
