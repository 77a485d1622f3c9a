/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/torch_library.h"

#include "base/objects.h"

struct torch_library torch_library;

struct found {
    struct torch_library library;
    bool is_there; /* a libtorch_cpu is loaded, whatever it exports */
};

static const char undefined_name[] = "_ZN3c1019UndefinedTensorImpl10_singletonE";

static uintptr_t symbol(const struct object *o, const char *name)
{
    return (uintptr_t)object_symbol(o, name);
}

/*
 * Checks any object: a program may be linked with PyTorch statically, and exports its symbols then.
 */
static int torch_library_visit(const struct object *o, void *data)
{
    struct found *found = data;
    struct torch_library *l = &found->library;
    if (!l->undefined)
        l->undefined = object_symbol(o, undefined_name);
    found->is_there |= object_is(o, "libtorch_cpu.so");
    if (l->add)
        return l->undefined != NULL;
    l->add = (torch_add_fn)symbol(o, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
    if (l->add) {
        l->disable = (torch_switch_fn)symbol(o, "_ZN2at15disableCallbackEm");
        l->reenable = (torch_switch_fn)symbol(o, "_ZN2at16reenableCallbackEm");
        l->name = (torch_name_fn)symbol(o, "_ZNK2at14RecordFunction4nameEv");
        l->input_count = (torch_count_fn)symbol(o, "_ZNK2at14RecordFunction10num_inputsEv");
        l->thread = (torch_thread_fn)symbol(o, "_ZN2at14RecordFunction15currentThreadIdEv");
    }
    return 0;
}

const char *torch_library_find(void)
{
    struct found found = {0};
    const struct torch_library *l = &found.library;
    objects_each(torch_library_visit, &found);
    if (!l->add && !found.is_there)
        return TORCH_LIBRARY_ABSENT;
    if (!l->add || !l->disable || !l->reenable || !l->name || !l->input_count || !l->thread)
        return "absent: libtorch_cpu.so does not export the profiling callbacks";
    torch_library = *l;
    return NULL;
}

bool torch_library_is_loaded(void)
{
    struct object o;
    return object_at((uintptr_t)torch_library.add, &o) &&
           object_symbol(&o, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") ==
               (void *)(uintptr_t)torch_library.add;
}
