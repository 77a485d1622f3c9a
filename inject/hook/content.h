/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a large copy from the host to a device copies, as a number: the same bytes give the same
 * number in one process, and a reader can say that they were uploaded again. Looked at are
 * CONTENT_PIECES pieces of CONTENT_PIECE_BYTES, spread evenly over the copy, its first and last
 * bytes among them, as they are when the call begins; the kernel reads them for us (memory_read.h),
 * so that an address that is no good stays CUDA's to complain about. The number says nothing to who
 * does not know the process's key, which is in no file; it is no cryptographic hash all the same.
 */
#ifndef GPUPROF_INJECT_CONTENT_H
#define GPUPROF_INJECT_CONTENT_H

#include "hook/call_place.h"

#define CONTENT_BYTES_MIN   (256u << 10) /* of the copy: a smaller one takes no longer than this */
#define CONTENT_PIECES      64u
#define CONTENT_PIECE_BYTES 32u

/* The arguments of a copy of one piece: api_roles.def. */
enum { COPY_PIECE_SOURCE = 1, COPY_PIECE_BYTES, COPY_PIECE_KIND, COPY_PIECE_WORDS };

/* Is it one whose content is to be known? On the way of each such call; `site` is a constant. */
static inline __attribute__((always_inline)) bool content_is_due(const struct call_site *site,
                                                                 const uint64_t *words)
{
    return site->is_piece && words[COPY_PIECE_BYTES] >= CONTENT_BYTES_MIN &&
           words[COPY_PIECE_KIND] == 1; /* cudaMemcpyHostToDevice */
}

/* The number, which is never 0; 0: it cannot be read, or it is not wanted. Keeps errno. */
uint64_t content_of(const uint64_t *words);

/* Another key for the recording that is about to begin. */
void content_start(void);

#endif
