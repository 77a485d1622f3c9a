/* SPDX-License-Identifier: Apache-2.0 */
/* The dlsym and dlvsym that ours stand before: the next definitions in load order. */
#ifndef GPUPROF_INJECT_REAL_DLSYM_H
#define GPUPROF_INJECT_REAL_DLSYM_H

#include <stdbool.h>

typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef void *(*dlvsym_fn)(void *handle, const char *name, const char *version);

/* Written once, by the first dlsym_find_real, of whichever thread. */
extern dlsym_fn real_dlsym;
extern dlvsym_fn real_dlvsym;

/* Written with them. False: libc lies before us, so that no call reaches a hook of ours. */
extern bool is_preloaded;

/* Fills both if nobody has yet. */
void dlsym_find_real(void);

#endif
