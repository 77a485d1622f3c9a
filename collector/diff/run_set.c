/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_set.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_text.h"
#include "error.h"

void run_set_release(struct run_set *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        run_summary_release(&s->runs[i]);
        free(s->names[i]);
    }
    run_summary_release(&s->together);
}

int run_set_add(struct run_set *s, struct run_summary *run, const char *name)
{
    if (s->count == RUNS_MAX)
        return GPUPROF_LIMIT;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < run->kernel_count; i++)
        error = run_kernel_add(&s->together, &run->kernels[i]);
    char *copy = json_line(name); /* a path, which may hold anything */
    if (error < 0 || !copy) {
        free(copy);
        return GPUPROF_NO_MEMORY;
    }
    run_kernels_order(&s->together);
    s->together.steps += run->kernel_count ? run_steps_of(run) : 0;
    run_kernels_release(run);
    s->names[s->count] = copy;
    s->runs[s->count++] = *run;
    *run = (struct run_summary){.steps = 0};
    return 0;
}

uint32_t run_set_gather(const struct run_set *s, enum run_metric m, double list[static RUNS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!isnan(s->runs[i].metrics[m]))
            list[count++] = s->runs[i].metrics[m];
    return count;
}
