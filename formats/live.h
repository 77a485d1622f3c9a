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

/* The first page. The stream header's frame stands at 0, at most STREAM_HEADER_BYTES_MAX long. */
#define LIVE_OFFSET_MAGIC       2048 /* u64 LIVE_MAGIC, written last */
#define LIVE_OFFSET_VERSION     2056 /* u32 */
#define LIVE_OFFSET_CHUNK_BYTES 2060 /* u32 size of a chunk, header included */
#define LIVE_OFFSET_CHUNK_COUNT 2064 /* u32 chunks that the file has room for at its largest */
#define LIVE_OFFSET_CHUNKS      2068 /* u32 offset of chunk 0 */
#define LIVE_OFFSET_BYTES       2072 /* u64 the file's size; a shorter one was cut. 0: not said */
#define LIVE_OFFSET_ALIVE       2080 /* u64 ticks when its process was seen alive; 0: not said */
#define LIVE_OFFSET_FLIGHT      2088 /* u64 offset of a recorder (flight.h); 0: it has none */
#define LIVE_OFFSET_FLUSHER     2096 /* u32 process's start_time while a thread answers, or 0 */
#define LIVE_OFFSET_WAKE        2100 /* u32 shared futex: raised to wake that thread */
#define LIVE_OFFSET_ASKED       2104 /* u32 number of the last flush that another process wants */
#define LIVE_OFFSET_ANSWERED    2108 /* u32 shared futex: number of the last such flush done */
#define LIVE_OFFSET_COUNTERS    2176 /* u64 x COUNTER_COUNT, by counters.def */
#define LIVE_HEAD_BYTES         4096

/*
 * A chunk's header; records begin at LIVE_CHUNK_HEAD_BYTES. A call's record is written in place
 * when it begins and is completed when it ends; until then it is open: the open records of a
 * thread's calls, one inside the other, follow the whole ones, the outermost first.
 */
#define LIVE_CHUNK_STATE      0  /* u32 enum live_chunk_state */
#define LIVE_CHUNK_THREAD     4  /* u32 the thread's number: 1, 2, ... */
#define LIVE_CHUNK_POSITION   8  /* u64 position of the first record */
#define LIVE_CHUNK_COMMITTED  16 /* u64 bytes of whole records | count of open ones behind them */
#define LIVE_CHUNK_SEALED     24 /* u64 bytes that the writer has stored (a hint; see above) */
#define LIVE_CHUNK_TID        32 /* u32 gettid() of the owner */
#define LIVE_CHUNK_TAKE       36 /* u32 not used any more */
#define LIVE_CHUNK_PASSED     40 /* u64 calls that its owner passed by since it took the chunk */
#define LIVE_CHUNK_COUNTED    48 /* u64 of these, how many are in the counter passed_by */
#define LIVE_CHUNK_OPEN_STACK 56 /* u64 stack of its newest open call; live_open_stack */
#define LIVE_CHUNK_HEAD_BYTES 64

#define LIVE_OPEN_MASK 7u /* of LIVE_CHUNK_COMMITTED: records are whole words long */
#define LIVE_OPEN_MAX  4  /* calls of one thread open at a time: signal handlers, callbacks */

#define LIVE_CHUNK_BYTES_MIN 16384
#define LIVE_CHUNK_BYTES_MAX (16u << 20)
#define LIVE_CHUNK_COUNT_MAX 65536

/* What LIVE_CHUNK_OPEN_STACK says of the call that began then; of an earlier one it says nothing.
 */
static inline uint64_t live_open_stack(uint64_t begin_ticks, uint32_t stack)
{
    return begin_ticks << 32 | stack;
}

enum live_chunk_state {
    LIVE_FREE = 0,
    LIVE_OWNED = 1, /* a thread appends to it */
    LIVE_FULL = 2,  /* left by its thread, not yet sealed */
    LIVE_TAKEN = 3, /* on its way from FREE to OWNED: empty */
};

_Static_assert(LIVE_OFFSET_COUNTERS + 8 * COUNTER_COUNT <= LIVE_HEAD_BYTES, "counters fit");
_Static_assert(LIVE_OPEN_MAX <= LIVE_OPEN_MASK, "the count fits");
_Static_assert(8 * RECORD_WORDS_MAX <= LIVE_CHUNK_BYTES_MIN - LIVE_CHUNK_HEAD_BYTES,
               "the longest record fits into the smallest chunk");

#endif
