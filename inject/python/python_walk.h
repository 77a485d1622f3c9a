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

/*
 * Returns whether all frames of a walk still have the same code and, but for the innermost, the
 * same instruction. Reads the outermost first, all with as few system calls as possible: a walk
 * reads the innermost first, so what both found was there at one moment in between. Two walks alone
 * can be misled in the same way twice if the thread repeats a short loop.
 */
bool python_walk_confirm(const struct python_view *v, const struct python_frame *frames,
                         unsigned count);

#endif
