/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes for the compiler and the linker. */
#ifndef GPUPROF_INJECT_COMPILER_H
#define GPUPROF_INJECT_COMPILER_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))
/* For variables of ours that hooks read. Without it the compiler looks up their address through the
 * GOT. */
#define HIDDEN __attribute__((visibility("hidden")))

#endif
