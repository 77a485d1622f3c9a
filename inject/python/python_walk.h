/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of one of the interpreter's threads, from its state on. */
#ifndef GPUPROF_INJECT_PYTHON_WALK_H
#define GPUPROF_INJECT_PYTHON_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_code.h"
#include "python/python_frame.h"

/*
 * Innermost first, at most `max`. Returns their number, *is_cut if there were more; -1 if anything
 * is not as the layout says, and then none of what is in `frames` is to be believed. Without
 * `is_cut` it goes no further than `max`. errno is not kept.
 */
int python_walk(const struct python_view *v, uint64_t thread, struct python_frame *frames,
                unsigned max, bool *is_cut);

#endif
