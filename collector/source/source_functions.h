/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the functions of a source file begin and end, by its text alone: of Python by indentation,
 * of C and its kin by braces. It is for showing lines together, and guesses where a file is none of
 * these or has an error.
 */
#ifndef GPUPROF_COLLECTOR_SOURCE_FUNCTIONS_H
#define GPUPROF_COLLECTOR_SOURCE_FUNCTIONS_H

#include "source/source_tree.h"

struct source_span {
    uint32_t first; /* line; decorators included */
    uint32_t last;
};

struct source_functions {
    struct source_span *spans; /* owned */
    uint32_t count;
    uint32_t *of_line; /* owned: the innermost one's place + 1 of line n at [n]; 0: none */
};

/* 0 or GPUPROF_NO_MEMORY; source_functions_release in both cases. */
int source_functions_find(struct source_functions *f, const struct source_text *text,
                          bool is_python);
void source_functions_release(struct source_functions *f);

#endif
