/* SPDX-License-Identifier: Apache-2.0 */
#include "life/finish.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/say.h"
#include "hook/call.h"
#include "hook/calls_open.h"
#include "record/feature.h"
#include "record/pool.h"
#include "record/state.h"
#include "record/thread.h"
#include "record/wake.h"
#include "store/seal.h"
#include "store/stream_out.h"

#define SETTLE_TRIES 5
#define SETTLE_NS    1000000u

/* Is this the process that started the recording, and not a child of it by fork or vfork? */
static bool is_own_process(void)
{
    return atomic_load(&fork_page.owner) == (uint32_t)syscall(SYS_getpid);
}

bool finish_is_recorder(void)
{
    return epoch_now() != EPOCH_NONE && is_own_process();
}

static bool has_open_calls(uint32_t chunk)
{
    return chunk_u64(pool_chunk(&gp.pool, chunk), LIVE_CHUNK_COMMITTED) & LIVE_OPEN_MASK;
}

/* Is there anything that only the live file has? Other threads may still append, and this thread
 * may hang, if it is a signal handler that ends the process in the middle of a call. */
static bool live_is_needed(void)
{
    uint32_t me = thread_id();
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        struct chunk_owner *owner = &gp.pool.owners[i];
        uint32_t tid = atomic_load_explicit(&owner->tid, memory_order_relaxed);
        enum live_chunk_state state = owner_state(owner);
        if (state == LIVE_FULL || state == LIVE_TAKEN ||
            (state == LIVE_OWNED && (tid != me ? thread_exists(tid) : has_open_calls(i))))
            return true;
    }
    return false;
}

/* The same, but a thread that was just joined may still be leaving the kernel: it gets a little
 * time, so that no live file stays without need. */
static bool live_stays_needed(void)
{
    _Atomic uint32_t never = 0;
    for (int i = 0; live_is_needed(); i++) {
        if (i == SETTLE_TRIES)
            return true;
        futex_wait(&never, 0, SETTLE_NS);
    }
    return false;
}

/* Closes this thread's calls that a jump has left; those that it is in stay open. */
static void close_left(struct thread *t)
{
    struct call here;
    if (!call_enter_own(t, &here))
        return;
    open_close_left(t, 0, &here);
    call_leave(t);
}

/* Returns true if everything recorded is stored. */
static bool finish_flush(enum end_reason reason)
{
    if (!finish_is_recorder())
        return false;
    struct thread *t = &this_thread;
    if (!t->inside && thread_takes_part(t)) {
        /* If the program has overwritten the chunk's head, no other code repairs it. */
        thread_settle(t);
        close_left(t);
    }
    bool flushed = writer_flush(reason, gp.settings.numbers[SETTING_EXIT_WAIT]);
    if (!flushed && atomic_load(&gp.writer.running))
        say(SAY_EXIT,
            "the last events were not stored within %s; gpuprof merge reads them from the live "
            "file",
            setting_infos[SETTING_EXIT_WAIT].variable);
    return flushed;
}

/*
 * Other libraries' destructors run after ours and may still call CUDA. From here on each event is
 * stored at once, so that the live file can be removed, unless another thread may be writing to it.
 */
static void close_down(enum end_reason reason)
{
    if (!finish_is_recorder()) {
        /* a process that records nothing makes no system call here */
        if (gp.used && is_own_process())
            seal_report_end(); /* again, to count the calls that came since */
        return;
    }
    FEATURES_DO(end, (gp.settings.numbers[SETTING_EXIT_WAIT]));
    atomic_fetch_or(&fork_page.recording, ATTENTION_LATE);
    bool flushed = finish_flush(reason);
    stream_out_say_where();
    if (flushed && atomic_load(&gp.writer.done) == atomic_load(&gp.writer.requested) &&
        !live_stays_needed())
        pool_unlink(&gp.header);
    else
        atomic_fetch_and(&fork_page.recording, ~ATTENTION_LATE);
}

static void finish_at_exit(void)
{
    finish_flush(0);
}

static void at_quick(void *unused)
{
    (void)unused;
    close_down(END_QUICK);
}

/*
 * The function that at_quick_exit calls. Weak, since musl lacks it and could not load us otherwise.
 */
extern int __cxa_at_quick_exit(void (*)(void *), void *) __attribute__((weak));
extern HIDDEN void *__dso_handle;

void finish_register(void)
{
    static _Atomic uint32_t registered;
    if (atomic_exchange(&registered, 1))
        return;
    /* Registered after the first CUDA call, so that it runs before the driver's own handlers. */
    atexit(finish_at_exit);
    __cxa_at_quick_exit(at_quick, &__dso_handle);
}

__attribute__((destructor)) static void unload(void)
{
    close_down(END_EXIT);
}

static _Noreturn void exit_now(int status)
{
    close_down(END_QUICK);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT _Noreturn void _exit(int status)
{
    exit_now(status);
}

EXPORT _Noreturn void _Exit(int status)
{
    exit_now(status);
}
