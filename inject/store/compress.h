/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, linked in from its static library with hidden symbols. A shared zstd, however it is loaded,
 * would also serve libraries of the program that need the same soname (observed). It works in its
 * own mapping and never calls malloc. Only on the writer thread.
 *
 * compress_stored.c replaces it in builds for a machine without libzstd.a.
 */
#ifndef GPUPROF_INJECT_COMPRESS_H
#define GPUPROF_INJECT_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

/* Allocates the workspace; without memory frames are stored uncompressed (reported once). */
void compress_start(void);

/* Call it in the child of a fork: drops the parent's workspace, which may have been in use. */
void compress_stop(void);

size_t compress_bytes_max(size_t length);

/* Writes data[0..length) as one zstd frame to `out`; returns its size. `capacity` is
 * compress_bytes_max(length). */
size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity);

#endif
