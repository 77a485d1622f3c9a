/* SPDX-License-Identifier: Apache-2.0 */
#include "unwinder.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "dlsym_filter.h"
#include "modules.h"
#include "objects.h"
#include "signals.h"
#include "thread.h"

#define UNWINDER_FILE "libgpuprof-unwind.so" /* made from the system's libunwind; Makefile */
#define TRIAL_FRAMES  64

typedef int (*backtrace_fn)(void **addresses, int max);

static struct {
    _Atomic(backtrace_fn) backtrace;
    uint32_t age; /* modules_age when it was loaded */
    const char *why_not;
} unwinder;

/* Would its calls of itself reach a libunwind of the program's? */
static int visit_other(const struct object *o, void *data)
{
    (void)data;
    return object_symbol(o, "unw_backtrace") != NULL;
}

/* The file beside our own. */
static bool find_file(char path[static PATH_MAX])
{
    struct object own;
    if (!object_at((uintptr_t)&unwinder, &own))
        return false;
    const char *slash = strrchr(own.path, '/');
    int length = slash ? (int)(slash - own.path + 1) : 0;
    return snprintf(path, PATH_MAX, "%.*s%s", length, own.path, UNWINDER_FILE) < PATH_MAX;
}

static const char *load(void)
{
    char path[PATH_MAX];
    void *trial[TRIAL_FRAMES];
    if (gp.settings.numbers[SETTING_UNWINDER] == UNWINDER_OWN)
        return "switched off";
    if (objects_each(visit_other, NULL))
        return "the program has a libunwind of its own";
    if (!find_file(path) || access(path, F_OK) != 0)
        return UNWINDER_FILE " is not beside libgpuprof.so";
    /* Lazily: what it needs of liblzma is there for names, which we do not ask it for. */
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        dlerror(); /* ours, not the program's */
        return UNWINDER_FILE " cannot be loaded";
    }
    dlsym_find_real();
    backtrace_fn backtrace = (backtrace_fn)real_dlsym(handle, "unw_backtrace");
    if (!backtrace)
        return UNWINDER_FILE " has no unw_backtrace";
    /* A first use binds its calls of itself to itself, whatever the program may load later. */
    if (backtrace(trial, TRIAL_FRAMES) <= 0)
        return UNWINDER_FILE " finds no frames";
    atomic_store(&unwinder.backtrace, backtrace);
    return NULL;
}

void unwinder_start(void)
{
    if (unwinder.why_not || atomic_load(&unwinder.backtrace))
        return; /* in the child of a fork, too */
    unwinder.age = atomic_load(&modules_age);
    unwinder.why_not = load();
}

unsigned unwinder_take(struct thread *t, uint64_t *addresses, unsigned max)
{
    backtrace_fn backtrace = atomic_load_explicit(&unwinder.backtrace, memory_order_relaxed);
    if (!backtrace || atomic_load(&modules_age) != unwinder.age)
        return 0;
    _Static_assert(sizeof(void *) == sizeof(uint64_t), "addresses fill the words");
    uint64_t signals = block_signals();
    loader_enter(); /* it may ask for the loader's list; and no child has a lock of its held */
    int count = backtrace((void **)addresses, (int)max);
    loader_leave();
    restore_signals(signals);
    t->has_unwound = true;
    return count > 0 ? (unsigned)count : 0;
}

const char *unwinder_state(void)
{
    if (!atomic_load(&unwinder.backtrace))
        return unwinder.why_not ? unwinder.why_not : "not loaded";
    return atomic_load(&modules_age) == unwinder.age ? UNWINDER_READY : "an object was unloaded";
}
