/* SPDX-License-Identifier: Apache-2.0 */
#include "base/real_dlsym.h"

#include <stddef.h>

#include "base/objects.h"

dlsym_fn real_dlsym;
dlvsym_fn real_dlvsym;
bool is_preloaded;

struct next {
    bool past_self;
    bool from_first; /* also search the objects before ours */
    void *dlsym;
    void *dlvsym;
};

static int visit_next(const struct object *o, void *data)
{
    struct next *next = data;
    if (object_is_ours(o)) {
        next->past_self = true;
        return 0;
    }
    if (!next->past_self && !next->from_first)
        return 0;
    /* Another preloaded library that hooks dlsym comes first, then libc (or libdl before glibc
     * 2.34). */
    if (!next->dlsym)
        next->dlsym = object_symbol(o, "dlsym");
    if (!next->dlvsym)
        next->dlvsym = object_symbol(o, "dlvsym");
    return next->dlsym && next->dlvsym;
}

/*
 * Walks the ELF tables: dlvsym itself is one of our exports, and a call of any dl* function would
 * change the program's next dlerror(). Threads may race through it, since it always finds the same.
 * It runs before any constructor if one calls dlsym. If the driver or NVTX loaded us without
 * LD_PRELOAD, libc comes before us.
 */
void dlsym_find_real(void)
{
    struct next next = {0};
    if (__atomic_load_n(&real_dlsym, __ATOMIC_ACQUIRE))
        return;
    objects_each(visit_next, &next);
    bool is_behind = next.dlsym && next.dlvsym;
    next.from_first = true;
    if (!next.dlsym || !next.dlvsym)
        objects_each(visit_next, &next);
    is_preloaded = is_behind;
    real_dlvsym = (dlvsym_fn)next.dlvsym;
    __atomic_store_n(&real_dlsym, (dlsym_fn)next.dlsym, __ATOMIC_RELEASE);
}
