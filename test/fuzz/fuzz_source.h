/* SPDX-License-Identifier: Apache-2.0 */
/* Source files and recorded paths of them, for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_SOURCE_H
#define GPUPROF_TEST_FUZZ_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/*
 * `data` is a recorded path up to a NUL, then a file's text. Looks for the path among files that it
 * makes in `folder`, which is empty, and for functions in the text; aborts if what is found is not
 * what a simple search finds, or not in the text.
 */
void fuzz_source(const char *folder, const uint8_t *data, size_t size);

#endif
