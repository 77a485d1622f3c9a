/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of Python's, and how many of them are looked at. */
#ifndef GPUPROF_INJECT_PYTHON_FRAME_H
#define GPUPROF_INJECT_PYTHON_FRAME_H

#include <stdint.h>

#define PYTHON_FRAMES_MAX 256

/* One frame, as it is before names and lines are looked up. */
struct python_frame {
    uint64_t frame;       /* its own address */
    uint64_t code;        /* of the code object */
    uint64_t instruction; /* address of the instruction it is at */
    uint64_t check;       /* tells the code object from a later one at its address */
    uint64_t entry;       /* not 0: the interpreter was entered from C for it, and this address is
                             in that native frame of its loop; the frames up to here are its */
};

#endif
