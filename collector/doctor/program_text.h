/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's file, and the files around it, say of what it will load; nothing of it is run.
 */
#ifndef GPUPROF_COLLECTOR_PROGRAM_TEXT_H
#define GPUPROF_COLLECTOR_PROGRAM_TEXT_H

#include <limits.h>
#include <stdbool.h>

#include "cupti_places.h"

/*
 * Sets both if `name`, a file's last part, is that of a CPython 3 or its library: "python3.12",
 * "libpython3.13t.so.1.0".
 */
void program_python_version(const char *name, unsigned *minor, bool *is_free_threaded);

/* Is it a Python, or does its file name libcuda or libcudart? */
bool program_uses_cuda(const char *path);

/* Has it a CUDA runtime linked in, which looks up the driver's functions itself? */
bool program_has_runtime(const char *path);

#define TORCH_VERSION_BYTES 64

/* A Python's packages, as far as they matter here. */
struct python_packages {
    char torch[TORCH_VERSION_BYTES]; /* PyTorch's version, as its version.py has it; "": none */
    char folder[PATH_MAX];           /* where that was found */
};

/*
 * Looks through the folders in which the Python `path` (as it was called: not resolved, or a
 * virtual environment is not seen) of version 3.`minor` has packages. The libcudart among them are
 * added.
 */
void python_packages_find(struct python_packages *packages, struct cupti_places *places,
                          const char *path, unsigned minor);

/* The Python that a script names in its first line, as a path; false: it names none. */
bool script_python(const char *script, char path[static PATH_MAX]);

#endif
