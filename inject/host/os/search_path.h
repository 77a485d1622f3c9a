/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where dlopen looks for a file depends on the object that calls it: its RUNPATH, its RPATH, and
 * those of the objects that loaded it. A function of ours around the call would be taken for the
 * caller.
 */
#ifndef GPUPROF_INJECT_SEARCH_PATH_H
#define GPUPROF_INJECT_SEARCH_PATH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Does dlopen(name) find the same files, those that the library needs too, if a library of the
 * global namespace calls it that has no paths of its own? False where that is not known.
 */
bool search_path_is_anybodys(const char *name, uintptr_t caller);

#endif
