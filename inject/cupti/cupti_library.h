/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcupti: where it is, its functions, its version and the sizes of its records. Loaded with
 * dlopen at run time, and never unloaded: libcupti does not survive it. Nothing here may run from a
 * constructor, and nothing before the driver's cuInit has succeeded: libcupti looks for the driver
 * by itself. Without one 13.2 crashes at any call, and later ones answer 999 even to
 * cuptiGetVersion.
 */
#ifndef GPUPROF_INJECT_CUPTI_LIBRARY_H
#define GPUPROF_INJECT_CUPTI_LIBRARY_H

#include "base/real_dlsym.h"
#include "cupti/cupti_abi.h"
#include "cupti/cupti_record.h"
#include "cupti_places.h"

#define CUPTI_REASON_BYTES_MAX 1024
#define CUPTI_REFUSED_MAX      6

/* What is known before the search; strings are views, NULL or empty where there is nothing. */
struct cupti_search {
    const char *setting;                   /* $GPUPROF_CUPTI: this file, and no other */
    const char *homes[CUPTI_HOME_MAX];     /* roots of toolkits: $CUDA_HOME, /usr/local/cuda */
    const char *library_path;              /* $LD_LIBRARY_PATH */
    char (*refused)[CUPTI_PATH_BYTES_MAX]; /* paths of those that load but would not subscribe */
    unsigned refused_count;
    unsigned driver_major; /* from cuDriverGetVersion; newer libcupti are not tried */
    dlsym_fn find_symbol;  /* the real dlsym, not the one that we export */
};

struct cupti_library {
    void *handle;
    char path[CUPTI_PATH_BYTES_MAX]; /* as the loader knows it */
    uint32_t version; /* cuptiGetVersion: 18 for 11.8, 22 for 12.4, 130000 for 13.0 */
    struct cupti_sizes sizes;
#define CUPTI_FUNCTION(name, required, returns, params) returns(*name) params;
#include "cupti/cupti_functions.def"
};

/*
 * Looks for the one that the setting names, and for nothing else if there is one; or in the order
 * of cupti_places.h. Takes the first libcupti that has the functions, tells its version and walks
 * its own records.
 * A minor version newer than the driver, or another driver's, is found out only by cuptiSubscribe:
 * further searches then pass over such paths. False: nothing to use, and reason[0 .. reason_bytes)
 * says why in one line.
 *
 * Takes milliseconds, allocates, runs libcupti's constructors, and takes the loader's lock. errno
 * is kept; but a message that the calling thread had not yet fetched by dlerror() is lost.
 */
bool cupti_library_load(struct cupti_library *library, const struct cupti_search *search,
                        char *reason, size_t reason_bytes);

/*
 * The sizes of the records, by walking some; false: it does not walk them. Done on loading where a
 * libcupti serves one client (up to 13.2); else it is for the caller, who knows which of the two
 * GetNextRecord the process may use.
 */
bool cupti_library_measure(struct cupti_library *library, cupti_next_record_fn next_record);

#endif
