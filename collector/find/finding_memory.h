/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is worth fixing about memory: owners that grow from step to step; owners of what is there
 * for a moment only, which make the peak; and what PyTorch's allocator has reserved, and cannot
 * use. The last two matter where the device is nearly full. The thresholds are those of
 * memory_signs.h. GUIDE.md, "Findings", says it to people.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_MEMORY_H
#define GPUPROF_COLLECTOR_FINDING_MEMORY_H

#include "find/findings.h"
#include "memory/memory_look.h"

/* 0 or GPUPROF_NO_MEMORY. */
int findings_add_memory(struct findings *f, const struct memory_look *look);

#endif
