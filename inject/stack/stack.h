/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of slow calls, and of operators: walked, looked up, and written at first sight. A
 * process has each stack once, known by a 64-bit hash of its frames: of the 65,536 that a table
 * holds, two that are not the same are taken for one with a chance of 1 in 8 thousand million.
 * Frames are what return addresses mean; what a stack's addresses meant is kept until something is
 * unloaded, so that the usual one is found without asking for the modules that they are in.
 *
 * A known stack costs no write. The definition of a new one is in the stream before its number is
 * in the table, so that no kill leaves a number without a meaning; two threads that meet it at the
 * same time may both write it.
 */
#ifndef GPUPROF_INJECT_STACK_H
#define GPUPROF_INJECT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/thread.h"
#include "stack/walk.h"

/*
 * The number of the calling thread's stack; 0 if it has none, which is counted. Definitions may be
 * appended before the open records, and these may move to another chunk, or be dropped. errno is
 * kept.
 */
uint32_t stack_take(struct thread *t);

/*
 * The same of its Python frames alone: for one of PyTorch's operators. 0 is not counted: threads
 * without Python have none.
 */
uint32_t stack_take_python(struct thread *t);

/*
 * The same of another thread, by the interpreter's state of it (python_find_threads), which may go
 * on at any moment: 0 if it is not where it was when its frames have been read.
 */
uint32_t stack_take_python_of(struct thread *t, uint64_t state, bool (*is_still_there)(void *),
                              void *context);

/*
 * The same of another thread that may be running. *is_torn: its frames changed while they were
 * read, and there is none.
 */
uint32_t stack_take_python_running(struct thread *t, uint64_t state, bool *is_torn);

/*
 * The number of a stack whose frames were taken at that age of the modules, as walk_interrupted
 * takes them: by any thread. Native ones go if something was unloaded since. 0: none is left, or
 * there is no room.
 */
uint32_t stack_number(struct thread *t, struct walk *w, uint32_t age);

/*
 * Is the stack of a call of this class to be taken because it failed? Where slow ones have theirs,
 * those of the first STACK_FAILURES_MAX of a process: some programs probe, or go on after an error
 * that all further calls return.
 */
#define STACK_FAILURES_MAX 1000
bool stack_of_failure(unsigned class);

/*
 * Is the stack of who gets so many bytes to be taken? Always from a size on, below it with a
 * probability in proportion: each such stack stands for about that many bytes. Each thread has
 * a row of numbers of its own, the same in each run.
 */
static inline bool stack_of_memory(struct thread *t, uint64_t bytes)
{
    uint64_t whole = atomic_load_explicit(&fork_page.memory_bytes, memory_order_relaxed);
    if (!whole || bytes >= whole)
        return whole;
    uint32_t x = t->chance ? t->chance : t->number * 0x9E3779B9u | 1;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    t->chance = x;
    return x * whole >> 32 < bytes; /* `whole` has 32 bits at most: settings.def */
}

/* For how many bytes it stands. */
static inline uint64_t stack_of_memory_bytes(uint64_t bytes)
{
    uint64_t whole = atomic_load_explicit(&fork_page.memory_bytes, memory_order_relaxed);
    return bytes > whole ? bytes : whole;
}

/* At the start of a recording, with the settings read: what is slow. */
void stacks_start(void);

/* Once it runs: loads what takes them. */
void stacks_load(void);

/* In the child of a fork: its file has no stacks yet. */
void stacks_reset(void);

/* None is taken any more, or some are again; recorded.h. */
void stacks_turn(void);

/* Are there any of calls? From the start of a recording on. */
bool stacks_are_on(void);

/* Once a second: looks for an interpreter, if there are any. */
void stacks_look(struct thread *writer);

/* META record "stacks": where they come from, once that is settled, or at last. */
void stacks_describe(struct thread *writer, bool is_last);

#endif
