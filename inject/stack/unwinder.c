/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/unwinder.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/objects.h"
#include "base/real_dlsym.h"
#include "base/sanitizer.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/own_thread.h"
#include "record/thread.h"
#include "stack/modules.h"
#include "stack/unwinder_probe.h"

/* built from the system's libunwind; see the Makefile */
#define UNWINDER_FILE "libgpuprof-unwind.so"
#define LZMA_FILE     "libgpuprof-lzma.so" /* its replacement for liblzma */
#define TRIAL_FRAMES  64
#define LOAD_WAIT_NS                                                                               \
    200000000u /* it takes a millisecond or two, unless somebody has the loader                    \
                */

typedef int (*backtrace_fn)(void **addresses, int max);

/* Used by our thread that loads it; before that, and in the child of a fork, by the thread that
 * starts it. */
static struct {
    _Atomic(backtrace_fn) backtrace;
    uint32_t age; /* modules_age when it was loaded */
    _Atomic(const char *) why_not;
    _Atomic uint32_t phase; /* futex: enum load_phase */
} unwinder;

enum load_phase { LOAD_NONE, LOAD_RUNNING, LOAD_DONE };

/* Would its calls of its own functions reach a libunwind of the program? */
static int visit_other(const struct object *o, void *data)
{
    (void)data;
    return object_symbol(o, "unw_backtrace") != NULL;
}

/* Finds a file beside our own. */
static bool find_file(char path[static PATH_MAX], const char *name)
{
    struct object own;
    if (!object_at((uintptr_t)&unwinder, &own))
        return false;
    const char *slash = strrchr(own.path, '/');
    int length = slash ? (int)(slash - own.path + 1) : 0;
    return snprintf(path, PATH_MAX, "%.*s%s", length, own.path, name) < PATH_MAX;
}

static bool is_off(void)
{
    return gp.settings.numbers[SETTING_UNWINDER] == UNWINDER_OWN;
}

static const char *unwinder_load(void)
{
    char path[PATH_MAX];
    void *trial[TRIAL_FRAMES];
    if (objects_each(visit_other, NULL))
        return "the program has a libunwind of its own";
    /* Its destructor of thread data would call the sanitizer after that has left the thread. */
    if (sanitizer_is_here())
        return "the program has a sanitizer";
    /* Loads its dependency first, so that it needs no RPATH: memcheck reports errors in how that is
     * read. */
    if (find_file(path, LZMA_FILE) && !dlopen(path, RTLD_LAZY | RTLD_LOCAL))
        dlerror(); /* our error text, not the program's */
    if (!find_file(path, UNWINDER_FILE) || access(path, F_OK) != 0)
        return UNWINDER_FILE " is not beside libgpuprof.so";
    /* Lazy binding: it needs liblzma only for names, for which we do not ask it. */
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        dlerror();
        return UNWINDER_FILE " cannot be loaded";
    }
    dlsym_find_real();
    backtrace_fn backtrace = (backtrace_fn)real_dlsym(handle, "unw_backtrace");
    if (!backtrace)
        return UNWINDER_FILE " has no unw_backtrace";
    struct object itself;
    if (!object_at((uintptr_t)backtrace, &itself) || !unwinder_probe_divert(&itself))
        return UNWINDER_FILE " reads memory in an unknown way";
    /* The first use binds its internal calls, whatever the program loads later. */
    if (backtrace(trial, TRIAL_FRAMES) <= 0)
        return UNWINDER_FILE " finds no frames";
    atomic_store(&unwinder.backtrace, backtrace);
    return NULL;
}

static void end_load(const char *why_not)
{
    atomic_store(&unwinder.why_not, why_not);
    atomic_store(&unwinder.phase, LOAD_DONE);
    futex_wake_all(&unwinder.phase);
}

static void *load_main(void *unused)
{
    own_thread_begin("gpuprof-load");
    loader_enter(); /* a fork waits for it */
    unwinder.age = atomic_load(&modules_age);
    const char *why_not = unwinder_load();
    loader_leave(); /* before any other thread knows, and forks */
    end_load(why_not);
    own_thread_end();
    return unused;
}

void unwinder_start(void)
{
    uint32_t phase = LOAD_NONE;
    if (is_off() || !atomic_compare_exchange_strong(&unwinder.phase, &phase, LOAD_RUNNING))
        return; /* in the child of a fork, too */
    if (own_thread_create(load_main, NULL) != 0)
        end_load("cannot start a thread to load it");
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + LOAD_WAIT_NS;
    while (atomic_load(&unwinder.phase) == LOAD_RUNNING && now_ns < end_ns) {
        futex_wait(&unwinder.phase, LOAD_RUNNING, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
}

void unwinder_reset(void)
{
    if (atomic_load(&unwinder.phase) == LOAD_RUNNING)
        end_load("the process was forked while it was being loaded");
}

bool unwinder_is_settled(void)
{
    return is_off() || atomic_load(&unwinder.phase) == LOAD_DONE;
}

unsigned unwinder_take(struct thread *t, uint64_t *addresses, unsigned max)
{
    backtrace_fn backtrace = atomic_load_explicit(&unwinder.backtrace, memory_order_acquire);
    if (!backtrace || atomic_load(&modules_age) != unwinder.age)
        return 0;
    _Static_assert(sizeof(void *) == sizeof(uint64_t), "addresses fill the words");
    int cancel_state;
    uint64_t signals = block_signals();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    loader_enter(); /* it may use the loader's list; and no child inherits a lock of its own */
    int count = backtrace((void **)addresses, (int)max);
    loader_leave();
    pthread_setcancelstate(cancel_state, NULL);
    restore_signals(signals);
    t->has_unwound = true;
    return count > 0 ? (unsigned)count : 0;
}

const char *unwinder_state(void)
{
    const char *why_not = is_off() ? "switched off" : atomic_load(&unwinder.why_not);
    if (!atomic_load(&unwinder.backtrace))
        return why_not ? why_not : "not loaded";
    return atomic_load(&modules_age) == unwinder.age ? UNWINDER_READY : "an object was unloaded";
}
