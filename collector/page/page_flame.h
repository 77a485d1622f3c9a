/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph of a page: the call tree of all processes together, with all of its weights. */
#ifndef GPUPROF_COLLECTOR_PAGE_FLAME_H
#define GPUPROF_COLLECTOR_PAGE_FLAME_H

#include "model/stack_costs.h"
#include "page/page_data.h"

#define PAGE_NODES_MAX 20000 /* the widest; what is narrower counts for who called it */
#define PAGE_WEIGHTS   4     /* times on the host and on the GPU, calls, bytes */

struct page_flame {
    struct stack_costs costs;
    bool is_there; /* some call may have a stack */
};

/* Its data. 0 or GPUPROF_NO_MEMORY. */
int page_flame_put(const struct page_flame *f, const struct recording *rec, struct page_data *d);

#endif
