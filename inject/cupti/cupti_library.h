/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcupti: its path, functions, version and record sizes. It is loaded with dlopen at run time,
 * and never unloaded, since libcupti does not survive that. Do not call anything here from a
 * constructor, or before the driver's cuInit has succeeded: libcupti searches for the driver
 * itself. Without one 13.2 crashes in any call, and later versions return 999 even from
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

/* What the search depends on. Strings are borrowed; NULL or empty if not known. */
struct cupti_search {
    const char *setting;                   /* $GPUPROF_CUPTI: try only this file */
    const char *homes[CUPTI_HOME_MAX];     /* folders of toolkits: $CUDA_HOME, /usr/local/cuda */
    const char *library_path;              /* $LD_LIBRARY_PATH */
    char (*refused)[CUPTI_PATH_BYTES_MAX]; /* paths of libraries that load but cannot subscribe */
    unsigned refused_count;
    unsigned driver_major; /* from cuDriverGetVersion; newer versions of libcupti are not tried */
    dlsym_fn find_symbol;  /* the real dlsym, not the one that we export */
};

struct cupti_library {
    void *handle;
    char path[CUPTI_PATH_BYTES_MAX]; /* as the loader reports it */
    uint32_t version; /* cuptiGetVersion: 18 for 11.8, 22 for 12.4, 130000 for 13.0 */
    struct cupti_sizes sizes;
#define CUPTI_FUNCTION(name, required, returns, params) returns(*name) params;
#include "cupti/cupti_functions.def"
};

/*
 * Tries only the file that the setting names, or else the places of cupti_places.h in order. Takes
 * the first libcupti that has the functions, reports its version and can read its own records. Only
 * cuptiSubscribe detects a libcupti that is newer than the driver, or that belongs to another
 * driver; the caller adds such paths to `refused` and searches again. On failure it returns false,
 * and `reason` says why in one line.
 *
 * Takes milliseconds, allocates, runs libcupti's constructors, and takes the loader's lock. Keeps
 * errno, but a message that the calling thread has not yet fetched with dlerror() is lost.
 */
bool cupti_library_load(struct cupti_library *library, const struct cupti_search *search,
                        char *reason, size_t reason_bytes);

/*
 * Measures the record sizes by reading test records; false: that fails. Done on loading if libcupti
 * serves one client (up to 13.2). Otherwise the caller does it, since it knows which of the two
 * GetNextRecord functions the process may use.
 */
bool cupti_library_measure(struct cupti_library *library, cupti_next_record_fn next_record);

#endif
