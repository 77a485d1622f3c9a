/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program built with a sanitizer (-fsanitize=address, thread ...) uses the sanitizer's versions
 * of C library functions, and so would we. The sanitizer sees only what our code does to memory
 * through memcpy and similar functions. ThreadSanitizer sees one half of an exchange between
 * threads but not our atomic operations, and reports races that do not exist. So our code calls the
 * C library's functions directly.
 */
#ifndef GPUPROF_INJECT_SANITIZER_H
#define GPUPROF_INJECT_SANITIZER_H

#include <stdbool.h>

/*
 * Call it once, before our threads share data. Does nothing unless a sanitizer has replaced memcpy.
 */
void sanitizer_bypass(void);

/* Is a sanitizer in the program? */
bool sanitizer_is_here(void);

#endif
