/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live file: what a process has recorded and not yet sealed into its stream file, in shared
 * memory, so that it survives SIGKILL. A page with the stream header, the layout and the loss
 * counters, then chunks; a thread appends raw records (record.h) to the chunk it owns. All fields
 * are little-endian; offsets are in bytes. See "The live file" in event-stream.md.
 *
 * Recovery. A thread's records form one sequence of bytes; a chunk says at which `position` of that
 * sequence it begins. A block says which positions it holds. So the records that are only in the
 * live file are those of each chunk from the thread's largest position_end in the stream on, up to
 * `committed`: nothing is read twice, whenever the kill came.
 */
#ifndef GPUPROF_FORMATS_LIVE_H
#define GPUPROF_FORMATS_LIVE_H

#include "record.h"

#define LIVE_MAGIC   0x3145564950554700ull /* "\0GUPIVE1": no stream begins like this */
#define LIVE_VERSION 1

/* The first page. The stream header's frame is at 0, at most STREAM_HEADER_BYTES_MAX long. */
#define LIVE_OFFSET_MAGIC       2048 /* u64 LIVE_MAGIC, written last */
#define LIVE_OFFSET_VERSION     2056 /* u32 */
#define LIVE_OFFSET_CHUNK_BYTES 2060 /* u32 size of a chunk, header included */
#define LIVE_OFFSET_CHUNK_COUNT 2064 /* u32 chunks for which the file has space at its largest */
#define LIVE_OFFSET_CHUNKS      2068 /* u32 offset of chunk 0 */
/* u64 the file's size; a shorter file was truncated. 0: not known */
#define LIVE_OFFSET_BYTES 2072
/* u64 ticks when its process was last known to live; 0: not known */
#define LIVE_OFFSET_ALIVE  2080
#define LIVE_OFFSET_FLIGHT 2088 /* u64 offset of a flight recorder (flight.h); 0: none */
/* u32 start_time of the process while a thread answers, or 0 */
#define LIVE_OFFSET_FLUSHER 2096
#define LIVE_OFFSET_WAKE    2100 /* u32 shared futex: incremented to wake that thread */
#define LIVE_OFFSET_ASKED   2104 /* u32 number of the last flush requested by another process */
/* u32 shared futex: number of the last such flush that is done */
#define LIVE_OFFSET_ANSWERED 2108
#define LIVE_OFFSET_COUNTERS 2176 /* u64 x COUNTER_COUNT, in the order of counters.def */
#define LIVE_HEAD_BYTES      4096

/*
 * A chunk's header; records begin at LIVE_CHUNK_HEAD_BYTES. A call's record is written in place
 * when the call begins, and completed when it ends; until then it is open. The open records of a
 * thread's nested calls follow the complete ones, the outermost first.
 */
#define LIVE_CHUNK_STATE    0 /* u32 enum live_chunk_state */
#define LIVE_CHUNK_THREAD   4 /* u32 the thread's number: 1, 2, ... */
#define LIVE_CHUNK_POSITION 8 /* u64 position of the first record */
/* u64 bytes of complete records | number of open ones after them */
#define LIVE_CHUNK_COMMITTED 16
#define LIVE_CHUNK_SEALED    24 /* u64 bytes that the writer has stored (a hint; see above) */
#define LIVE_CHUNK_TID       32 /* u32 gettid() of the owner */
#define LIVE_CHUNK_TAKE      36 /* u32 no longer used */
/* u64 calls that its owner has passed by since it took the chunk */
#define LIVE_CHUNK_PASSED     40
#define LIVE_CHUNK_COUNTED    48 /* u64 of these, how many the counter passed_by includes */
#define LIVE_CHUNK_OPEN_STACK 56 /* u64 stack of its newest open call; live_open_stack */
#define LIVE_CHUNK_HEAD_BYTES 64

#define LIVE_OPEN_MASK 7u /* in LIVE_CHUNK_COMMITTED: records consist of whole words */
#define LIVE_OPEN_MAX  4  /* open calls of one thread: signal handlers, callbacks */

#define LIVE_CHUNK_BYTES_MIN 16384
#define LIVE_CHUNK_BYTES_MAX (16u << 20)
#define LIVE_CHUNK_COUNT_MAX 65536

/* The value of LIVE_CHUNK_OPEN_STACK for the call that began then; it is not valid for an earlier
 * call. */
static inline uint64_t live_open_stack(uint64_t begin_ticks, uint32_t stack)
{
    return begin_ticks << 32 | stack;
}

enum live_chunk_state {
    LIVE_FREE = 0,
    LIVE_OWNED = 1, /* a thread appends to it */
    LIVE_FULL = 2,  /* left by its thread, not yet sealed */
    LIVE_TAKEN = 3, /* changing from FREE to OWNED: empty */
};

_Static_assert(LIVE_OFFSET_COUNTERS + 8 * COUNTER_COUNT <= LIVE_HEAD_BYTES, "counters fit");
_Static_assert(LIVE_OPEN_MAX <= LIVE_OPEN_MASK, "the count fits");
_Static_assert(8 * RECORD_WORDS_MAX <= LIVE_CHUNK_BYTES_MIN - LIVE_CHUNK_HEAD_BYTES,
               "the longest record fits into the smallest chunk");

#endif
