/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where functions of a source file begin and end, from its text alone: by indentation in
 * Python, by braces in C-like languages. It is used to group lines, and guesses in other files or
 * after errors.
 */
#ifndef GPUPROF_COLLECTOR_SOURCE_FUNCTIONS_H
#define GPUPROF_COLLECTOR_SOURCE_FUNCTIONS_H

#include "source/source_tree.h"

struct source_span {
    uint32_t first; /* line; includes decorators */
    uint32_t last;
};

struct source_functions {
    struct source_span *spans; /* owned */
    uint32_t count;
    uint32_t *of_line; /* owned: index + 1 of line n's innermost function; 0: none */
};

/* Returns 0 or GPUPROF_NO_MEMORY; call source_functions_release in both cases. */
int source_functions_find(struct source_functions *f, const struct source_text *text,
                          bool is_python);
void source_functions_release(struct source_functions *f);

#endif
