/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number for the contents of a large copy from the host to a device. Equal bytes have equal
 * numbers in one process, so that a reader can report repeated uploads. It is a hash of
 * CONTENT_PIECES pieces of CONTENT_PIECE_BYTES, evenly spread over the copy from its first bytes to
 * its last, as they are when the call begins. The kernel reads them for us (memory_read.h), so that
 * CUDA reports an invalid address. Without the process's key, which no file has, the number reveals
 * nothing; but it is not a cryptographic hash.
 */
#ifndef GPUPROF_INJECT_CONTENT_H
#define GPUPROF_INJECT_CONTENT_H

#include "hook/call_place.h"

#define CONTENT_BYTES_MIN   (256u << 10) /* smaller copies take less time than computing this */
#define CONTENT_PIECES      64u
#define CONTENT_PIECE_BYTES 32u

/* The arguments of a copy of one contiguous block: api_roles.def. */
enum { COPY_PIECE_SOURCE = 1, COPY_PIECE_BYTES, COPY_PIECE_KIND, COPY_PIECE_WORDS };

/* Returns whether this copy must be hashed. Runs in each such call; `site` is a constant. */
static inline __attribute__((always_inline)) bool content_is_due(const struct call_site *site,
                                                                 const uint64_t *words)
{
    return site->is_piece && words[COPY_PIECE_BYTES] >= CONTENT_BYTES_MIN &&
           words[COPY_PIECE_KIND] == 1; /* cudaMemcpyHostToDevice */
}

/* Returns the number; 0: the bytes cannot be read, or the hash is off. Preserves errno. */
uint64_t content_of(const uint64_t *words);

/* Makes a new key for the recording that is about to begin. */
void content_start(void);

#endif
