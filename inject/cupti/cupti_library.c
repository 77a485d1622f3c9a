/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/objects.h"

#define RUNTIME_MAX       4 /* libcudart mapped at once that are looked around */
#define SONAME_MAX        3
#define FAILURE_BYTES_MAX 400

/* One per major version, newest first; 11.8 is the oldest with the functions that are needed. */
static const struct {
    unsigned major;
    const char *name;
} sonames[SONAME_MAX] = {
    {13, "libcupti.so.13"},
    {12, "libcupti.so.12"},
    {11, "libcupti.so.11.8"},
};

/*
 * From the folder of libcudart: beside it (conda, CUDA 13's wheels, a toolkit's lib64); the wheel
 * of CUPTI beside that of the runtime; both wheels from torch/lib; the toolkit's extras, from lib64
 * and from targets/<machine>/lib.
 */
static const char *const around_runtime[] = {
    "",
    "../../cuda_cupti/lib/",
    "../../nvidia/cuda_cupti/lib/",
    "../../nvidia/cu13/lib/",
    "../extras/CUPTI/lib64/",
    "../../../extras/CUPTI/lib64/",
};

static const char *const below_home[] = {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"};

struct runtime {
    char folder[CUPTI_PATH_BYTES_MAX]; /* with its last '/' */
    unsigned major;
};

/* What dl_iterate_phdr shows; copied, since nothing may be opened during that walk. */
struct mapped {
    char cupti[CUPTI_PATH_BYTES_MAX];
    struct runtime runtimes[RUNTIME_MAX];
    unsigned runtime_count;
};

struct finder {
    struct cupti_library *library;
    const struct cupti_search *search;
    struct mapped mapped;
    char failure[FAILURE_BYTES_MAX]; /* of the first that was there and could not be used */
    unsigned failure_count;
};

/* A line that is cut where its room ends. */
struct line {
    char *text;
    size_t bytes;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
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

/* Always false, what its callers answer. */
__attribute__((format(printf, 2, 3))) static bool refuse(struct finder *f, const char *format, ...)
{
    va_list arguments;
    if (f->failure_count++)
        return false;
    va_start(arguments, format);
    vsnprintf(f->failure, sizeof f->failure, format, arguments);
    va_end(arguments);
    return false;
}

/* "libcudart.so.12", or "libcudart-0123abcd.so.12" as some wheels rename it. */
static bool soname_is(const char *soname, const char *stem)
{
    size_t length = strlen(stem);
    return strncmp(soname, stem, length) == 0 && (soname[length] == '.' || soname[length] == '-');
}

static int visit_mapped(const struct object *o, void *data)
{
    struct mapped *m = data;
    const char *soname = object_soname(o);
    size_t length = strlen(o->path);
    if (length >= CUPTI_PATH_BYTES_MAX)
        return 0;
    if (soname_is(soname, "libcupti") && !m->cupti[0])
        memcpy(m->cupti, o->path, length + 1);
    if (soname_is(soname, "libcudart") && m->runtime_count < RUNTIME_MAX) {
        struct runtime *r = &m->runtimes[m->runtime_count++];
        const char *slash = strrchr(o->path, '/');
        const char *number = strstr(soname, ".so.");
        size_t folder = slash ? (size_t)(slash - o->path) + 1 : 0;
        memcpy(r->folder, o->path, folder);
        r->folder[folder] = '\0';
        r->major = number ? (unsigned)strtoul(number + 4, NULL, 10) : 0;
    }
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

/* Is what the handle stands for a libcupti that can be used? `name` is what was opened. */
static bool take_library(struct finder *f, const char *name)
{
    struct cupti_library *l = f->library;
    struct object object;
    const char *missing;
    if (!take_functions(l, f->search->find_symbol, &missing))
        return refuse(f, "%s has no %s", name, missing);
    bool found = object_at((uintptr_t)l->cuptiGetVersion, &object);
    snprintf(l->path, sizeof l->path, "%s", found ? object.path : name);
    if (f->search->refused && strcmp(l->path, f->search->refused) == 0)
        return refuse(f, "%s does not work with this driver", l->path);
    CUptiResult result = l->cuptiGetVersion(&l->version);
    if (result != CUPTI_SUCCESS)
        return refuse(f, "%s does not start (error %d: no driver, or one that is too old for it)",
                      l->path, (int)result);
    if (!l->cuptiActivityGetNextRecord_v2 &&
        !cupti_library_measure(l, l->cuptiActivityGetNextRecord))
        return refuse(f, "%s does not walk its own records", l->path);
    return true;
}

/* Opens what the loader finds under `name`; `flags` beside the usual ones. */
static bool try_name(struct finder *f, const char *name, int flags, bool is_there)
{
    f->library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
    if (f->library->handle)
        return take_library(f, name);
    const char *why = dlerror();
    return is_there ? refuse(f, "%s", why ? why : name) : false;
}

/* The sonames in one folder (none: the loader's search): `first` before the others. */
static bool try_sonames(struct finder *f, const char *root, const char *folder, unsigned first)
{
    unsigned newest = f->search->driver_major;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < SONAME_MAX; i++) {
            char path[CUPTI_PATH_BYTES_MAX];
            bool is_first = sonames[i].major == first;
            if (is_first != (pass == 0) || (newest && sonames[i].major > newest))
                continue;
            if (!folder) {
                if (try_name(f, sonames[i].name, 0, false))
                    return true;
                continue;
            }
            int length = snprintf(path, sizeof path, "%s%s%s", root, folder, sonames[i].name);
            if (length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0 &&
                try_name(f, path, 0, true))
                return true;
        }
    return false;
}

static bool try_all(struct finder *f)
{
    const struct mapped *m = &f->mapped;
    unsigned first = m->runtime_count ? m->runtimes[0].major : 0;
    if (m->cupti[0] && try_name(f, m->cupti, RTLD_NOLOAD, true))
        return true;
    for (unsigned i = 0; i < m->runtime_count; i++)
        for (size_t j = 0; j < sizeof around_runtime / sizeof around_runtime[0]; j++)
            if (try_sonames(f, m->runtimes[i].folder, around_runtime[j], m->runtimes[i].major))
                return true;
    for (unsigned i = 0; i < CUPTI_HOME_MAX; i++)
        for (size_t j = 0; j < sizeof below_home / sizeof below_home[0]; j++) {
            const char *home = f->search->homes[i];
            if (home && home[0] && try_sonames(f, home, below_home[j], first))
                return true;
        }
    return try_sonames(f, NULL, NULL, first);
}

/* What the user can do comes before the list of places, which may be cut. */
static void write_reason(const struct finder *f, struct line *line)
{
    const struct mapped *m = &f->mapped;
    if (f->failure_count)
        add(line, "no libcupti can be used: %s", f->failure);
    else
        add(line, "libcupti not found");
    if (f->search->setting && f->search->setting[0]) {
        add(line, "; GPUPROF_CUPTI names it");
        return;
    }
    add(line, "; set GPUPROF_CUPTI; looked at ");
    for (unsigned i = 0; i < m->runtime_count; i++)
        add(line, "%s (libcudart), ", m->runtimes[i].folder);
    for (unsigned i = 0; i < CUPTI_HOME_MAX; i++)
        if (f->search->homes[i] && f->search->homes[i][0])
            add(line, "%s, ", f->search->homes[i]);
    add(line, "the loader's folders");
    if (f->search->driver_major)
        add(line, ", for none newer than the driver's CUDA %u", f->search->driver_major);
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
        objects_each(visit_mapped, &finder.mapped);
        found = try_all(&finder);
    }
    if (!found) {
        *library = (struct cupti_library){0};
        write_reason(&finder, &line);
    }
    dlerror(); /* ours, or what libcupti's own search for the driver left */
    errno = saved;
    return found;
}
