/* SPDX-License-Identifier: Apache-2.0 */
/* Why there was not enough memory, and what to do: the first of these that fits. */
#ifndef GPUPROF_COLLECTOR_MEMORY_ADVICE_H
#define GPUPROF_COLLECTOR_MEMORY_ADVICE_H

#include "memory/memory_rows.h"

/*
 *   larger-than-device  more was wanted than the device has
 *   fragmented          PyTorch's allocator had enough, in pieces that were too small
 *   kept-apart          it had a piece that was large enough, for another stream, pool or size
 *   leak                an owner that grows from step to step had a tenth of what was held, or as
 *                       much as was wanted
 *   preallocation       one block of half the device or more, which a framework keeps books of
 *   hidden              the process would have had room: others, or libraries, had the rest
 *   limited             there was room, which a limit of PyTorch's allocator kept it from
 *   one-owner           half of what was held had one owner
 *   full                nothing of that
 */
struct memory_advice {
    const char *id; /* stable */
    char *text;     /* owned; names as they were recorded. NULL: no memory */
};

/* Of an allocation that failed. */
struct memory_advice memory_advise(const struct memory_rows *r, const struct memory_oom *oom);

/* Which framework the process runs that gets most of a device at once ("JAX"), and what stops it
 * from that; NULL: none is known. */
const char *memory_preallocator(const struct memory_report *m, const struct process *p,
                                const char **remedy);

#endif
