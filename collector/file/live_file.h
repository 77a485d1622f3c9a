/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live file of a process, found from its stream file: first beside it (kept there by
 * live_adopt), then in the same folder under its own name (a container's folder has another path
 * outside), then where the stream header says. The last is a path out of a file, so it must lead to
 * a regular file of the reader's own; wherever it is, it must name the same process.
 */
#ifndef GPUPROF_COLLECTOR_LIVE_FILE_H
#define GPUPROF_COLLECTOR_LIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream.h"

/*
 * Of a killed process that ran with --flight: the stream file with what its recorder still held, as
 * one more dump (formats/flight.h).
 */
/* Where it is. */
struct flight_place {
    int fd;            /* of the live file */
    uint64_t offset;   /* in it; 0: it has none, or it has been taken */
    uint64_t alive_ns; /* when its process was last seen alive, as times in records; 0: not known */
};

/*
 * Puts a stream file with that dump into the place of the one at `stream_path`, whose live file is
 * open, and says there that it has been taken. A dump that was under way is part of it.
 * 1, 0 if the live file has no recorder, GPUPROF_DAMAGED if it is not whole, GPUPROF_IO (errno) or
 * GPUPROF_NO_MEMORY: then all is as it was.
 */
int flight_take(struct flight_place *place, const char *stream_path);

/* Writes that file to `fd` instead, and leaves all as it is. As flight_take. */
int flight_copy(struct flight_place *place, const char *stream_path, int fd);

enum live_owner {
    LIVE_OWNER_ENDED,
    LIVE_OWNER_RUNNING,
    LIVE_OWNER_STOPPED, /* it goes on when a signal or a debugger lets it */
    LIVE_OWNER_UNKNOWN, /* another host or pid namespace */
};

#define LIVE_PATH_BYTES_MAX 4096 /* of where a live file is looked for */

enum live_place {
    LIVE_BESIDE, /* beside the stream file, and named as that is */
    LIVE_IN_FOLDER,
    LIVE_AS_RECORDED,
};

struct live_file {
    int fd;
    enum live_place place;
    char path[LIVE_PATH_BYTES_MAX]; /* where it was found */
    enum live_owner owner;
    struct stream_header header;
    uint32_t chunk_bytes;
    uint32_t chunk_count; /* that lie within the file */
    uint32_t chunks_offset;
    uint64_t flight;    /* where its flight recorder is, flight.h; 0: it has none */
    uint64_t alive;     /* ticks when its process was last seen alive; 0: not known */
    uint64_t cut_bytes; /* that the file should have and has not */
    bool head_damaged;  /* of the first page something cannot be */
    uint64_t counters[COUNTER_COUNT];
};

struct live_chunk {
    uint32_t state;
    uint32_t thread;
    uint32_t tid;
    uint64_t position;
    uint64_t committed;  /* bytes of whole records, cut to the chunk's size */
    uint64_t sealed;     /* of these, those that the writer is known to have stored */
    unsigned open;       /* records of open calls behind them */
    uint64_t passed;     /* calls that its owner passed by, and that are in no counter yet */
    uint64_t open_stack; /* live_open_stack of the newest of the open ones */
};

/* Does the process that `h` names still run? */
enum live_owner live_owner(const struct stream_header *h);

/*
 * Opens the live file of the stream file at `stream_path`. `h` is that file's header, or NULL if it
 * is lost (then only a file beside it counts). 1, 0 if there is none, or GPUPROF_DAMAGED if the
 * one beside it is not whole. After 1, live_file_release must follow.
 */
int live_file_open(struct live_file *l, const char *stream_path, const struct stream_header *h);
void live_file_release(struct live_file *l);

/*
 * If the owner may still run: replaces the open file by a copy that does not change any more
 * (unlinked, in $TMPDIR or /tmp). To be called before the stream file's size is taken, so that what
 * is sealed meanwhile is found there. 0, GPUPROF_IO or GPUPROF_NO_MEMORY.
 */
int live_file_snapshot(struct live_file *l);

/* Reads the header of a chunk. 0 or GPUPROF_IO; a chunk beyond the file's end is free. */
int live_chunk_read(const struct live_file *l, uint32_t index, struct live_chunk *chunk);

/*
 * Reads the whole records and what may hold the open ones; `data` has room for a chunk. The bytes
 * read or GPUPROF_IO.
 */
ssize_t live_chunk_records(const struct live_file *l, uint32_t index,
                           const struct live_chunk *chunk, uint8_t *data);

/*
 * If the process of this stream file has ended and has left a live file elsewhere (tmpfs), moves
 * it beside the stream file: copied without free chunks, put in place under its final name, then
 * removed where it was. 1 moved, 0 nothing to do, GPUPROF_IO (errno) or another error: the live
 * file is still where it was.
 */
int live_adopt(const char *stream_path);

/* Where its flight recorder is, as above. */
struct flight_place live_file_flight(const struct live_file *l);

/* Removes the open live file, whose events are all in the stream file now. 0 or GPUPROF_IO. */
int live_file_remove(const struct live_file *l);

#endif
