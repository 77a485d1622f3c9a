/* SPDX-License-Identifier: Apache-2.0 */
#include "life/forked.h"

#include <sys/mman.h>

#include "base/objects.h"
#include "base/pages.h"
#include "host/sampling.h"
#include "life/finish.h"
#include "record/pool.h"
#include "record/thread.h"

/* of the pool's first page and this thread's chunk, made during the thread's fork */
static __thread uint8_t *copy;
static __thread bool is_recorded; /* the forking process records */
static __thread uint8_t blocked;  /* the signal of samples, blocked during a fork */

/* In the child all other chunks are zeroed, which means free. */
static void before_fork(void)
{
    const struct thread *t = &this_thread;
    copy = NULL;
    is_recorded = finish_is_recorder();
    blocked = (uint8_t)sampling_before_fork();
    loader_before_fork();
    if (!(t->inside || call_thread_is_inside(t)) || t->inside == CALL_FOR_GOOD ||
        epoch_now() == EPOCH_NONE || !gp.pool.base)
        return;
    uint8_t *p = pages_map(gp.pool.map_bytes);
    if (!p)
        return;
    memcpy(p, gp.pool.base, LIVE_HEAD_BYTES);
    if (t->records && thread_takes_part(t)) {
        const uint8_t *chunk = t->records - LIVE_CHUNK_HEAD_BYTES;
        memcpy(p + (chunk - gp.pool.base), chunk, gp.pool.chunk_bytes);
    }
    copy = p;
}

static void in_parent(void)
{
    loader_after_fork(false);
    if (copy)
        munmap(copy, gp.pool.map_bytes);
    copy = NULL;
    sampling_after_fork(false, is_recorded, blocked);
}

static void in_child(void)
{
    loader_after_fork(true);
    if (copy)
        mremap(copy, gp.pool.map_bytes, gp.pool.map_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
               gp.pool.base);
    copy = NULL;
    sampling_after_fork(true, is_recorded, blocked);
}

/* As __cxa_at_quick_exit in finish.c. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *)
    __attribute__((weak));
extern HIDDEN void *__dso_handle;

void forked_register(void)
{
    static _Atomic uint32_t registered;
    if (!atomic_exchange(&registered, 1))
        __register_atfork(before_fork, in_parent, in_child, &__dso_handle);
}
