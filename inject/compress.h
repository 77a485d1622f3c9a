/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, loaded at run time with RTLD_LOCAL: from beside libgpuprof.so first, from the system
 * second. A preload that NEEDs libzstd puts its copy before the program's own. Even so, the loader
 * takes ours for any object loaded later that NEEDs the same soname (seen). From the writer thread
 * only.
 */
#ifndef GPUPROF_INJECT_COMPRESS_H
#define GPUPROF_INJECT_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* Loads zstd; without it frames are stored uncompressed (said once). */
void compress_load(void);

/* In the child of a fork: its context may have been in use. */
void compress_forget(void);

size_t compress_bytes_max(size_t length);

/* One zstd frame of data[0..length) at `out`; its size. `capacity` is compress_bytes_max(length).
 */
size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity);

#endif
