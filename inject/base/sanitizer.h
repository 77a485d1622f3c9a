/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program built with a sanitizer (-fsanitize=address, thread ...) has functions of the C library
 * replaced by the sanitizer's, for us, too. Of what our own code does with memory they see only
 * what goes through memcpy and the like: for ThreadSanitizer that is one half of an exchange
 * between threads whose other half, our atomic operations, it knows nothing of, and it reports
 * races that are none. So our own calls of these go to the C library.
 */
#ifndef GPUPROF_INJECT_SANITIZER_H
#define GPUPROF_INJECT_SANITIZER_H

#include <stdbool.h>

/* Once, before our threads share anything. No effect where nobody has replaced memcpy. */
void sanitizer_bypass(void);

/* Has somebody? */
bool sanitizer_is_here(void);

#endif
