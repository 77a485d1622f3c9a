/* SPDX-License-Identifier: Apache-2.0 */
#include "dlsym_filter.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "hook_table.h"
#include "objects.h"
#include "resolve.h"

dlsym_fn real_dlsym;
dlvsym_fn real_dlvsym;

struct chain {
    const char *name;
    uintptr_t caller;
    bool past_self;
};

struct next {
    bool past_self;
    bool from_first; /* look at the objects before ours, too */
    void *dlsym;
    void *dlvsym;
};

static int visit_next(const struct object *o, void *data)
{
    struct next *next = data;
    if ((uintptr_t)&real_dlsym >= o->low && (uintptr_t)&real_dlsym < o->high) {
        next->past_self = true;
        return 0;
    }
    if (!next->past_self && !next->from_first)
        return 0;
    /* Another preload that hooks dlsym comes first, then libc (or libdl before glibc 2.34). */
    if (!next->dlsym)
        next->dlsym = object_symbol(o, "dlsym");
    if (!next->dlvsym)
        next->dlvsym = object_symbol(o, "dlvsym");
    return next->dlsym && next->dlvsym;
}

/*
 * Found by walking the ELF tables: dlvsym itself is one of our exports, and no dl* function may run
 * here, since that would change what the program's next dlerror() says. Idempotent, so that threads
 * may race through it; runs before any constructor if one calls dlsym. Where the driver or NVTX has
 * loaded us into a program without LD_PRELOAD, libc lies before us.
 */
void dlsym_find_real(void)
{
    struct next next = {0};
    if (__atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE))
        return;
    objects_each(visit_next, &next);
    next.from_first = true;
    if (!next.dlsym || !next.dlvsym)
        objects_each(visit_next, &next);
    real_dlvsym = (dlvsym_fn)next.dlvsym;
    __atomic_store_n(&real_dlsym, (dlsym_fn)next.dlsym, __ATOMIC_RELEASE);
}

/* The driver and CUPTI look up the driver's functions for their own use: theirs are not calls. */
static bool in_driver(uintptr_t caller)
{
    struct object o;
    return object_at(caller, &o) && (object_is(&o, "libcuda.so") || object_is(&o, "libcupti.so") ||
                                     strncmp(object_soname(&o), "libnvperf", 9) == 0);
}

/* Stops at us: 1 found before us (the program itself, an earlier preload), -1 not. */
static int visit_before(const struct object *o, void *name)
{
    if ((uintptr_t)&real_dlsym >= o->low && (uintptr_t)&real_dlsym < o->high)
        return -1;
    return object_symbol(o, name) != NULL;
}

/* Is `name` defined where the program could have found it without us? */
static bool defined_without_us(const char *name, uintptr_t caller)
{
    struct object o;
    if (objects_each(visit_before, (void *)(uintptr_t)name) == 1)
        return true;
    if (real_dlsym(RTLD_NEXT, name)) /* asked from here: the global scope behind us */
        return true;
    const struct hook *hook = hook_find(name);
    if (!object_at(caller, &o))
        return false;
    /* A plugin opened with RTLD_LOCAL sees what it is linked with besides the global scope. */
    const struct binding *b = resolve_slow(hook->slot, (enum api_domain)hook->domain, name, caller);
    struct object real;
    return b && object_at((uintptr_t)b->real, &real) && object_needs(&o, object_soname(&real));
}

static int visit_precedes(const struct object *o, void *caller)
{
    if ((uintptr_t)&real_dlsym >= o->low && (uintptr_t)&real_dlsym < o->high)
        return -1;
    return (uintptr_t)caller >= o->low && (uintptr_t)caller < o->high;
}

/*
 * A preload before us that hooks dlsym too looks for the next one by dlvsym, with glibc's version,
 * which our definition does not carry: it would find libc's and pass us by.
 */
static void *next_dl_function(const char *name, uintptr_t caller)
{
    bool is_dlsym = strcmp(name, "dlsym") == 0;
    if ((!is_dlsym && strcmp(name, "dlvsym") != 0) ||
        objects_each(visit_precedes, (void *)caller) != 1)
        return NULL;
    return is_dlsym ? (void *)dlsym : (void *)dlvsym;
}

/* Stops at libc: 1 a preload after us, whose hook ours calls (see struct search in resolve.c). */
static int visit_chain(const struct object *o, void *data)
{
    struct chain *chain = data;
    if ((uintptr_t)&real_dlsym >= o->low && (uintptr_t)&real_dlsym < o->high)
        chain->past_self = true;
    else if (object_is(o, "libc.so"))
        return -1;
    else if (chain->past_self && chain->caller >= o->low && chain->caller < o->high)
        return object_symbol(o, chain->name) ? 1 : -1;
    return 0;
}

/* Is it another preload's hook of `name` that asks what to call? Ours would lead back to it. */
static bool is_chained_hook(const char *name, uintptr_t caller)
{
    struct chain chain = {.name = name, .caller = caller};
    return objects_each(visit_chain, &chain) == 1;
}

static struct filter_answer filter(void *handle, const char *name, const char *version,
                                   uintptr_t caller)
{
    const struct filter_answer pass = {NULL, 0};
    dlsym_find_real();
    if (version && handle == RTLD_NEXT && name && name[0] == 'd') {
        void *ours = next_dl_function(name, caller);
        return ours ? (struct filter_answer){ours, 1} : pass;
    }
    if (!name || !hook_name_possible(name) || handle == RTLD_NEXT)
        return pass;
    const struct hook *hook = hook_find(name);
    if (!hook || in_driver(caller))
        return pass;
    if (handle == RTLD_DEFAULT) {
        if (defined_without_us(name, caller))
            return pass;
        return (struct filter_answer){real_dlsym(RTLD_NEXT, name), 1}; /* NULL, with its dlerror */
    }
    void *real = version ? real_dlvsym(handle, name, version) : real_dlsym(handle, name);
    struct filter_answer answer = {real, 1};
    if (!real)
        return answer;
    if (real == hook->wrapper) { /* dlopen(NULL): the global scope, and we stand first in it */
        if (!defined_without_us(name, caller))
            answer.address = real_dlsym(RTLD_NEXT, name);
        return answer;
    }
    struct object o;
    if (!object_at((uintptr_t)real, &o) || is_chained_hook(name, caller))
        return answer;
    if (hook->domain == API_DRIVER && object_is(&o, "libcuda.so"))
        resolve_driver(hook->slot, real);
    else if (hook->domain == API_RUNTIME && object_is(&o, "libcudart.so"))
        resolve_runtime(hook->slot, caller, real);
    else if (hook->domain == API_RUNTIME && object_is(&o, "libcupti.so"))
        resolve_runtime(hook->slot, caller, real);
    else
        return answer;
    answer.address = hook->wrapper;
    return answer;
}

struct filter_answer dlsym_filter(void *handle, const char *name, uintptr_t caller)
{
    return filter(handle, name, NULL, caller);
}

struct filter_answer dlvsym_filter(void *handle, const char *name, const char *version,
                                   uintptr_t caller)
{
    return filter(handle, name, version, caller);
}
