/* SPDX-License-Identifier: Apache-2.0 */
/* Records how much host memory the process uses, at intervals. */
#ifndef GPUPROF_INJECT_RESIDENT_H
#define GPUPROF_INJECT_RESIDENT_H

struct thread;

/* Called by the writer thread once a second, and whenever everything is stored: appends the
 * kernel's value, at the cost of reading a file of /proc. Does nothing if that cannot be read. */
void resident_tick(struct thread *writer);

#endif
