/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a libcupti may be, under which names, and in which order it is looked for. The library goes
 * by it in the program; `gpuprof doctor` does so beforehand, to say what the library will find.
 */
#ifndef GPUPROF_FORMATS_CUPTI_PLACES_H
#define GPUPROF_FORMATS_CUPTI_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#define CUPTI_PATH_BYTES_MAX 1024 /* what is longer is passed over */
#define CUPTI_RUNTIME_MAX    4    /* libcudart that are looked around */
#define CUPTI_HOME_MAX       2

struct cupti_runtime {
    char folder[CUPTI_PATH_BYTES_MAX]; /* with its last '/' */
    unsigned major;                    /* 0: its name does not say */
};

/* What is known before the search. */
struct cupti_places {
    char mapped[CUPTI_PATH_BYTES_MAX]; /* a libcupti that the program has; "": none */
    struct cupti_runtime runtimes[CUPTI_RUNTIME_MAX];
    unsigned runtime_count;
    const char *homes[CUPTI_HOME_MAX]; /* roots of toolkits; views, NULL or empty: none */
    const char *library_path;          /* $LD_LIBRARY_PATH; a view, NULL or empty: none */
    unsigned driver_major;             /* newer libcupti are not looked for; 0: not known */
};

enum cupti_place {
    CUPTI_PLACE_MAPPED, /* the path of one that is loaded */
    CUPTI_PLACE_FILE,   /* the path of a file that is there */
    CUPTI_PLACE_SONAME, /* a name for the loader's own search */
};

/* Takes note of an object of the program's, if it is a libcupti or a libcudart. */
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
