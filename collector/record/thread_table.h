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
    uint32_t index;        /* over all processes: 0, 1, ...; set when all are known */
    uint32_t tid;          /* of the system; 0 = unknown */
    uint32_t shown_tid;    /* unique in the process; set when all are known */
    uint64_t position_end; /* of the thread's records in whole blocks of the stream file */
    uint64_t live_end;     /* the same with what the live file adds */
    uint64_t open_begin;   /* of its last open call in the live file, ticks; 0 = none */
    uint64_t calls;        /* that a reader has got so far */
    bool looked;           /* its first block was searched for a THREAD record */
    bool gpu;              /* its records tell what the device did */
    bool own;              /* gpuprof's, which tells of devices: none of the program's */
    char name[THREAD_NAME_BYTES_MAX + 1]; /* "" = unknown */
};

struct thread_table {
    struct thread **threads; /* owned, in the order of their first appearance */
    uint32_t count;
    struct number_set numbers;
    struct thread *last; /* of the last look-up */
    struct key_map tids; /* of those of the first `tid_count`: place + 1 */
    uint32_t tid_count;
};

void thread_table_release(struct thread_table *t);

/* The thread of that number or NULL. */
struct thread *thread_find(struct thread_table *t, uint32_t number);

/* The thread of that number of the system: the last one that had it; NULL: none recorded
 * anything. When all threads are there. */
struct thread *thread_of_tid(struct thread_table *t, uint64_t tid);

/* The same by its number, made if it is new; NULL: no memory or more than THREADS_MAX, as the error
 * says. */
struct thread *thread_get(struct thread_table *t, uint32_t number);
int thread_get_error(const struct thread_table *t);

#endif
