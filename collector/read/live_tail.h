/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a live file adds to its stream file, as further blocks in memory: records behind the last
 * position that each thread has in the stream, sorted and compressed as the writer would have done
 * it, and one record with RECORD_OPEN for each call that had not returned. About 5 bytes a call.
 */
#ifndef GPUPROF_COLLECTOR_LIVE_TAIL_H
#define GPUPROF_COLLECTOR_LIVE_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "block.h"
#include "file/live_file.h"
#include "file/stream_file.h"
#include "record/thread_table.h"

struct live_block {
    struct block_header header;
    uint8_t *stored; /* owned */
};

struct live_tail {
    struct live_block *blocks; /* owned */
    uint32_t count;
    uint64_t bytes;   /* of the blocks, as stored */
    uint64_t records; /* that were in the live file only */
    uint64_t open_calls;
    uint64_t damaged_bytes; /* of chunks whose records make no sense */
    uint64_t passed;        /* calls passed by that are in no counter */
    uint64_t missing_bytes; /* of records that are in neither file */
    bool counters_damaged;  /* of `passed`, or of the file's head, something cannot be */
};

/*
 * Reads `l`. `threads` says what the stream holds (position_end) and learns live_end and tids. An
 * open call is shown up to the latest time known: of a record in the live file, or when the process
 * was last seen alive, or `end_ns`. `is_flight`: what the writer has stored is in the stream, or is
 * not to be kept. 0, GPUPROF_IO or GPUPROF_NO_MEMORY.
 */
int live_tail_read(struct live_tail *t, const struct live_file *l, struct thread_table *threads,
                   struct zstandard *codec, bool is_flight, uint64_t end_ns);
void live_tail_release(struct live_tail *t);

#endif
