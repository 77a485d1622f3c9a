/* SPDX-License-Identifier: Apache-2.0 */
/* What we tell the compiler and the linker of our code. */
#ifndef GPUPROF_INJECT_COMPILER_H
#define GPUPROF_INJECT_COMPILER_H

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))
/* Of a variable of ours that hooks read: else its address is looked up, to the compiler. */
#define HIDDEN __attribute__((visibility("hidden")))

#endif
