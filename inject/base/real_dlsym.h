/* SPDX-License-Identifier: Apache-2.0 */
/* The dlsym and dlvsym that follow ours in load order. */
#ifndef GPUPROF_INJECT_REAL_DLSYM_H
#define GPUPROF_INJECT_REAL_DLSYM_H

#include <stdbool.h>

typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef void *(*dlvsym_fn)(void *handle, const char *name, const char *version);

/* Set by the first dlsym_find_real, on any thread. */
extern dlsym_fn real_dlsym;
extern dlvsym_fn real_dlvsym;

/* Set with real_dlsym. False: libc comes before us, so calls do not reach our hooks. */
extern bool is_preloaded;

/* Sets both unless they are set. */
void dlsym_find_real(void);

#endif
