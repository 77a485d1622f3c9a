/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All events of a recording in one order: by time, then process, what is no call (a kernel's name
 * before its launch), thread, the longer first, then the place in the thread's records. A heap
 * holds the blocks that are open; the next block of the index is opened when the time has come to
 * its first record. Memory: an open block takes its payload (about 40 bytes a record, at most
 * BLOCK_PAYLOAD_BYTES_MAX), its decoder (320 bytes a column, 1.3 MB at most) and 400 bytes; a
 * thread has one block open, two where a call reaches over a block's end. Where all that together
 * would be more than OPEN_BYTES_MAX, a block keeps only its next WINDOW_RECORDS records (11 KB,
 * which count, too), and is decompressed again when they are used up.
 */
#ifndef GPUPROF_COLLECTOR_TIMELINE_H
#define GPUPROF_COLLECTOR_TIMELINE_H

#include <stdint.h>

#include "read/process.h"
#include "read/recording.h"

/* One record of a recording, with whose it is and when it was. */
struct event {
    const struct record *record; /* times on the process's scale; a view until the next event */
    uint64_t begin_ns;           /* shared by all processes: CLOCK_REALTIME */
    uint64_t end_ns;
    struct process *process;
    struct thread *thread;
    const struct function *function; /* of a CALL or of a library's call; never NULL there */
};

#define OPEN_BYTES_MAX (256ull << 20)
#define WINDOW_RECORDS 64

struct timeline;

/* A block, or all blocks of an entry of the index. */
struct block_span {
    uint64_t begin_ns, end_ns;
    uint64_t types; /* as struct block_header */
    uint32_t entry; /* its place in the index */
};

/* Are the events of such blocks of a process wanted? */
typedef bool timeline_wants_fn(void *context, const struct process *p, const struct block_span *b);

/* Which events are shown: zeros for all. What it points at must stay. */
struct timeline_scope {
    const struct process *only; /* the events of this process */
    timeline_wants_fn *wants;   /* blocks that are not wanted are not read */
    void *wants_context;
    /* Of a block with work of devices and nothing else only the first record is shown; how long the
     * others last raises the item of its process. */
    uint64_t *work_last_ns;
    uint64_t ns_max; /* it ends early after so long, and sets *is_cut then; 0: it does not */
    bool *is_cut;
};

/* NULL: no memory. `rec` and `losses` must stay: to these, an item for each process by its index,
 * what is met on the way is added. Usually `open_bytes_max` is OPEN_BYTES_MAX. */
struct timeline *timeline_create(struct recording *rec, struct losses *losses,
                                 uint64_t open_bytes_max, const struct timeline_scope *scope);
void timeline_free(struct timeline *t);

/*
 * 1 and the next event, 0 at the end, GPUPROF_IO or GPUPROF_NO_MEMORY (timeline_path says which
 * file). Damaged blocks and calls of unknown functions are counted; the blocks are left out.
 */
int timeline_next(struct timeline *t, struct event *event);
const char *timeline_path(const struct timeline *t);

#endif
