/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (run --flight) keeps the last blocks of a process in its live file. Writing
 * them to the stream file is a dump. See "The flight recorder" in event-stream.md.
 *
 * Blocks go into one segment after another; when all are in use, the oldest is cleared for the next
 * one. Each segment begins with the earlier records that it still needs (BLOCK_OF_STATE): names,
 * open ranges, allocated memory. So the oldest segment can be read without what was before it.
 */
#ifndef GPUPROF_FORMATS_FLIGHT_H
#define GPUPROF_FORMATS_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_MAGIC      0x3147494c46504700ull /* "\0GPFLIG1" */
#define FLIGHT_SEGMENTS   4
#define FLIGHT_PAGE_BYTES 4096 /* followed by the segments, one after another */

/* The page, at LIVE_OFFSET_FLIGHT. All values are u64. */
#define FLIGHT_OFFSET_MAGIC         0 /* written last */
#define FLIGHT_OFFSET_SEGMENT_BYTES 8
/* 0 or 1: which of two entries says what is in the stream file */
#define FLIGHT_OFFSET_WRITTEN      16
#define FLIGHT_OFFSET_SEGMENTS     64 /* FLIGHT_SEGMENT_ENTRY bytes for each segment: */
#define FLIGHT_SEGMENT_ENTRY       40
#define FLIGHT_SEGMENT_NUMBER      0   /* 1, 2, ... in time; 0: empty, or incomplete */
#define FLIGHT_SEGMENT_BYTES       8   /* size of complete blocks */
#define FLIGHT_SEGMENT_STATE_BYTES 16  /* the part of these with the state, at the start */
#define FLIGHT_SEGMENT_BEGIN_NS    24  /* nothing that began later is missing */
#define FLIGHT_SEGMENT_FIRST       32  /* number of its first block */
#define FLIGHT_OFFSET_DONE         512 /* at this offset, and FLIGHT_DONE_ENTRY bytes further: */
#define FLIGHT_DONE_ENTRY          64
#define FLIGHT_DONE_STREAM_BYTES   0  /* size of the stream file without the dump under way */
#define FLIGHT_DONE_DUMPS          8  /* complete dumps */
#define FLIGHT_DONE_NEXT           16 /* number of the first block that is in no dump */
#define FLIGHT_DONE_NS             24 /* when the last of them began to be written */

#define FLIGHT_BYTES_MIN     (64ull << 20)
#define FLIGHT_BYTES_MAX     (64ull << 30)
#define FLIGHT_BYTES_DEFAULT (256ull << 20)
#define FLIGHT_NS_MIN        1000000000ull
#define FLIGHT_NS_MAX        86400000000000ull

/* How much a flight recorder keeps. */
struct flight {
    uint64_t ns; /* at least this long; 0: as much as there is space for */
    uint64_t bytes;
};

/* Parses "30s", "256M", or both: "30s,1G". Returns false if it is neither, or beyond the limits. */
bool flight_parse(const char *text, struct flight *f);

/* The argument DUMP_REASON. */
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
