/* SPDX-License-Identifier: Apache-2.0 */
/* Names with wildcards, as a shell has them. */
#ifndef GPUPROF_FORMATS_GLOB_H
#define GPUPROF_FORMATS_GLOB_H

#include <stdbool.h>

/*
 * Is `text` the pattern itself, or what it stands for: `*` any text, also none, `?` one byte?
 * Unlike fnmatch it takes brackets, of which names are full, for themselves, and no more time than
 * the product of both lengths, however many stars there are.
 */
bool glob_matches(const char *pattern, const char *text);

#endif
