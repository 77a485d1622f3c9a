/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a line is: the user's own, or a library's. Paths alone decide, since the machine that is
 * asked need not be the one that was recorded.
 */
#ifndef GPUPROF_COLLECTOR_OWN_LINE_H
#define GPUPROF_COLLECTOR_OWN_LINE_H

#include <stdbool.h>

#include "symbol/kernel_names.h"
#include "symbol/shown_frame.h"

/*
 * Is the code of this file (as Python has it in co_filename) neither of the standard library of
 * some Python (lib/python3.N, its zip, frozen modules) nor installed as a package (site-packages,
 * dist-packages, eggs) nor made by one ("<eval_with_key>.3")? What was typed or passed on the
 * command line ("<stdin>", "<string>", a notebook's cells) is the user's own.
 */
bool own_python_file(const char *path);

/* Is it the program, or a shared library that is not the system's, nor CUDA's, nor Python's, nor a
 * package's, nor ours? */
bool own_module(const char *path);

/* Is it Python's interpreter, or a library of the system that it may call for itself? */
enum serves_python { SERVES_OTHERS, SERVES_ALL, SERVES_PYTHON };
enum serves_python serves_python(const char *path);

/*
 * Is it a line of Python of the user's own, or a function in C or C++ of such a module, but for
 * what headers of the system and launches bring in? What is no such place (a range, a call, a mark)
 * is not.
 */
bool own_frame(const struct shown_frame *f);

/*
 * What stands between a launch and the program's line that makes it, in the program itself and with
 * lines of its files. For kernel<<<...>>>(values) nvcc has, the innermost last:
 *
 * - kernel(float*), which is the kernel on the host, with its line;
 * - of a template also __wrapper__device_stub_kernel<int>(...);
 * - __device_stub__Z6kernelPf(float*);
 * - from CUDA 13 on __cudaLaunchKernel_helper(...), of crt/device_functions.h;
 *
 * and clang __device_stub__kernel(float*), with the kernel's line.
 *
 * For calls by name there are the templates of cuda_runtime.h, and within the static runtime, which
 * nvcc takes unless told otherwise, its functions, which have no lines.
 */

/* Is the function one of these? `file`: where its line is, `called`: the function that it called;
 * each may be NULL: not known. */
bool cuda_stub(const struct kernel_name *function, const struct kernel_name *file,
               const struct kernel_name *called);

#endif
