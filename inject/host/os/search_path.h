/* SPDX-License-Identifier: Apache-2.0 */
/* Where dlopen looks for a file depends on the calling object: on its RUNPATH and RPATH, and those
 * of the objects that loaded it. A wrapper around dlopen would be taken for the caller. */
#ifndef GPUPROF_INJECT_SEARCH_PATH_H
#define GPUPROF_INJECT_SEARCH_PATH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Does dlopen(name) find the same files, including those that the library needs, if it is called
 * from a library of the global namespace without search paths of its own? Returns false if that is
 * not known.
 */
bool search_path_is_anybodys(const char *name, uintptr_t caller);

#endif
