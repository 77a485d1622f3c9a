/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's threads that take part in the recording, as another thread sees them. Their struct
 * thread says whether they are in a CUDA call; the kernel's files say what they do, and stay open
 * for the observed threads. Nothing allocates.
 */
#ifndef GPUPROF_INJECT_LOOKED_H
#define GPUPROF_INJECT_LOOKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/descriptor.h"

struct thread;

#define LOOKED_MAX 256u /* further threads are not observed */

/* The state of a thread's calls. */
struct looked_calls {
    uint64_t ended;      /* ticks: end of its last CUDA call; 0: none */
    bool is_in_call;     /* a call is open */
    uint64_t busy_begin; /* ticks: since when it waits for the device; 0: it does not */
};

/* The kernel's counters of a thread, since its start. */
struct looked_counts {
    uint64_t ran_ns;
    uint64_t delay_ns; /* time in which it could have run, but others did */
    uint64_t slices;   /* how often it was scheduled */
    uint64_t faults;
    uint64_t major_faults; /* faults that read from a file or swap */
};

/* Its current state. */
struct looked_state {
    char state;      /* the character in /proc/PID/stat; 0: not known */
    bool is_in_call; /* it is in the system call below */
    uint32_t call;
    uint64_t first_argument; /* of that call */
};

struct looked {
    /* 0: free. Set by the thread itself when it starts; see looked_leave */
    _Atomic uint32_t tid;
    const struct thread *thread; /* in its TLS, which is freed with the thread */
    bool has_files;              /* these files were opened */
    struct kept_file counts, stat, call;
};

/* Call it first. Returns false with errno set if there is no memory. */
bool looked_start(void);

/* Called by a thread that begins to take part. */
void looked_add(struct thread *t);

/* The functions below: only on the observing thread. */

/* Fills `calls` for the places of all threads, at most LOOKED_MAX; returns the number of places. A
 * place without a thread, or whose thread has ended meanwhile, has `ended` 0. */
unsigned looked_read_calls(struct looked_calls *calls);

/* Returns the thread in that place, or NULL. */
struct looked *looked_at(unsigned place);

/* Returns false if it has ended, or the kernel does not say. The first call opens its files. */
bool looked_read_counts(struct looked *l, struct looked_counts *counts);

/* The same, with its state and faults. */
bool looked_read_state(struct looked *l, struct looked_state *state, struct looked_counts *counts);

/* Frees its place. */
void looked_leave(struct looked *l);

/* Call it in the child of a fork: all threads were the parent's. */
void looked_forget(void);

#endif
