/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the host's memory the process has, now and then. */
#ifndef GPUPROF_INJECT_RESIDENT_H
#define GPUPROF_INJECT_RESIDENT_H

struct thread;

/* By the writer thread, once a second and whenever all is stored: appends what the kernel says, at
 * the price of reading a file of /proc. Where that cannot be read, nothing. */
void resident_tick(struct thread *writer);

#endif
