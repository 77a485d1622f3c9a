/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as people see them, each distinct one once for all processes: a function with file and
 * line, or a substitute. Memory: 80 bytes and twice its label, at most 1.2 KB, up to
 * SHOWN_FRAMES_MAX.
 */
#ifndef GPUPROF_COLLECTOR_SHOWN_FRAME_H
#define GPUPROF_COLLECTOR_SHOWN_FRAME_H

#include <stdbool.h>

#include "base/key_map.h"
#include "symbol/kernel_names.h"

#define SHOWN_FRAMES_MAX  (1u << 19)
#define SHOWN_LABEL_BYTES 512 /* longest label; longer ones are cut and end in "..." */

enum shown_kind {
    SHOWN_NATIVE,    /* a function in a module; without name and file, `line` is its offset */
    SHOWN_INLINED,   /* the same, inlined into its caller */
    SHOWN_PYTHON,    /* a place in Python code */
    SHOWN_ADDRESS,   /* outside of known modules */
    SHOWN_BORROWED,  /* outer frames are those of the thread that waits for this one */
    SHOWN_CUT,       /* outer frames are missing */
    SHOWN_STACKLESS, /* an event without a stack */
    SHOWN_RANGE,     /* no Python frames, but this open range */
    SHOWN_CALL,      /* a CUDA call */
    SHOWN_WORK,      /* what the device did for the call */
    SHOWN_PROCESS,
    SHOWN_THREAD,
};

struct shown_frame {
    const struct kernel_name *name;
    const struct kernel_name *file; /* source file; NULL: unknown */
    const struct kernel_name *module;
    uint64_t line; /* 0: unknown; without name and file an offset or address */
    uint8_t kind;
    bool is_stub; /* a CUDA stub in the user's program (shown_frame.h); up to here the key */
    char *label;  /* owned: valid UTF-8 without control characters; the text above */
    char *json;   /* owned: the same as a JSON string, with quotes and room for json_copy */
    uint32_t json_bytes;
};

struct shown_frames {
    struct shown_frame *list; /* owned; frame number n is list[n - 1] */
    uint32_t count;
    struct number_set numbers;
    uint64_t left_out;
};

void shown_frames_release(struct shown_frames *s);

/* Returns the number of a frame, 0 beyond the maximum. */
uint32_t shown_frame_number(struct shown_frames *s, const struct shown_frame *frame);

static inline const struct shown_frame *shown_frame_of(const struct shown_frames *s,
                                                       uint32_t number)
{
    return &s->list[number - 1];
}

/* Returns the last component of a path. */
const char *path_base(const char *path);

/* Decides whether a line belongs to the user or to a library. Only paths count, since this machine
 * need not be the recorded one. */

/*
 * Returns true unless the file (Python's co_filename) belongs to a Python standard library
 * (lib/python3.N, frozen modules) or to an installed package (site-packages,
 * dist-packages, eggs), or a package generated it ("<eval_with_key>.3"). Typed code ("<stdin>",
 * "<string>", a notebook's cells) is the user's.
 */
bool own_python_file(const char *path);

/* Returns true for the program or a library not of the system, CUDA, Python or a package. */
bool own_module(const char *path);

/* Whether a module is Python's interpreter, or a system library that it may call itself. */
enum serves_python { SERVES_OTHERS, SERVES_ALL, SERVES_PYTHON };
enum serves_python serves_python(const char *path);

/* Returns true for the user's Python lines, and for C or C++ functions of the user's modules. Code
 * from system headers, launch stubs, and other frames (ranges, calls, marks) are not the user's. */
bool own_frame(const struct shown_frame *f);

/*
 * The stubs between a kernel launch and the program's line that makes it. They are in the program
 * itself and have lines of its files. For kernel<<<...>>>(values), nvcc makes, innermost last:
 *
 * - kernel(float*), the host's side of the kernel, with its line;
 * - for a template also __wrapper__device_stub_kernel<int>(...);
 * - __device_stub__Z6kernelPf(float*);
 * - from CUDA 13 on __cudaLaunchKernel_helper(...), from crt/device_functions.h;
 *
 * and clang makes __device_stub__kernel(float*), with the kernel's line.
 *
 * Calls by name go through templates of cuda_runtime.h, and in the static runtime, nvcc's default,
 * through its functions, which have no lines.
 */

/* Returns true if the function is one of these. `file` has its line, `called` is the function it
 * called; either may be NULL: unknown. */
bool cuda_stub(const struct kernel_name *function, const struct kernel_name *file,
               const struct kernel_name *called);

#endif
