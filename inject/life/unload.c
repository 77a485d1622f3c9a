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

EXPORT int dlclose(void *handle)
{
    dlclose_fn real = atomic_load_explicit(&real_dlclose, memory_order_relaxed);
    if (unlikely(!real)) {
        real = (dlclose_fn)objects_next("dlclose");
        atomic_store_explicit(&real_dlclose, real, memory_order_relaxed);
    }
    FEATURES_DO(unloading, ());
    int result = real(handle);
    FEATURES_DO(unloaded, ());
    return result;
}
