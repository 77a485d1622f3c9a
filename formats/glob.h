/* SPDX-License-Identifier: Apache-2.0 */
/* Names with wildcards, as a shell has them. */
#ifndef GPUPROF_FORMATS_GLOB_H
#define GPUPROF_FORMATS_GLOB_H

#include <stdbool.h>

/*
 * Does `text` equal the pattern, or match it: `*` any text, even empty, `?` one byte? Unlike in
 * fnmatch, brackets, which are frequent in names, stand for themselves. The time is at most the
 * product of both lengths, however many stars there are.
 */
bool glob_matches(const char *pattern, const char *text);

#endif
