/* SPDX-License-Identifier: Apache-2.0 */
/* The places where a libcupti may be, its names, and the order of the search. The library uses it
 * in the program; `gpuprof doctor` uses it beforehand, to predict what the library will find. */
#ifndef GPUPROF_FORMATS_CUPTI_PLACES_H
#define GPUPROF_FORMATS_CUPTI_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#define CUPTI_PATH_BYTES_MAX 1024 /* longer paths are skipped */
#define CUPTI_RUNTIME_MAX    4    /* number of libcudart whose surroundings are searched */
#define CUPTI_HOME_MAX       2

struct cupti_runtime {
    char folder[CUPTI_PATH_BYTES_MAX]; /* including its last '/' */
    unsigned major;                    /* 0: not in its name */
};

/* What the search depends on. */
struct cupti_places {
    char mapped[CUPTI_PATH_BYTES_MAX]; /* a libcupti that the program has loaded; "": none */
    struct cupti_runtime runtimes[CUPTI_RUNTIME_MAX];
    unsigned runtime_count;
    const char *homes[CUPTI_HOME_MAX]; /* folders of toolkits; borrowed; NULL or empty: none */
    const char *library_path;          /* $LD_LIBRARY_PATH; borrowed; NULL or empty: none */
    unsigned driver_major;             /* newer versions of libcupti are not tried; 0: not known */
};

enum cupti_place {
    CUPTI_PLACE_MAPPED, /* path of a loaded library */
    CUPTI_PLACE_FILE,   /* path of an existing file */
    CUPTI_PLACE_SONAME, /* name for the loader's own search */
};

/* Notes an object of the program if it is a libcupti or a libcudart. */
void cupti_places_add(struct cupti_places *places, const char *path, const char *soname);

/*
 * Calls `visit` with each name in turn until it returns true, and returns that:
 *   1. the one that is mapped already
 *   2. around each libcudart: its folder, the folders of wheels, the toolkit's extras
 *   3. the roots of toolkits
 *   4. the folders of LD_LIBRARY_PATH, by path: by its soname the loader would find one that was
 *      refused, and is loaded since
 *   5. the loader's own search, by soname
 *   6. the system's folders, by path
 * The major version of the libcudart first, then others, newest first, but none above the driver's.
 * Allocates nothing.
 */
bool cupti_places_each(const struct cupti_places *places,
                       bool (*visit)(void *context, const char *name, enum cupti_place place),
                       void *context);

#endif
