/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* One per major version, newest first; 11.8 is the oldest with all functions that we need. */
static const struct {
    unsigned major;
    const char *name;
} sonames[] = {
    {13, "libcupti.so.13"},
    {12, "libcupti.so.12"},
    {11, "libcupti.so.11.8"},
};

/*
 * Relative to the folder of libcudart: beside it (conda, CUDA 13's wheels, a toolkit's lib64);
 * CUPTI's wheel beside the runtime's; both wheels, from torch/lib; the toolkit's extras, from lib64
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

static const char *const of_system[] = {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/",
                                        "/usr/lib64/", "/usr/lib/"};

struct search {
    const struct cupti_places *places;
    bool (*visit)(void *context, const char *name, enum cupti_place place);
    void *context;
};

/* "libcudart.so.12", or "libcudart-0123abcd.so.12" as some wheels rename it. */
static bool soname_is(const char *soname, const char *stem)
{
    size_t length = strlen(stem);
    return strncmp(soname, stem, length) == 0 && (soname[length] == '.' || soname[length] == '-');
}

void cupti_places_add(struct cupti_places *p, const char *path, const char *soname)
{
    size_t length = strlen(path);
    if (length >= CUPTI_PATH_BYTES_MAX)
        return;
    if (soname_is(soname, "libcupti") && !p->mapped[0])
        memcpy(p->mapped, path, length + 1);
    if (soname_is(soname, "libcudart") && p->runtime_count < CUPTI_RUNTIME_MAX) {
        struct cupti_runtime *r = &p->runtimes[p->runtime_count++];
        const char *slash = strrchr(path, '/');
        const char *number = strstr(soname, ".so.");
        size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
        memcpy(r->folder, path, folder);
        r->folder[folder] = '\0';
        r->major = number ? (unsigned)strtoul(number + 4, NULL, 10) : 0;
    }
}

/* Tries the sonames in one folder (none: the loader's search): `first` before the others. */
static bool each_soname(const struct search *s, const char *root, const char *folder,
                        unsigned first)
{
    unsigned newest = s->places->driver_major;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < COUNT_OF(sonames); i++) {
            char path[CUPTI_PATH_BYTES_MAX];
            bool is_first = sonames[i].major == first;
            if (is_first != (pass == 0) || (newest && sonames[i].major > newest))
                continue;
            if (!folder) {
                if (s->visit(s->context, sonames[i].name, CUPTI_PLACE_SONAME))
                    return true;
                continue;
            }
            int length = snprintf(path, sizeof path, "%s%s%s", root, folder, sonames[i].name);
            if (length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0 &&
                s->visit(s->context, path, CUPTI_PLACE_FILE))
                return true;
        }
    return false;
}

/* Tries each folder of a list as the loader parses it, except empty entries, which the loader takes
 * for the current folder. */
static bool each_folder(const struct search *s, const char *list, unsigned first)
{
    while (list && *list) {
        char folder[CUPTI_PATH_BYTES_MAX];
        size_t length = strcspn(list, ":;");
        if (*list == '/' && length < sizeof folder && !memchr(list, '$', length)) {
            memcpy(folder, list, length);
            folder[length] = '\0';
            if (each_soname(s, folder, "/", first))
                return true;
        }
        list += length + (list[length] != '\0');
    }
    return false;
}

bool cupti_places_each(const struct cupti_places *p,
                       bool (*visit)(void *context, const char *name, enum cupti_place place),
                       void *context)
{
    const struct search s = {p, visit, context};
    unsigned first = p->runtime_count ? p->runtimes[0].major : 0;
    if (p->mapped[0] && visit(context, p->mapped, CUPTI_PLACE_MAPPED))
        return true;
    for (unsigned i = 0; i < p->runtime_count; i++)
        for (size_t j = 0; j < COUNT_OF(around_runtime); j++)
            if (each_soname(&s, p->runtimes[i].folder, around_runtime[j], p->runtimes[i].major))
                return true;
    for (unsigned i = 0; i < CUPTI_HOME_MAX; i++)
        for (size_t j = 0; j < COUNT_OF(below_home); j++)
            if (p->homes[i] && p->homes[i][0] && each_soname(&s, p->homes[i], below_home[j], first))
                return true;
    if (each_folder(&s, p->library_path, first) || each_soname(&s, NULL, NULL, first))
        return true;
    for (size_t i = 0; i < COUNT_OF(of_system); i++)
        if (each_soname(&s, "", of_system[i], first))
            return true;
    return false;
}
