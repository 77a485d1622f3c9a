/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (run --flight): the last blocks of a process, in its live file, and what it
 * takes to put them into the stream file: a dump. See "The flight recorder" in event-stream.md.
 *
 * Blocks go into one segment after another; when all are in use the oldest is emptied for the next.
 * So that whatever is oldest can be read without what was before it, each segment begins with that
 * of it which is still needed: names, what is open, what is held (BLOCK_OF_STATE).
 */
#ifndef GPUPROF_FORMATS_FLIGHT_H
#define GPUPROF_FORMATS_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_MAGIC      0x3147494c46504700ull /* "\0GPFLIG1" */
#define FLIGHT_SEGMENTS   4
#define FLIGHT_PAGE_BYTES 4096 /* then the segments, one behind another */

/* The page, at LIVE_OFFSET_FLIGHT. All are u64. */
#define FLIGHT_OFFSET_MAGIC         0 /* written last */
#define FLIGHT_OFFSET_SEGMENT_BYTES 8
#define FLIGHT_OFFSET_WRITTEN       16 /* which of two says what is in the stream file, 0 or 1: */
#define FLIGHT_OFFSET_SEGMENTS      64 /* of each, FLIGHT_SEGMENT_ENTRY bytes: */
#define FLIGHT_SEGMENT_ENTRY        40
#define FLIGHT_SEGMENT_NUMBER       0   /* 1, 2, ... in time; 0: it is empty, or not whole */
#define FLIGHT_SEGMENT_BYTES        8   /* of whole blocks */
#define FLIGHT_SEGMENT_STATE_BYTES  16  /* of these, what it begins with */
#define FLIGHT_SEGMENT_BEGIN_NS     24  /* nothing that began later is missing */
#define FLIGHT_SEGMENT_FIRST        32  /* number of its first block */
#define FLIGHT_OFFSET_DONE          512 /* at this, and FLIGHT_DONE_ENTRY bytes further: */
#define FLIGHT_DONE_ENTRY           64
#define FLIGHT_DONE_STREAM_BYTES    0  /* of the stream file: behind it is a dump under way */
#define FLIGHT_DONE_DUMPS           8  /* that are whole */
#define FLIGHT_DONE_NEXT            16 /* number of the first block that is in none of them */
#define FLIGHT_DONE_NS              24 /* when the last of them began to be written */

#define FLIGHT_BYTES_MIN     (64ull << 20)
#define FLIGHT_BYTES_MAX     (64ull << 30)
#define FLIGHT_BYTES_DEFAULT (256ull << 20)
#define FLIGHT_NS_MIN        1000000000ull
#define FLIGHT_NS_MAX        86400000000000ull

/* How much a recorder keeps. */
struct flight {
    uint64_t ns; /* at least; 0: as much as there is room for */
    uint64_t bytes;
};

/* "30s", "256M", or both: "30s,1G". False: it is none of them, or beyond the limits. */
bool flight_parse(const char *text, struct flight *f);

/* Values of DUMP's reason. */
enum dump_reason {
    DUMP_END = 1, /* of the process */
    DUMP_KILL,    /* ... by a kill: what was left was taken out of the live file */
    DUMP_ASKED,   /* gpuprof_dump() */
    DUMP_CONTROL, /* gpuprof ctl DIR dump */
    DUMP_SIGNAL,
    DUMP_ERROR, /* a call that gives the device work failed */
    DUMP_MEMORY,
    DUMP_STEP,
    DUMP_IDLE,
    DUMP_COLLECTIVE,
    DUMP_REASON_COUNT
};

/* "the process's end", ...; NULL: it is none of them. */
const char *dump_reason_text(uint64_t reason);

#endif
