/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's live file, found from its stream file. It is beside that file (put there by
 * live_adopt), in the same folder under its own name (a container's folder has another path
 * outside), or at the stream header's path. That path is untrusted, so it must lead to a regular
 * file of the reader's own; every live file must name the same process.
 */
#ifndef GPUPROF_COLLECTOR_LIVE_FILE_H
#define GPUPROF_COLLECTOR_LIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream.h"

enum live_owner {
    LIVE_OWNER_ENDED,
    LIVE_OWNER_RUNNING,
    LIVE_OWNER_STOPPED, /* stopped by a signal or a debugger */
    LIVE_OWNER_UNKNOWN, /* on another host or in another pid namespace */
};

#define LIVE_PATH_BYTES_MAX 4096 /* of a live file's path */

enum live_place {
    LIVE_BESIDE, /* beside the stream file, named like it */
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
    uint32_t chunk_count; /* chunks within the file */
    uint32_t chunks_offset;
    uint64_t flight;    /* offset of its flight recorder (flight.h); 0: none, or taken */
    uint64_t alive;     /* ticks of the last sign of life; 0: unknown */
    uint64_t cut_bytes; /* missing at the end of the file */
    bool head_damaged;  /* the first page has an impossible value */
    uint64_t counters[COUNTER_COUNT];
};

struct live_chunk {
    uint32_t state;
    uint32_t thread;
    uint32_t tid;
    uint64_t position;
    uint64_t committed;  /* bytes of complete records, at most the chunk's size */
    uint64_t sealed;     /* of these, bytes certainly stored by the writer */
    unsigned open;       /* records of open calls after them */
    uint64_t passed;     /* calls passed by that no counter includes yet */
    uint64_t open_stack; /* live_open_stack of the newest open call */
};

/* Returns whether the process of `h` still runs. */
enum live_owner live_owner(const struct stream_header *h);

/*
 * Opens the live file of the stream file at `stream_path`. `h` is its header, or NULL if lost (then
 * only a file beside it counts). Returns 1, 0 if there is none, or GPUPROF_DAMAGED if the one
 * beside it is damaged. After 1, call live_file_release.
 */
int live_file_open(struct live_file *l, const char *stream_path, const struct stream_header *h);
void live_file_release(struct live_file *l);

/* Returns the last sign of life, as times in records; 0: unknown. */
static inline uint64_t live_file_alive_ns(const struct live_file *l)
{
    return l->alive ? clock_scale_ns(&l->header.scale, l->alive) : 0;
}

/*
 * If the owner may still run: replaces the open file by an unnamed copy in $TMPDIR or /tmp. Call it
 * before taking the stream file's size, so that records stored meanwhile are found there. Returns
 * 0 or GPUPROF_IO.
 */
int live_file_snapshot(struct live_file *l);

/* Reads a chunk's header. Returns 0 or GPUPROF_IO; a chunk beyond the file's end is free. */
int live_chunk_read(const struct live_file *l, uint32_t index, struct live_chunk *chunk);

/* Reads complete and open records into a chunk's room. Returns the bytes or GPUPROF_IO. */
ssize_t live_chunk_records(const struct live_file *l, uint32_t index,
                           const struct live_chunk *chunk, uint8_t *data);

/*
 * Moves the live file of an ended process from elsewhere (tmpfs) to beside the stream file. It
 * copies the file without free chunks under the final name, then removes the original. Returns 1 if
 * moved, 0 if there was nothing to do, GPUPROF_IO (errno) or another error, which leaves the
 * original.
 */
int live_adopt(const char *stream_path);

/*
 * Takes the flight recorder of a killed process (--flight): its last contents, including an
 * unfinished dump, become one more dump in the stream file at `stream_path`, which is replaced, and
 * the recorder is marked as taken. Returns 1, 0 if there is no recorder, GPUPROF_DAMAGED,
 * or GPUPROF_IO (errno); an error changes nothing. (flight_take.c)
 */
int flight_take(struct live_file *l, const char *stream_path);

/* Writes that file to `fd` instead and changes nothing. Returns as flight_take does. */
int flight_copy(const struct live_file *l, const char *stream_path, int fd);

/* Removes the live file once the stream file has its events. Returns 0 or GPUPROF_IO. */
int live_file_remove(const struct live_file *l);

#endif
