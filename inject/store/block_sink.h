/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives sealed blocks: the stream file (stream_out.h), or the flight recorder. The sealer
 * (seal.h) knows only this interface, and a sink knows nothing of threads and chunks. Whoever makes
 * a sink writes the stream's header before the first block; that, and what happens in the child of
 * a fork, is in its row of features.
 */
#ifndef GPUPROF_INJECT_BLOCK_SINK_H
#define GPUPROF_INJECT_BLOCK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct block_sink {
    const char *place; /* its path, for messages */

    uint32_t flags; /* of its blocks: enum block_flag */

    /* Called with each raw record of the next block, by the writer thread. May be NULL. */
    void (*see)(struct block_sink *s, uint32_t thread, uint64_t position, const uint8_t *record,
                size_t bytes);

    /* Appends a complete block; called by the writer thread. Returns false with errno set if it is
     * not stored: earlier blocks are, and no other follows. */
    bool (*append)(struct block_sink *s, const uint8_t *block, size_t bytes);

    /*
     * The recording has ended before its process: writes its counters over the initial ones, since
     * nothing else can be appended. Called by the writer thread, and again by each thread that ends
     * the process, even several at once.
     */
    void (*end)(struct block_sink *s, const uint64_t counters[COUNTER_COUNT]);
};

#endif
