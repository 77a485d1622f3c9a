/* SPDX-License-Identifier: Apache-2.0 */
/* A Python frame, and how many of them are read. */
#ifndef GPUPROF_INJECT_PYTHON_FRAME_H
#define GPUPROF_INJECT_PYTHON_FRAME_H

#include <stdint.h>

#define PYTHON_FRAMES_MAX 256

/* A frame before its names and lines are looked up. */
struct python_frame {
    uint64_t frame;       /* address of the frame */
    uint64_t code;        /* address of the code object */
    uint64_t instruction; /* address of the current instruction */
    uint64_t check;       /* distinguishes the code object from a later one at its address */
    uint64_t entry; /* not 0: C code entered the interpreter for this frame, and this address is in
                       the native frame of its loop, to which the frames up to here belong */
};

#endif
