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

static const char *const symbol = "dlclose";
static _Atomic(void *) real; /* by each first call, to the same */

EXPORT int dlclose(void *handle)
{
    if (unlikely(!atomic_load_explicit(&real, memory_order_relaxed)))
        objects_next(&symbol, &real, 1);
    FEATURES_DO(unloading, ());
    int result = ((dlclose_fn)atomic_load_explicit(&real, memory_order_relaxed))(handle);
    FEATURES_DO(unloaded, ());
    return result;
}
