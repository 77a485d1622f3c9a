/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/dlsym_filter.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/objects.h"
#include "base/real_dlsym.h"
#include "hook/hook_table.h"
#include "hook/resolve.h"
#include "stack/walk.h"

#pragma weak dladdr1 /* only glibc has it */

/* The driver and CUPTI look up the driver's functions for their own use; those calls are not the
 * program's. */
static bool in_driver(const struct object *o)
{
    return object_is(o, "libcuda.so") || object_is(o, "libcupti.so") ||
           strncmp(object_soname(o), "libnvperf", 9) == 0;
}

static int visit_precedes(const struct object *o, void *caller)
{
    return object_is_ours(o) ? -1 : object_has(o, (uintptr_t)caller);
}

/*
 * Another preload before us that hooks dlsym looks for the next one with dlvsym and glibc's
 * version, which our definition does not carry. Without this it would find libc's function and
 * bypass us.
 */
static void *next_dl_function(const char *name, uintptr_t caller)
{
    bool is_dlsym = strcmp(name, "dlsym") == 0;
    if ((!is_dlsym && strcmp(name, "dlvsym") != 0) ||
        objects_each(visit_precedes, (void *)caller) != 1)
        return NULL;
    return is_dlsym ? (void *)dlsym : (void *)dlvsym;
}

/* A look-up of a name that may be CUDA's. */
struct look_up {
    void *handle;
    const char *name;
    const char *version; /* NULL: any version */
    const struct hook *hook;
    uintptr_t caller;
    struct object from; /* the caller's object, if it is in one */
    bool known;
    bool by_driver;
    bool by_patcher;
    bool past_caller;
    bool past_self;
};

/* Returns what dlopen returns for this library: an entry of the loader's list. */
static struct link_map *our_map(void)
{
    static _Atomic(struct link_map *) ours;
    struct link_map *map = atomic_load_explicit(&ours, memory_order_relaxed);
    Dl_info info;
    if (!map && dladdr1 && dladdr1(&real_dlsym, &info, (void **)&map, RTLD_DL_LINKMAP))
        atomic_store_explicit(&ours, map, memory_order_relaxed);
    return map;
}

/* Returns whether it is the handle of dlopen(NULL). The program is first in the list, and objects
 * before us stay loaded. */
static bool is_programs(const void *handle)
{
    const struct link_map *map = our_map();
    while (map && map->l_prev)
        map = map->l_prev;
    return handle == map;
}

static bool changes_code(const struct object *o)
{
    return object_import(o, "mprotect") || object_import(o, "pkey_mprotect");
}

struct user {
    const struct object *from;
    const struct object *helper;
};

static bool is_helpers(void **slot, const char *name, void *data)
{
    const struct user *user = data;
    (void)slot;
    return object_symbol(user->helper, name) != NULL;
}

/* Finds a library outside CUDA that the caller is linked with and that changes code. */
static int visit_helper(const struct object *o, void *data)
{
    struct user *user = data;
    user->helper = o;
    return object_needs(user->from, object_soname(o)) && changes_code(o) && !in_driver(o) &&
           !resolve_is_part(o, API_RUNTIME) && object_each_import(user->from, is_helpers, user);
}

/* Returns whether it searches all objects, or its own handle, and not the handle of the program or
 * of another library. */
static bool asks_anywhere(const struct look_up *l)
{
    const struct link_map *map = l->handle; /* handles are pointers to these entries */
    return l->handle == RTLD_NEXT || l->handle == RTLD_DEFAULT ||
           (map->l_addr == l->from.base && !is_programs(map));
}

/*
 * Returns whether the caller wants to patch the function's code instead of calling it. UCX's memory
 * hooks (the default in MPI programs with CUDA) and Frida's interceptor write a jump at the start
 * of the driver's functions. They would patch our hook instead, or refuse it, since its first
 * instructions cannot be moved, and UCX would turn its caches off.
 *
 * A caller is linked with the library, or opens it and asks by its handle, as ctypes, JAX and
 * Triton do. A patcher wants whatever function the process has: it searches all objects, or itself
 * and what it is linked with. And something has to make the code writable: the patcher itself, or a
 * library that it calls, as libucm_cuda calls libucm. A preload that defines the name hooks it that
 * way, and a compiler (LLVM) asks by the program's handle. CUPTI's functions are never patched:
 * CUPTI refuses a second client that does not come through our hooks.
 *
 * This mistakes for a patcher a library that maps code with mprotect and looks in these ways for a
 * function only to call it: such calls are left to CUPTI's callbacks. It misses a patcher that asks
 * by the library's handle, as callers do, or that changes code with its own system call. Such a
 * patcher patches the hook, through which most calls go, if it can.
 */
static bool patches(const struct look_up *l)
{
    struct user user = {.from = &l->from};
    return l->known && l->hook->domain != API_CUPTI && asks_anywhere(l) &&
           !object_symbol(&l->from, l->name) &&
           (changes_code(&l->from) || objects_each(visit_helper, &user));
}

static const struct filter_answer pass = {NULL, 0};

static struct filter_answer dlsym_filter_answer(void *address)
{
    return (struct filter_answer){address, 1};
}

/* Answers with a function found after a failed look-up of ours: clears dlerror(). */
static struct filter_answer found(void *address)
{
    real_dlsym(RTLD_NEXT, "dlclose");
    return dlsym_filter_answer(address);
}

/*
 * Searches the objects up to us: 1: defined before us (the program, an earlier preload), -1: not.
 */
static int visit_before(const struct object *o, void *name)
{
    return object_is_ours(o) ? -1 : object_symbol(o, name) != NULL;
}

/* Searches the objects between the caller and us: 1: defined there, -1: not; 2: the caller does not
 * precede us. */
static int visit_between(const struct object *o, void *data)
{
    struct look_up *l = data;
    if (object_is_ours(o))
        return l->past_caller ? -1 : 2;
    if (l->past_caller && object_symbol(o, l->name))
        return 1;
    l->past_caller |= object_has(o, l->caller);
    return 0;
}

/* Searches preloads after us. They are in the global scope, but one that hooks dlsym does not
 * report it. */
static int visit_behind(const struct object *o, void *data)
{
    struct look_up *l = data;
    if (object_is(o, "libc.so"))
        return -1;
    if (l->past_self)
        return object_symbol(o, l->name) != NULL;
    l->past_self = object_is_ours(o);
    return 0;
}

/* Returns whether a preload that hooks dlsym asks for a stub's function. The stub itself may be
 * asking, and if it finds itself, it looks elsewhere. */
static bool is_for_stub(const struct look_up *l, void *real)
{
    return l->known && object_symbol(&l->from, "dlsym") &&
           resolve_is_stub(l->name, (uintptr_t)real);
}

/* RTLD_NEXT: for objects before us we are next, but there may be no definition after us. */
static struct filter_answer find_next(struct look_up *l)
{
    if (!l->hook || objects_each(visit_between, l) != -1)
        return pass;
    void *behind = real_dlsym(RTLD_NEXT, l->name);
    return behind && !l->by_patcher && !is_for_stub(l, behind) ? pass : dlsym_filter_answer(behind);
}

/*
 * Searches all objects that the program sees; we come before the object that defines the name.
 * `local`: also search objects that only the caller sees, such as those that a plugin opened with
 * RTLD_LOCAL is linked with. The object that defines the name must not get a hook that would call
 * it.
 */
static struct filter_answer find_in_all(struct look_up *l, bool local)
{
    if (objects_each(visit_before, (void *)(uintptr_t)l->name) == 1)
        return pass;
    /* called from here, it searches the global scope after us */
    void *behind = real_dlsym(RTLD_NEXT, l->name);
    void *own = l->known ? object_symbol(&l->from, l->name) : NULL;
    void *real = behind ? behind : local ? own : NULL;
    bool is_own = own && !resolve_is_vendors(l->name, (uintptr_t)real);
    if (real && (l->by_driver || is_own || is_for_stub(l, real)))
        return found(real);
    struct object o;
    if (!real && !l->by_driver) {
        real = resolve_definition(l->name, l->caller);
        if (objects_each(visit_behind, l) != 1 &&
            !(local && l->known && object_at((uintptr_t)real, &o) &&
              object_needs(&l->from, object_soname(&o))))
            real = NULL;
    }
    return !real ? dlsym_filter_answer(NULL) /* sets its dlerror */
                 : found(l->by_patcher ? real : l->hook->wrapper);
}

/* Answers a look-up by our own handle: dladdr() of a hook has led the caller here. It wants the
 * functions that hooks stand for, and also those without a hook. A driver wants its own. */
static struct filter_answer find_behind_us(const struct look_up *l)
{
    bool itself = l->by_driver && resolve_is_vendors(l->name, l->caller);
    void *real = itself ? object_symbol(&l->from, l->name) : resolve_definition(l->name, l->caller);
    if (real)
        return found(l->hook && !l->by_driver ? l->hook->wrapper : real);
    /* For its dlerror: no version of the name is defined by us. */
    return dlsym_filter_answer(real_dlvsym(l->handle, l->name, l->version ? l->version : "CUDA"));
}

/*
 * Returns the address of the object whose calls go through the result: the caller. A preload before
 * us that hooks dlsym asks on behalf of its caller, if its own dlsym is on the way here; otherwise
 * for itself.
 */
static uintptr_t asker(const struct look_up *l)
{
    size_t bytes = 0;
    void *its = l->known ? object_symbol_sized(&l->from, "dlsym", &bytes) : NULL;
    if (!its || objects_each(visit_precedes, (void *)l->caller) != 1)
        return l->caller;
    uintptr_t behind = walk_caller_of((uintptr_t)its, (uintptr_t)its + bytes);
    return behind ? behind : l->caller;
}

static struct filter_answer filter(void *handle, const char *name, const char *version,
                                   uintptr_t caller)
{
    dlsym_find_real();
    if (version && handle == RTLD_NEXT && name && name[0] == 'd') {
        void *ours = next_dl_function(name, caller);
        return ours ? dlsym_filter_answer(ours) : pass;
    }
    if (!name || !hook_name_possible(name))
        return pass;
    struct look_up l = {.handle = handle, .name = name, .version = version, .caller = caller};
    l.hook = hook_find(name);
    l.known = object_at(caller, &l.from);
    l.by_driver = l.known && in_driver(&l.from);
    l.by_patcher = l.hook && patches(&l);
    if (handle == RTLD_NEXT)
        return find_next(&l);
    if (handle && handle == our_map())
        return find_behind_us(&l);
    if (!l.hook)
        return pass;
    if (handle == RTLD_DEFAULT)
        return find_in_all(&l, true);
    void *real = version ? real_dlvsym(handle, name, version) : real_dlsym(handle, name);
    if (real == l.hook->wrapper) {
        if (l.by_driver || is_programs(handle)) /* the global scope, in which we are first */
            return find_in_all(&l, false);
        /* Another preload after us hooks dlsym, too, and takes our hook for its own function. */
        real = resolve_definition(name, caller);
    }
    /* A library that asks for its own functions means exactly these. */
    if (!real || l.by_driver || l.by_patcher ||
        (l.known && resolve_is_part(&l.from, (enum api_domain)l.hook->domain)) ||
        !resolve_asked(l.hook, asker(&l), real))
        return dlsym_filter_answer(real);
    return dlsym_filter_answer(l.hook->wrapper);
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
