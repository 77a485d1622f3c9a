/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/run_summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "error.h"

const struct run_metric_info run_metric_infos[RUN_METRICS] = {
#define RUN_METRIC(id, key, text, unit, of, scale, gates)                                          \
    {key, text, RUN_UNIT_##unit, RUN_OF_##of, RUN_SCALE_##scale, gates},
#include "diff/run_metrics.def"
};

const struct run_fact_info run_fact_infos[RUN_FACTS] = {
#define RUN_FACT(id, key, text, matters, meta) {key, text, FACT_##matters, meta},
#include "diff/run_facts.def"
};

/* ---- kernels --------------------------------------------------------------------------------- */

static void kernel_release(struct run_kernel *k)
{
    free(k->name);
    for (unsigned i = 0; i < RUN_PLACES; i++)
        free(k->place[i]);
}

int run_kernel_add(struct run_summary *r, const struct run_kernel *kernel)
{
    if (r->kernel_count == RUN_KERNELS_MAX)
        return 0;
    struct run_kernel copy = {memory_text(kernel->name), {NULL}, kernel->count, kernel->ns};
    for (unsigned i = 0; i < RUN_PLACES; i++)
        copy.place[i] = memory_text(kernel->place[i]);
    ARRAY_PUSH(r->kernels, r->kernel_count, &copy);
    return 0;
}

/* NULL comes first. */
static int compare_or_none(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_kernels(const void *left, const void *right)
{
    const struct run_kernel *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    for (unsigned i = 0; order == 0 && i < RUN_PLACES; i++)
        order = compare_or_none(a->place[i], b->place[i]);
    return order;
}

void run_kernels_order(struct run_summary *r)
{
    uint32_t kept = 0;
    ARRAY_SORT(r->kernels, r->kernel_count, compare_kernels);
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        struct run_kernel *k = &r->kernels[i], *last = kept ? &r->kernels[kept - 1] : NULL;
        if (!last || compare_kernels(last, k) != 0) {
            r->kernels[kept++] = *k;
            continue;
        }
        last->count += k->count;
        last->ns += k->ns;
        kernel_release(k);
    }
    r->kernel_count = kept;
}

static void run_kernels_release(struct run_summary *r)
{
    for (uint32_t i = 0; i < r->kernel_count; i++)
        kernel_release(&r->kernels[i]);
    free(r->kernels);
    r->kernels = NULL;
    r->kernel_count = 0;
}

void run_summary_release(struct run_summary *r)
{
    for (unsigned i = 0; i < RUN_FACTS; i++)
        free(r->facts[i]);
    run_kernels_release(r);
}

int run_fact_set(struct run_summary *r, enum run_fact fact, const char *text)
{
    if (text && *text && !r->facts[fact])
        r->facts[fact] = json_line(text);
    return 0;
}

/* ---- runs ------------------------------------------------------------------------------------ */

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
    for (uint32_t i = 0; i < run->kernel_count; i++)
        run_kernel_add(&s->together, &run->kernels[i]);
    run_kernels_order(&s->together);
    if (run->kernel_count)
        s->together.steps += run->steps ? run->steps : 1; /* a run without steps counts as one */
    run_kernels_release(run);
    s->names[s->count] = json_line(name); /* a path, which may contain anything */
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
