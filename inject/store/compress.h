/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, linked in from its static library with all its symbols hidden: a shared one, however it is
 * loaded, would also serve whatever of the program NEEDs the same soname (seen). It works in a
 * mapping of its own and never calls malloc. From the writer thread only.
 *
 * compress_stored.c stands in for it in a build for a machine whose libzstd.a is not there.
 */
#ifndef GPUPROF_INJECT_COMPRESS_H
#define GPUPROF_INJECT_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* Makes ready; without memory for it frames are stored uncompressed (said once). */
void compress_start(void);

/* In the child of a fork: lets go of the parent's, which may have been in use. */
void compress_stop(void);

size_t compress_bytes_max(size_t length);

/* One zstd frame of data[0..length) at `out`; its size. `capacity` is compress_bytes_max(length).
 */
size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity);

#endif
