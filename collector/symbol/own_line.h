/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a line is: the user's own, or a library's. Paths alone decide, since the machine that is
 * asked need not be the one that was recorded.
 */
#ifndef GPUPROF_COLLECTOR_OWN_LINE_H
#define GPUPROF_COLLECTOR_OWN_LINE_H

#include <stdbool.h>

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

/*
 * Is it a line of Python of the user's own, or a function in C or C++ of such a module, but for
 * what headers of the system and launches bring in? What is no such place (a range, a call, a mark)
 * is not.
 */
bool own_frame(const struct shown_frame *f);

#endif
