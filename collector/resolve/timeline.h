/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All events of a recording in one order: by time (or first by process), process, other records
 * before calls (a kernel's name before its launch), thread, longer before shorter, and place in the
 * thread's records. A heap holds the open blocks; the next block of the index is opened when the
 * time of its first record has come. Memory: an open block takes its payload (about 40 bytes a
 * record, at most BLOCK_PAYLOAD_BYTES_MAX), its decoder (320 bytes a column, 1.3 MB at most) and
 * 400 bytes. A thread has one open block, or two if a call extends over a block's end. If all that
 * would exceed OPEN_BYTES_MAX, a block holds only its next WINDOW_RECORDS records (11 KB and their
 * byte strings, which count, too), and is decompressed again after these.
 */
#ifndef GPUPROF_COLLECTOR_TIMELINE_H
#define GPUPROF_COLLECTOR_TIMELINE_H

#include <stdint.h>

#include "read/process.h"
#include "read/recording.h"

/* One record of a recording, with its thread and its time. */
struct event {
    const struct record *record; /* times on the process's scale; a view until the next event */
    uint64_t begin_ns;           /* shared by all processes: CLOCK_REALTIME */
    uint64_t end_ns;
    struct process *process;
    struct thread *thread;
    const struct function *function; /* of a CALL or a library call; never NULL there */
    uint32_t entry;                  /* index entry of its block */
};

#define OPEN_BYTES_MAX (256ull << 20)
#define WINDOW_RECORDS 64
#define WINDOW_BYTES   65536

struct timeline;

/* A block, or all blocks of an entry of the index. */
struct block_span {
    uint64_t begin_ns, end_ns;
    uint64_t types; /* block_types */
    uint32_t entry; /* index of the entry */
};

/* Whether to read such blocks of a process. */
typedef bool timeline_wants_fn(void *context, const struct process *p, const struct block_span *b);

/* Selects events; zeros select all. Everything that it points at must stay. */
struct timeline_scope {
    const struct process *only; /* only events of this process; NULL: all */
    bool by_process;            /* one process after another: fewer open blocks, so it is faster */
    timeline_wants_fn *wants;   /* decides which blocks are read; NULL: all */
    void *wants_context;
    /* Not NULL: blocks with GPU work only are skipped. Their ends raise the item of their
     * process. */
    uint64_t *work_last_ns;
    uint64_t ns_max; /* maximum duration, after which it ends and sets *is_cut; 0: none */
    bool *is_cut;
};

/* `rec` and `losses` must stay. Adds the losses that it meets to
 * `losses`, which has an item for each process index. Usually `open_bytes_max` is
 * OPEN_BYTES_MAX. */
struct timeline *timeline_create(struct recording *rec, struct losses *losses,
                                 uint64_t open_bytes_max, const struct timeline_scope *scope);
void timeline_free(struct timeline *t);

/*
 * Returns 1 and the next event, 0 at the end, or GPUPROF_IO (timeline_path names
 * the file). Counts damaged blocks, which it skips, and calls of unknown functions.
 */
int timeline_next(struct timeline *t, struct event *event);
const char *timeline_path(const struct timeline *t);

#endif
