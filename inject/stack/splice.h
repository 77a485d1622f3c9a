/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts Python frames into a native stack: the interpreter's loop is one native frame, which
 * contains the state of its entry from C. All Python frames since that entry take its place. */
#ifndef GPUPROF_INJECT_SPLICE_H
#define GPUPROF_INJECT_SPLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python.h"
#include "stack/walk.h"

/* State while it works. */
struct splice {
    struct python_frame frames[PYTHON_FRAMES_MAX];
    unsigned count;
    unsigned next; /* next Python frame without a place */
    bool is_short; /* a place had no space */
    uint64_t out[WALK_FRAMES_MAX + PYTHON_FRAMES_MAX];
    unsigned out_count;
    python_keep_fn keep;       /* in a signal handler; otherwise NULL */
    struct python_place *text; /* with `keep`: buffer for names */
};

/*
 * Inserts the calling thread's Python frames, or borrowed ones, into `w`, and cuts it to `max`
 * frames. Writes PYTHON records; not async-signal-safe. Frames whose places had no space are left
 * out, which is counted.
 */
void splice_python(struct thread *t, struct splice *s, struct walk *w, unsigned max);

/*
 * The same for the `count` frames that the caller has put into `s`, with w->is_cut if there were
 * more: for results of python_frames_interrupted, in the signal handler, with s->keep set. `w` is
 * then the walk from the interrupted registers.
 */
void splice_frames(struct thread *t, struct splice *s, struct walk *w, unsigned max);

#endif
