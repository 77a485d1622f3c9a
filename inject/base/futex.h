/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits with a time limit, and a lock that survives fork. The lock knows its holder: a child
 * process in which the holder does not exist takes it over instead of waiting for ever.
 * Process-private.
 */
#ifndef GPUPROF_INJECT_FUTEX_H
#define GPUPROF_INJECT_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits until *word != value, until it is woken, or until `ns` have passed. Keeps errno. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void futex_wake_all(_Atomic uint32_t *word);

/*
 * Wait and wake on a word in a file that other processes map. The wait returns false if *word !=
 * value. futex_add_shared adds 1 before it wakes. Only the kernel touches the page: if another
 * process has truncated the file, these return false instead of raising SIGBUS.
 */
bool futex_wait_shared(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void futex_wake_all_shared(_Atomic uint32_t *word);
bool futex_add_shared(_Atomic uint32_t *word);

/* gettid() without glibc's cache, so that it is right in the child of a raw clone, too. */
uint32_t thread_id(void);

/* True if the thread exists in this process and has not ended. */
bool thread_exists(uint32_t tid);

struct lock {
    _Atomic uint32_t holder; /* thread id; 0: the lock is free */
    uint64_t signals;        /* the holder's signal mask before lock_take */
};

/* Takes the lock and blocks all signals until lock_drop. Returns false if `ns` pass first. Not
 * recursive. */
bool lock_take(struct lock *lock, uint64_t ns);
void lock_drop(struct lock *lock);

#endif
