/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/objects.h"

#define FAILURE_BYTES_MAX 400

struct finder {
    struct cupti_library *library;
    const struct cupti_search *search;
    struct cupti_places places;
    char failure[FAILURE_BYTES_MAX]; /* why the first library found cannot be used */
    unsigned failure_count;
};

/* A text that is cut when its buffer is full. */
struct line {
    char *text;
    size_t bytes;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void cupti_library_add(struct line *line,
                                                                    const char *format, ...)
{
    size_t left = line->bytes - line->length;
    if (left == 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->length, left, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->length += (size_t)length < left ? (size_t)length : left - 1;
}

/* Notes the reason. Returns false, which its callers return. */
__attribute__((format(printf, 2, 3))) static bool cupti_library_refuse(struct finder *f,
                                                                       const char *format, ...)
{
    va_list arguments;
    if (f->failure_count++)
        return false;
    va_start(arguments, format);
    vsnprintf(f->failure, sizeof f->failure, format, arguments);
    va_end(arguments);
    return false;
}

static int visit_mapped(const struct object *o, void *data)
{
    cupti_places_add(data, o->path, object_soname(o));
    return 0;
}

static bool take_functions(struct cupti_library *l, dlsym_fn find_symbol, const char **missing)
{
    *missing = NULL;
#define CUPTI_FUNCTION(name, required, returns, params)                                            \
    l->name = (returns(*) params)find_symbol(l->handle, #name);                                    \
    if ((required) && !l->name && !*missing)                                                       \
        *missing = #name;
#include "cupti/cupti_functions.def"
    return !*missing;
}

bool cupti_library_measure(struct cupti_library *library, cupti_next_record_fn next_record)
{
    cupti_sizes_measure(&library->sizes, next_record);
    return library->sizes.bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] &&
           library->sizes.bytes[CUPTI_ACTIVITY_KIND_MEMCPY];
}

/* Checks whether the library behind the handle is a usable libcupti. `name` is the name it was
 * opened by. */
static bool cupti_library_take_library(struct finder *f, const char *name)
{
    struct cupti_library *l = f->library;
    struct object object;
    const char *missing;
    if (!take_functions(l, f->search->find_symbol, &missing))
        return cupti_library_refuse(f, "%s has no %s", name, missing);
    bool found = object_at((uintptr_t)l->cuptiGetVersion, &object);
    snprintf(l->path, sizeof l->path, "%s", found ? object.path : name);
    for (unsigned i = 0; i < f->search->refused_count; i++)
        if (strcmp(l->path, f->search->refused[i]) == 0)
            return cupti_library_refuse(f, "%s does not work with this driver", l->path);
    CUptiResult result = l->cuptiGetVersion(&l->version);
    if (result != CUPTI_SUCCESS)
        return cupti_library_refuse(
            f, "%s does not start (error %d: the driver is missing or too old)", l->path,
            (int)result);
    if (!l->cuptiActivityGetNextRecord_v2 &&
        !cupti_library_measure(l, l->cuptiActivityGetNextRecord))
        return cupti_library_refuse(f, "%s cannot read its own records", l->path);
    return true;
}

/* Opens the library that the loader finds by `name`; `flags` are added to the usual ones. */
static bool try_name(struct finder *f, const char *name, int flags, bool is_there)
{
    f->library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
    if (f->library->handle)
        return cupti_library_take_library(f, name);
    const char *why = dlerror();
    return is_there ? cupti_library_refuse(f, "%s", why ? why : name) : false;
}

static bool try_place(void *context, const char *name, enum cupti_place place)
{
    return try_name(context, name, place == CUPTI_PLACE_MAPPED ? RTLD_NOLOAD : 0,
                    place != CUPTI_PLACE_SONAME);
}

/* CUDA_HOME may name the default folder. */
static bool is_first(const char *const *homes, unsigned home)
{
    for (unsigned i = 0; i < home; i++)
        if (homes[i] && strcmp(homes[i], homes[home]) == 0)
            return false;
    return true;
}

/* The advice comes before the list of places, which may be cut. */
static void write_reason(const struct finder *f, struct line *line)
{
    const struct cupti_places *p = &f->places;
    if (f->failure_count)
        cupti_library_add(line, "no usable libcupti: %s", f->failure);
    else
        cupti_library_add(line, "libcupti not found");
    if (f->search->setting && f->search->setting[0]) {
        cupti_library_add(line, "; GPUPROF_CUPTI names this one");
        return;
    }
    cupti_library_add(line, "; set GPUPROF_CUPTI to one; searched ");
    for (unsigned i = 0; i < p->runtime_count; i++)
        cupti_library_add(line, "%s (libcudart), ", p->runtimes[i].folder);
    for (unsigned i = 0; i < CUPTI_HOME_MAX; i++)
        if (p->homes[i] && p->homes[i][0] && is_first(p->homes, i))
            cupti_library_add(line, "%s, ", p->homes[i]);
    cupti_library_add(line, "the loader's folders");
    if (p->driver_major)
        cupti_library_add(line, ", for a version up to the driver's CUDA %u", p->driver_major);
}

bool cupti_library_load(struct cupti_library *library, const struct cupti_search *search,
                        char *reason, size_t reason_bytes)
{
    int saved = errno;
    struct finder finder = {.library = library, .search = search};
    struct line line = {reason, reason_bytes, 0};
    bool found;
    *library = (struct cupti_library){0};
    if (search->setting && search->setting[0]) {
        found = try_name(&finder, search->setting, 0, true);
    } else {
        memcpy(finder.places.homes, search->homes, sizeof search->homes);
        finder.places.library_path = search->library_path;
        finder.places.driver_major = search->driver_major;
        objects_each(visit_mapped, &finder.places);
        found = cupti_places_each(&finder.places, try_place, &finder);
    }
    if (!found) {
        *library = (struct cupti_library){0};
        write_reason(&finder, &line);
    }
    dlerror(); /* removes our error text, or that of libcupti's own search for the driver */
    errno = saved;
    return found;
}
