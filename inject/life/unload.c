/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlclose: forgets what is known of the unloaded objects before the caller can load others at their
 * addresses. The real dlclose does not check its caller, and our code after it keeps errno and
 * dlerror().
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
static _Atomic(void *) real; /* set by each thread's first call, always to the same value */

EXPORT int dlclose(void *handle)
{
    if (unlikely(!atomic_load_explicit(&real, memory_order_relaxed)))
        objects_next(&symbol, &real, 1);
    FEATURES_DO(unloading, ());
    int result = ((dlclose_fn)atomic_load_explicit(&real, memory_order_relaxed))(handle);
    FEATURES_DO(unloaded, ());
    return result;
}
