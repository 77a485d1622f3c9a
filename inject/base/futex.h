/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting with a bound, and a lock that survives fork: it knows its holder, so that a child in
 * which the holder does not exist takes it over instead of waiting for ever. Process-private.
 */
#ifndef GPUPROF_INJECT_FUTEX_H
#define GPUPROF_INJECT_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits until *word != value, a wake, or `ns` have passed. errno is kept. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void futex_wake_all(_Atomic uint32_t *word);

/*
 * The same on a word in a file that other processes map. The wait returns false if *word != value.
 * futex_add_shared adds 1 before it wakes. Nothing here touches the page but the kernel: false,
 * and no SIGBUS, if another process has cut the file.
 */
bool futex_wait_shared(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void futex_wake_all_shared(_Atomic uint32_t *word);
bool futex_add_shared(_Atomic uint32_t *word);

/* gettid() without a cache: right in every kind of child. */
uint32_t thread_id(void);

/* True if the thread exists in this process and has not ended. */
bool thread_exists(uint32_t tid);

struct lock {
    _Atomic uint32_t holder; /* tid, 0 = free */
    uint64_t signals;        /* the holder's mask from before */
};

/* True if taken, with all signals blocked until lock_drop; false if `ns` passed first. Not
 * recursive. */
bool lock_take(struct lock *lock, uint64_t ns);
void lock_drop(struct lock *lock);

#endif
