/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind finds out whether memory can be read by writing it into a pipe of its own. That takes
 * the two lowest descriptors that are free, which the program would have had; and a program that
 * closes whatever it does not know gives the numbers to files of its own, from which libunwind then
 * reads, into which it writes, and which it closes (all seen). So what our copy of it calls for
 * that is led here: there is no pipe, and the kernel is asked in another way.
 */
#ifndef GPUPROF_INJECT_UNWINDER_PROBE_H
#define GPUPROF_INJECT_UNWINDER_PROBE_H

#include <stdbool.h>

struct object;

/* Before its first use. False: it looks at memory in a way that is not known here. */
bool unwinder_probe_divert(const struct object *unwinder);

#endif
