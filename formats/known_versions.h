/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supported versions of software whose internals the library reads: CPython 3.FIRST to 3.LAST
 * (inject/python/python_layout.c) and PyTorch 2.FIRST to 2.LAST (inject/torch/op_layout.c). Change
 * the number here when you add a row there; `gpuprof doctor` uses it.
 */
#ifndef GPUPROF_FORMATS_KNOWN_VERSIONS_H
#define GPUPROF_FORMATS_KNOWN_VERSIONS_H

#define KNOWN_PYTHON_FIRST 8
#define KNOWN_PYTHON_LAST  15
#define KNOWN_TORCH_FIRST  1
#define KNOWN_TORCH_LAST   15

#define KNOWN_DIGITS(number)         #number
#define KNOWN_TEXT(number)           KNOWN_DIGITS(number)
#define KNOWN_RANGE(major, from, to) major "." KNOWN_TEXT(from) " to " major "." KNOWN_TEXT(to)
#define KNOWN_PYTHON_TEXT            KNOWN_RANGE("3", KNOWN_PYTHON_FIRST, KNOWN_PYTHON_LAST)
#define KNOWN_TORCH_TEXT             KNOWN_RANGE("2", KNOWN_TORCH_FIRST, KNOWN_TORCH_LAST)

#endif
