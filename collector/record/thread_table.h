/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of one process, by their number (1, 2, ...; 0 is gpuprof's own writer). */
#ifndef GPUPROF_COLLECTOR_THREAD_TABLE_H
#define GPUPROF_COLLECTOR_THREAD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/key_map.h"

#define THREADS_MAX           (1u << 22) /* of one process */
#define THREAD_NAME_BYTES_MAX 63

struct thread {
    uint32_t number;
    uint32_t index;        /* over all processes: 0, 1, ...; set once all are known */
    uint32_t tid;          /* system thread id; 0: unknown */
    uint32_t shown_tid;    /* unique in the process; set once all are known */
    uint64_t position_end; /* end position of its records in whole blocks of the stream file */
    uint64_t live_end;     /* the same, including the live file */
    uint64_t open_begin;   /* begin of its last open call in the live file, ticks; 0: none */
    uint64_t calls;        /* number of calls that a reader has got so far */
    bool looked;           /* its first block was searched for a THREAD record */
    bool gpu;              /* its records are GPU activity */
    bool own;              /* a thread of gpuprof, not of the program */
    char name[THREAD_NAME_BYTES_MAX + 1]; /* "": unknown */
};

struct thread_table {
    struct thread **threads; /* owned, in the order of first use */
    uint32_t count;
    struct key_map numbers; /* number -> index + 1 */
    struct thread *last;    /* result of the last look-up */
    struct key_map tids;    /* tids of the first `tid_count` threads: index + 1 */
    uint32_t tid_count;
};

void thread_table_release(struct thread_table *t);

/* The thread of that number or NULL. */
struct thread *thread_find(struct thread_table *t, uint32_t number);

/* The last thread with that tid, or NULL. Call it once all threads are there. */
struct thread *thread_of_tid(struct thread_table *t, uint64_t tid);

/* The thread of that number, perhaps a new one. NULL: there are THREADS_MAX others. */
struct thread *thread_get(struct thread_table *t, uint32_t number);

#endif
