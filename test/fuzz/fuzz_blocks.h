/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutator for stream files: whole blocks are dropped, repeated, moved, given to another thread or
 * taken from another file. Checksums stay right, so that what the readers make of records whose
 * call, name, thread or device is missing is reached, which changed bytes seldom do.
 */
#ifndef GPUPROF_TEST_FUZZ_BLOCKS_H
#define GPUPROF_TEST_FUZZ_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Changes the stream file in place, which may grow to `bytes_max`; `other` is a second one, or
 * NULL. What is done follows from `seed`. Returns the new size; 0: it has no blocks.
 */
size_t fuzz_blocks(uint8_t *data, size_t bytes, size_t bytes_max, const uint8_t *other,
                   size_t other_bytes, unsigned seed);

#endif
