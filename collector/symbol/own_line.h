/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a line belongs to the user or to a library. Only paths count, since this machine
 * need not be the recorded one. */
#ifndef GPUPROF_COLLECTOR_OWN_LINE_H
#define GPUPROF_COLLECTOR_OWN_LINE_H

#include <stdbool.h>

#include "symbol/kernel_names.h"
#include "symbol/shown_frame.h"

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
