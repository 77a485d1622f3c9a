/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind tests whether memory is readable by writing it into a pipe. That takes the two lowest
 * free descriptors, which the program would have used. A program that closes unknown descriptors
 * may reuse the numbers for its files, which libunwind then reads, writes and closes (all
 * observed). So our copy's calls for this are redirected here: there is no pipe, and the kernel is
 * asked in another way.
 */
#ifndef GPUPROF_INJECT_UNWINDER_PROBE_H
#define GPUPROF_INJECT_UNWINDER_PROBE_H

#include <stdbool.h>

struct object;

/* Call it before the first use. Returns false if this version tests memory in an unknown way. */
bool unwinder_probe_divert(const struct object *unwinder);

#endif
