/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of slow calls and of operators: walked, looked up, and written when first used. A
 * process has each stack once, identified by a 64-bit hash of its frames. Among the 65,536 stacks
 * of a full table, two different ones are mistaken for the same with a chance of 1 in 8 thousand
 * million. Frames are what return addresses mean. The meaning of a stack's addresses is cached
 * until something is unloaded, so that a usual stack is found without asking for modules.
 *
 * A known stack costs no write. The definition of a new one is in the stream before its number is
 * in the table, so that no kill leaves a number without a meaning; two threads that use it first at
 * the same time may both write it.
 */
#ifndef GPUPROF_INJECT_STACK_H
#define GPUPROF_INJECT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/thread.h"
#include "stack/walk.h"

/*
 * Returns the number of the calling thread's stack; 0 if it has none, which is counted. Definitions
 * may be appended before the open records, which may move to another chunk, or be dropped. Keeps
 * errno.
 */
uint32_t stack_take(struct thread *t);

/* The same for its Python frames alone, for a PyTorch operator. 0 is not counted: threads without
 * Python have no such frames. */
uint32_t stack_take_python(struct thread *t);

/* The same for another thread, by its interpreter state (python_find_threads). It may resume at any
 * moment: 0 if it is no longer at the same place when its frames have been read. */
uint32_t stack_take_python_of(struct thread *t, uint64_t state, bool (*is_still_there)(void *),
                              void *context);

/* The same for another thread that may be running. *is_torn: its frames changed while they were
 * read, and there is no stack. */
uint32_t stack_take_python_running(struct thread *t, uint64_t state, bool *is_torn);

/*
 * Returns the number of a stack that walk_interrupted took at that age of the modules. Any thread.
 * Native frames are removed if something was unloaded since. 0: no frame is left, or there is no
 * space.
 */
uint32_t stack_number(struct thread *t, struct walk *w, uint32_t age);

/*
 * Is the stack to be taken because the call failed? If slow calls get stacks, the first
 * STACK_FAILURES_MAX failures of a process do, too: some programs probe, or go on after an error
 * that all later calls return.
 */
#define STACK_FAILURES_MAX 1000
bool stack_of_failure(unsigned class);

/*
 * Is the stack to be taken of a call that allocated so many bytes? Always from a size on; below it
 * with a probability in proportion: each such stack stands for about that many bytes. Each thread
 * has its own random sequence, the same in each run.
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
    return x * whole >> 32 < bytes; /* `whole` has at most 32 bits: settings.def */
}

/* Returns the number of bytes for which it stands. */
static inline uint64_t stack_of_memory_bytes(uint64_t bytes)
{
    uint64_t whole = atomic_load_explicit(&fork_page.memory_bytes, memory_order_relaxed);
    return bytes > whole ? bytes : whole;
}

/* A recording starts, and the settings are read: sets which calls are slow. */
void stacks_start(void);

/* Called when it runs: loads the unwinder. */
void stacks_load(void);

/* Call it in the child of a fork: its file has no stacks yet. */
void stacks_reset(void);

/* Stacks are turned off, or on again; recorded.h. */
void stacks_turn(void);

/* Are stacks of calls taken? Valid from the start of a recording on. */
bool stacks_are_on(void);

/* Called once a second: looks for an interpreter if stacks are taken. */
void stacks_look(struct thread *writer);

/* META record "stacks": where they come from, when that is decided, or at the end. */
void stacks_describe(struct thread *writer, bool is_last);

#endif
