/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sanitizer.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/objects.h"

static _Atomic bool is_here; /* set by sanitizer_bypass */

struct own {
    struct object object;
    struct object libc;
};

static int visit_libc(const struct object *o, void *libc)
{
    if (!object_is(o, "libc.so"))
        return 0;
    *(struct object *)libc = *o;
    return 1;
}

static bool sanitizer_bind(void **slot, const char *name, void *data)
{
    const struct own *own = data;
    bool is_memory = strncmp(name, "mem", 3) == 0 || strncmp(name, "str", 3) == 0;
    void *real = is_memory ? object_symbol(&own->libc, name) : NULL;
    if (real)
        object_divert(&own->object, slot, real);
    return false;
}

void sanitizer_bypass(void)
{
    struct own own;
    if (!objects_each(visit_libc, &own.libc) || !object_at((uintptr_t)&is_here, &own.object) ||
        (uintptr_t)memcpy - own.libc.low < own.libc.high - own.libc.low)
        return;
    object_each_import(&own.object, sanitizer_bind, &own);
    atomic_store(&is_here, true);
}

/*
 * AddressSanitizer reads its options from this function if the program does not define it. By
 * default it ends the program when its library is not the first one. That is safe here, since we
 * replace none of its functions.
 */
EXPORT const char *__asan_default_options(void);
EXPORT const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

/*
 * The same for ThreadSanitizer. By default it ends a child process that starts a thread if its
 * parent had several threads when it forked. Our writer is such a thread, and starts again in the
 * child.
 */
EXPORT const char *__tsan_default_options(void);
EXPORT const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

bool sanitizer_is_here(void)
{
    return atomic_load(&is_here);
}
