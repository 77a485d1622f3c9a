/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_COLLECTOR_DEMANGLE_H
#define GPUPROF_COLLECTOR_DEMANGLE_H

#include <stddef.h>

#define DEMANGLE_FAILURES_MAX 8

/*
 * The C++ or Rust name that `mangled` stands for, in new memory; NULL if it is none, if the name
 * would be longer than `bytes_max` or took too long to make. *failures counts the last two of names
 * that can grow without bound; from DEMANGLE_FAILURES_MAX on such names stay mangled, for the input
 * is not an honest one.
 */
char *demangle(const char *mangled, size_t bytes_max, unsigned *failures);

#endif
