/* SPDX-License-Identifier: Apache-2.0 */
#include "host/os/search_path.h"

#include "base/objects.h"

struct search {
    uintptr_t caller;
    bool is_program;  /* the caller is the program itself, whose RPATH is everybody's */
    bool has_runpath; /* the caller has folders for itself alone, or does not use the system's */
    bool may_inherit; /* an object but the program has an RPATH, which holds for what it loads */
    unsigned seen_count;
};

/* Up to the caller: what has loaded an object stands before it. */
static int look(const struct object *o, void *data)
{
    struct search *s = data;
    bool has_rpath = false, has_runpath = false, no_system = false;
    for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
        has_rpath |= d->d_tag == DT_RPATH;
        has_runpath |= d->d_tag == DT_RUNPATH;
        no_system |= d->d_tag == DT_FLAGS_1 && d->d_un.d_val & DF_1_NODEFLIB;
    }
    s->is_program = s->seen_count++ == 0;
    s->has_runpath = has_runpath || no_system;
    s->may_inherit |= !s->is_program && has_rpath && !has_runpath;
    return object_has(o, s->caller);
}

bool search_path_is_anybodys(const char *name, uintptr_t caller)
{
    struct search s = {.caller = caller};
    bool has_folder = false;
    if (!name)
        return false;
    for (; *name; name++) {
        has_folder |= *name == '/';
        if (*name == '$') /* $ORIGIN is the caller's folder */
            return false;
    }
    /* Code in no object, or in one of another namespace, is not known. */
    return objects_each(look, &s) && !s.may_inherit && (has_folder || !s.has_runpath);
}
