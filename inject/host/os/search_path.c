/* SPDX-License-Identifier: Apache-2.0 */
#include "host/os/search_path.h"

#include "base/objects.h"

struct search {
    uintptr_t caller;
    bool is_program;  /* the caller is the program itself, whose RPATH applies to all */
    bool has_runpath; /* the caller has its own search folders, or does not use the system's */
    /* an object other than the program has an RPATH, which applies to what it loads */
    bool may_inherit;
    unsigned seen_count;
};

/* Visits objects up to the caller: the objects that loaded it come before it. */
static int search_path_look(const struct object *o, void *data)
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
    /* Code outside all objects, or in another namespace, has unknown search paths. */
    return objects_each(search_path_look, &s) && !s.may_inherit && (has_folder || !s.has_runpath);
}
