/* SPDX-License-Identifier: Apache-2.0 */
/* The places in Python code that the recording knows: each has a number, which stacks use, and a
 * PYTHON record that describes it. Any thread. */
#ifndef GPUPROF_INJECT_PYTHON_PLACES_H
#define GPUPROF_INJECT_PYTHON_PLACES_H

#include <stdint.h>

#include "python/python_code.h"
#include "python/python_frame.h"

struct record;
struct thread;

/*
 * Returns the number of the frame's place; looks up the names and writes the record on first use.
 * 0: the code object is gone, there is no space, or no time: a hurried thread (thread_hurry) has
 * none. `is_held` is called after the names were read: does the frame still hold its code? NULL: it
 * does, while the caller is here. Needs 7 KiB of stack.
 */
uint32_t python_place_number(struct thread *t, const struct python_layout *l,
                             const struct python_frame *frame, bool (*is_held)(const void *),
                             const void *context);

/*
 * The same in a signal handler, which waits for nobody and has little stack: names are read into
 * `text`, and the record goes to `keep`. A kill before it is in the stream may leave a stack of
 * another thread's with a place that is not known.
 */
uint32_t python_place_now(const struct python_layout *l, const struct python_frame *frame,
                          struct python_place *text, bool (*keep)(const struct record *r));

/* Reads ahead what both look at first, of `count` frames that are to come. */
void python_places_ahead(const struct python_frame *frames, unsigned count);

/* No place is known any more: in the child of a fork. */
void python_places_reset(void);

#endif
