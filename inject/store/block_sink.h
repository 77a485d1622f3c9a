/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sealed blocks go: the stream file (stream_out.h) today. The sealer (seal.h) knows no more
 * than this of it, and it knows nothing of threads and chunks. Whoever makes a sink has begun it,
 * with the header of the stream in it, before the first block comes; that, and what becomes of it
 * in the child of a fork, stands in its row of features.
 */
#ifndef GPUPROF_INJECT_BLOCK_SINK_H
#define GPUPROF_INJECT_BLOCK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct block_sink {
    const char *place; /* for words to the user: where it is */

    uint32_t flags; /* of its blocks: enum block_flag */

    /* Sees each record, raw, of the block that comes next; by the writer thread. May be NULL. */
    void (*see)(struct block_sink *s, uint32_t thread, uint64_t position, const uint8_t *record,
                size_t bytes);

    /*
     * Appends a whole block; by the writer thread. False: none of it is there (errno says why), all
     * before it is, and no other block comes.
     */
    bool (*append)(struct block_sink *s, const uint8_t *block, size_t bytes);

    /*
     * The recording has ended before its process: these are its counters, in place of those that
     * it began with. Where nothing can be appended there is room for no more. By the writer
     * thread, and again by any that ends the process, even several at a time.
     */
    void (*end)(struct block_sink *s, const uint64_t counters[COUNTER_COUNT]);
};

#endif
