/* SPDX-License-Identifier: Apache-2.0 */
#include "host/sample_child.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/objects.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/own_thread.h"
#include "record/thread.h"
#include "stack/walk.h"

#define CHILD_NS    50000000u
#define BASE_FRAMES 3u /* outermost frames, which lead to main or to a thread's function */
#define BASE_THEIRS 2u /* of these, frames of the C library */
/* of a stack for handlers: starting a thread needs less than half of it */
#define STACK_BYTES 32768u

/* The code that takes these locks is in the objects that define these symbols; found by
 * sample_child_prepare. */
static struct {
    const char *symbol;
    uintptr_t low, bytes; /* 0: not found, or not a symbol of this C library */
} theirs[] = {{"malloc", 0, 0},
              {"gnu_get_libc_version", 0, 0},
              {"pthread_create", 0, 0},
              {"__tls_get_addr", 0, 0}}; /* the loader */
#define OBJECTS (sizeof theirs / sizeof theirs[0])

static _Atomic uint32_t is_due; /* the child has no thread of ours yet; used by its only thread */

static int sample_child_visit(const struct object *o, void *data)
{
    (void)data;
    for (unsigned i = 0; i < OBJECTS; i++)
        if (!theirs[i].bytes && object_symbol(o, theirs[i].symbol)) {
            theirs[i].low = o->low;
            theirs[i].bytes = o->high - o->low;
        }
    return 0;
}

void sample_child_prepare(void)
{
    objects_each(sample_child_visit, NULL);
    atomic_store(&is_due, 0);
}

void sample_child_begins(void)
{
    atomic_store(&is_due, 1);
}

static bool is_theirs(uint64_t return_address)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        if (return_address - 1 - theirs[i].low < theirs[i].bytes)
            return true;
    return false;
}

/* A thread that holds one of these locks has a frame of their code on the stack, besides those that
 * led to main. So there must be none, and the stack must be complete. */
static bool is_free(const struct walk *w)
{
    unsigned count = 0;
    size_t handlers_bytes = signal_stack_bytes();
    if (w->count <= BASE_FRAMES || w->is_cut || w->is_short || w->is_signal ||
        (handlers_bytes && handlers_bytes < STACK_BYTES))
        return false;
    for (unsigned i = 0; i < w->count; i++) {
        bool is = is_theirs(w->frames[i]);
        if (is && i + BASE_FRAMES < w->count)
            return false;
        count += is;
    }
    return count <= BASE_THEIRS;
}

static void *child_main(void *unused)
{
    own_thread_begin("gpuprof-fork");
    if (thread_attach(&this_thread)) /* a new recording counts its threads again */
        thread_leave(&this_thread);
    else
        own_thread_end();
    return unused;
}

void sample_child_look(const struct walk *w)
{
    if (unlikely(atomic_load_explicit(&is_due, memory_order_relaxed)) &&
        clock_ns(CLOCK_PROCESS_CPUTIME_ID) >= CHILD_NS && is_free(w) && atomic_exchange(&is_due, 0))
        own_thread_create(child_main, NULL);
}
