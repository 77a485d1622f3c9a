/* SPDX-License-Identifier: Apache-2.0 */
#include "base/futex.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/leader.h"
#include "base/signals.h"
#include "base/ticks.h"

#define LOCK_POLL_NS 1000000u

static bool wait(_Atomic uint32_t *word, int operation, uint32_t value, uint64_t ns)
{
    int saved = errno;
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    bool holds = syscall(SYS_futex, word, operation, value, &limit, NULL, 0) == 0 ||
                 errno == ETIMEDOUT || errno == EINTR;
    errno = saved;
    return holds;
}

static void wake_all(_Atomic uint32_t *word, int operation)
{
    int saved = errno;
    syscall(SYS_futex, word, operation, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    wait(word, FUTEX_WAIT_PRIVATE, value, ns);
}

void futex_wake_all(_Atomic uint32_t *word)
{
    wake_all(word, FUTEX_WAKE_PRIVATE);
}

bool futex_wait_shared(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    return wait(word, FUTEX_WAIT, value, ns);
}

void futex_wake_all_shared(_Atomic uint32_t *word)
{
    wake_all(word, FUTEX_WAKE);
}

bool futex_add_shared(_Atomic uint32_t *word)
{
    int saved = errno;
    bool done = syscall(SYS_futex, word, FUTEX_WAKE_OP, INT_MAX, NULL, word,
                        FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_LT, 0)) >= 0;
    errno = saved;
    return done;
}

uint32_t thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

bool thread_exists(uint32_t tid)
{
    int saved = errno;
    uint32_t leader = (uint32_t)syscall(SYS_getpid);
    bool gone = syscall(SYS_tgkill, (pid_t)leader, (pid_t)tid, 0) < 0 && errno == ESRCH;
    errno = saved;
    return !gone && !(tid == leader && tid != thread_id() && leader_has_ended(NULL));
}

static bool become_holder(struct lock *lock, uint64_t ns)
{
    uint32_t me = thread_id();
    uint64_t end_ns = 0;
    for (;;) {
        uint32_t holder = 0;
        if (atomic_compare_exchange_strong(&lock->holder, &holder, me))
            return true;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (!end_ns)
            end_ns = now_ns + ns;
        if (holder == me || now_ns >= end_ns)
            /* a signal handler interrupted our own critical section, or the time is over */
            return false;
        if (!thread_exists(holder) && atomic_compare_exchange_strong(&lock->holder, &holder, me))
            return true;
        futex_wait(&lock->holder, holder, LOCK_POLL_NS);
    }
}

bool lock_take(struct lock *lock, uint64_t ns)
{
    uint64_t signals = block_signals();
    bool taken = become_holder(lock, ns);
    if (taken)
        lock->signals = signals;
    else
        restore_signals(signals);
    return taken;
}

void lock_drop(struct lock *lock)
{
    uint64_t signals = lock->signals;
    assert(atomic_load(&lock->holder) == thread_id());
    atomic_store(&lock->holder, 0);
    futex_wake_all(&lock->holder);
    restore_signals(signals);
}
