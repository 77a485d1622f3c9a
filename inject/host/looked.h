/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's threads that take part in the recording, as another thread sees them: whether they
 * are in a CUDA call, by their own struct thread; what they do, by the kernel's files on them,
 * which are kept open for the threads that are looked at. No allocation.
 */
#ifndef GPUPROF_INJECT_LOOKED_H
#define GPUPROF_INJECT_LOOKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/descriptor.h"

struct thread;

#define LOOKED_MAX 256u /* threads; further ones are not looked at */

/* Where it is in its calls. */
struct looked_calls {
    uint64_t ended;      /* ticks: the end of its last CUDA call; 0: it has made none */
    bool is_in_call;     /* one is open */
    uint64_t busy_begin; /* ticks: it waits for the device since then; 0: it does not */
};

/* The kernel's account of a thread, from its begin on. */
struct looked_counts {
    uint64_t ran_ns;
    uint64_t delay_ns; /* it could have run, and others did */
    uint64_t slices;   /* how often it was given a processor */
    uint64_t faults;
    uint64_t major_faults; /* of these, for which something was read */
};

/* What it does now. */
struct looked_state {
    char state;      /* as /proc/PID/stat has it; 0: not known */
    bool is_in_call; /* of the system, the one below */
    uint32_t call;
    uint64_t first_argument; /* of that call */
};

struct looked {
    _Atomic uint32_t tid;        /* 0: free. By the thread itself when it comes; see looked_leave */
    const struct thread *thread; /* its TLS, which goes with it */
    bool has_files;              /* these, once they were opened */
    struct kept_file counts, stat, call;
};

/* Before all else. False: no memory (errno). */
bool looked_start(void);

/* By a thread that begins to take part. */
void looked_add(struct thread *t);

/* All below: by the one thread that looks. */

/*
 * Where the threads of `all` are, at most LOOKED_MAX, in `calls`; returns how many places are used.
 * A place without a thread, or one that is gone meanwhile, has an `ended` of 0.
 */
unsigned looked_read_calls(struct looked_calls *calls);

/* The thread in that place, or NULL. */
struct looked *looked_at(unsigned place);

/* False: it has ended, or the kernel does not say. The first one opens its files. */
bool looked_read_counts(struct looked *l, struct looked_counts *counts);

/* The same, and its faults. */
bool looked_read_state(struct looked *l, struct looked_state *state, struct looked_counts *counts);

/* Its place is free again. */
void looked_leave(struct looked *l);

/* In the child of a fork: all are the parent's. */
void looked_forget(void);

#endif
