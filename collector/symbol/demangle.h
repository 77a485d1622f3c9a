/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_COLLECTOR_DEMANGLE_H
#define GPUPROF_COLLECTOR_DEMANGLE_H

#include <stddef.h>

#define DEMANGLE_FAILURES_MAX 8

/*
 * Returns the demangled C++ or Rust name in new memory; NULL if it is not mangled, would exceed
 * `bytes_max`, or takes too long. *failures counts the last two cases for names that can grow
 * without bound; from DEMANGLE_FAILURES_MAX on such names stay mangled, since the input is
 * hostile.
 */
char *demangle(const char *mangled, size_t bytes_max, unsigned *failures);

#endif
