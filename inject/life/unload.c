/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlclose: what is known of the objects that it unloaded is forgotten before its caller can load
 * others in their place. The real one does not look at who calls it, and what we do after it leaves
 * errno and dlerror() alone.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/objects.h"
#include "record/feature.h"

typedef int (*dlclose_fn)(void *handle);

static _Atomic(dlclose_fn) real_dlclose; /* by each first call, to the same */

struct next {
    bool past_self;
    void *address;
};

static int visit_next(const struct object *o, void *data)
{
    struct next *next = data;
    if (object_is_ours(o))
        next->past_self = true;
    else if (next->past_self)
        next->address = object_symbol(o, "dlclose");
    return next->address != NULL;
}

EXPORT int dlclose(void *handle)
{
    dlclose_fn real = atomic_load_explicit(&real_dlclose, memory_order_relaxed);
    if (unlikely(!real)) {
        struct next next = {0};
        objects_each(visit_next, &next);
        real = (dlclose_fn)next.address; /* libc's at the latest */
        atomic_store_explicit(&real_dlclose, real, memory_order_relaxed);
    }
    FEATURES_DO(unloading, ());
    int result = real(handle);
    FEATURES_DO(unloaded, ());
    return result;
}
