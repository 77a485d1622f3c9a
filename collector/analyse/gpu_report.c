/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include <stdlib.h>

#include "analyse/range_rows.h"
#include "analyse/report_make.h"
#include "base/array.h"
#include "error.h"
#include "resolve/nccl_call.h"

#define DEVICES_MAX 4096

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

/* The time covered by slices, which come in the order of their begins. */
struct covered {
    uint64_t end_ns;
    uint64_t total_ns;
};

struct device_use {
    struct process *process;
    uint64_t device;
    uint64_t begin_ns;
    uint64_t end_ns;
    struct covered busy;
    struct covered kernels;
    struct covered copies;
};

struct gpu_report {
    struct walk *walk;
    struct sums *sums; /* a view: all tables */
    bool has_work;
    struct range_rows ranges, projections;
    struct key_map device_places; /* (process, device) -> place + 1 */
    struct device_use *devices;   /* owned */
    uint32_t device_count;
    struct memory_peaks *memory; /* a view */
    uint32_t last_use;           /* index of the device that was used last */
    unsigned leaves;             /* enum report_part */
};

static void cover(struct covered *c, uint64_t begin_ns, uint64_t end_ns)
{
    begin_ns = max_of(begin_ns, c->end_ns);
    if (end_ns > begin_ns) {
        c->total_ns += end_ns - begin_ns;
        c->end_ns = end_ns;
    }
}

static int gpu_report_analysis_begin(struct report *r)
{
    struct gpu_report *g = r->gpu;
    struct walk *walk = &r->walk;
    *g = (struct gpu_report){.walk = walk,
                             .sums = r->sums,
                             .memory = &r->peaks,
                             .leaves = r->request.leaves,
                             .has_work =
                                 r->request.use != USE_PARTS &&
                                 (r->stacks || recording_any(walk->rec, process_expects_gpu))};
    g->ranges = (struct range_rows){&r->sums[ANALYSIS_ranges_sums], .marks = RANGE_GROUPS};
    g->projections = g->ranges;
    g->projections.sums = &r->sums[ANALYSIS_projections_sums];
    r->sums[ANALYSIS_gpu_memory_sums].owner = g;
    g->ranges.sums->owner = &g->ranges;
    g->projections.sums->owner = &g->projections;
    return 0;
}

static void gpu_report_analysis_release(struct report *r)
{
    struct gpu_report *g = r->gpu;
    free(g->devices);
    key_map_release(&g->ranges.counts);
    key_map_release(&g->projections.counts);
    key_map_release(&g->device_places);
}

static __attribute__((noinline)) struct device_use *find_use(struct gpu_report *g,
                                                             struct process *p, uint64_t device)
{
    const struct device_use new = {.process = p, .device = device, .begin_ns = UINT64_MAX};
    uint32_t number;
    if (KEY_MAP_ITEM(&g->device_places, ((struct key){p->index, device, 0}), g->devices,
                     g->device_count, DEVICES_MAX, &new, &number) < 0)
        return NULL;
    g->last_use =
        number ? number - 1 : DEVICES_MAX - 1; /* devices beyond the limit share one row */
    return &g->devices[g->last_use];
}

static struct device_use *use_of(struct gpu_report *g, struct process *p, uint64_t device)
{
    struct device_use *last = g->device_count ? &g->devices[g->last_use] : NULL;
    return last && last->process == p && last->device == device ? last : find_use(g, p, device);
}

/* ---- resolved events ------------------------------------------------------------------------- */

/* From call to kernel: the time to the kernel's begin, and its wait after the call returned. */
static int gpu_report_take_launch(struct sums *launches, const struct rows *rows, uint32_t i)
{
    uint64_t begin_ns = rows->columns[ROW_BEGIN][i], call_ns = rows->columns[ROW_CALL_NS][i];
    uint64_t called_ns = rows->columns[ROW_CALL_BEGIN][i], end_ns = called_ns + call_ns;
    const uint64_t ns[LAUNCH_ROWS] = {[LAUNCH_LATENCY] =
                                          begin_ns > called_ns ? begin_ns - called_ns : 0,
                                      [LAUNCH_QUEUE] = begin_ns > end_ns ? begin_ns - end_ns : 0,
                                      [LAUNCH_CALL] = call_ns};
    /* A graph launch has many kernels but is one call. */
    unsigned count = rows->columns[ROW_FLAGS][i] & ROW_COUNTED ? LAUNCH_CALL : LAUNCH_ROWS;
    int error = 0;
    for (unsigned k = 0; error == 0 && k < count; k++)
        error = sums_count(launches, &launches->rows[k], ns[k], 0, 1);
    return error;
}

static int take_launches(void *context, const struct rows *rows)
{
    struct gpu_report *g = context;
    struct sums *launches = &g->sums[ANALYSIS_launches_sums];
    const unsigned is_one = ROW_IS_KERNEL | ROW_CALLED;
    int error = 0;
    if (g->leaves & REPORT_UNSEEN && launches->count)
        return 0;
    for (uint32_t i = 0; error == 0 && i < rows->count; i++) {
        if ((rows->columns[ROW_FLAGS][i] & is_one) != is_one)
            continue;
        while (launches->count < LAUNCH_ROWS) /* rows have fixed places; each kernel adds to all */
            if (!sums_row(launches, launches->count, 0, 0))
                return GPUPROF_NO_MEMORY;
        error = gpu_report_take_launch(launches, rows, i);
    }
    return error;
}

static int end_launches(void *context)
{
    return sums_finish(&((struct gpu_report *)context)->sums[ANALYSIS_launches_sums]);
}

static int take_uses(void *context, const struct rows *rows)
{
    struct gpu_report *g = context;
    if (g->leaves & REPORT_UNSEEN && g->device_count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t type = rows->columns[ROW_TYPE][i], begin_ns = rows->columns[ROW_BEGIN][i];
        uint64_t end_ns = begin_ns + rows->columns[ROW_NS][i];
        struct device_use *use = use_of(g, g->walk->rec->processes[rows->columns[ROW_PROCESS][i]],
                                        rows->columns[ROW_DEVICE][i]);
        if (!use)
            return GPUPROF_NO_MEMORY;
        use->begin_ns = min_of(use->begin_ns, begin_ns);
        use->end_ns = max_of(use->end_ns, end_ns);
        cover(&use->busy, begin_ns, end_ns);
        cover(type == ROW_COPY ? &use->copies : &use->kernels, begin_ns, end_ns);
    }
    return 0;
}

/* ---- ranges and their work ------------------------------------------------------------------- */

static int gpu_report_take_work(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    return s->is_called && s->call.span
               ? survey_project(&g->walk->survey, &s->call, s->event.begin_ns, s->event.end_ns)
               : 0;
}

static int gpu_report_take(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct host_span *range = s->span;
    enum span_change change = slice_change(s, SPAN_RANGE);
    if ((change != SPAN_CLOSED && change != SPAN_LEFT) || s->is_filtered || !g->ranges.sums->info)
        return 0;
    struct nccl_call call;
    uint64_t bytes = nccl_call_of(range, &call) ? call.bytes : 0;
    return sums_count(g->ranges.sums, range_rows_get(&g->ranges, range->text, range->domain_text),
                      range->end_ns - range->begin_ns, bytes, 1);
}

static int add_device(struct sums *s, const struct device_use *use)
{
    uint64_t span_ns = use->end_ns > use->begin_ns ? use->end_ns - use->begin_ns : 0;
    const uint64_t ns[GPU_USES] = {[GPU_USE_SPAN] = span_ns,
                                   [GPU_USE_BUSY] = use->busy.total_ns,
                                   [GPU_USE_IDLE] = span_ns - use->busy.total_ns,
                                   [GPU_USE_KERNELS] = use->kernels.total_ns,
                                   [GPU_USE_COPIES] = use->copies.total_ns,
                                   [GPU_USE_BOTH] = use->kernels.total_ns + use->copies.total_ns -
                                                    use->busy.total_ns};
    for (unsigned i = 0; i < GPU_USES && use->begin_ns != UINT64_MAX; i++) {
        struct sums_row *row = sums_row(s, use->process->index, use->device, i);
        if (!row)
            return GPUPROF_NO_MEMORY;
        row->values[GPU_USE_ROWS] = 1;
        row->values[GPU_USE_NS] = ns[i];
        row->values[GPU_USE_OF] = i == GPU_USE_SPAN ? 0 : span_ns;
    }
    return 0;
}

static int add_peaks(struct gpu_report *g)
{
    struct sums *s = &g->sums[ANALYSIS_gpu_memory_sums];
    memory_peaks_finish(g->memory);
    for (uint32_t i = 0; i < memory_peaks_count(g->memory); i++) {
        const struct place_totals *place = &g->memory->ledger.totals.list[i];
        const uint64_t bytes[] = {[PEAK_ALLOCATED] = g->memory->list[i].allocated,
                                  [PEAK_RESERVED] = g->memory->list[i].reserved};
        if (place->is_host || place->device == LEDGER_NO_DEVICE)
            continue;
        for (unsigned k = 0; k < sizeof bytes / sizeof bytes[0]; k++) {
            struct sums_row *row = sums_row(s, place->process->index, place->device, k);
            if (!row)
                return GPUPROF_NO_MEMORY;
            row->values[0] = bytes[k];
        }
    }
    return 0;
}

/* Counts each range once, from its first work to the end of its last, as nsys does. */
static int add_projected(struct gpu_report *g)
{
    struct sums *s = g->projections.sums;
    int error = 0;
    for (uint64_t i = 0; error == 0 && i < g->walk->survey.nodes.count; i++) {
        const struct span_node *node = spool_at(&g->walk->survey.nodes, i, false, &error);
        if (!node)
            return error;
        if (node->type == SPAN_RANGE && node->work_begin_ns <= node->work_end_ns)
            error = sums_count(s, range_rows_get(&g->projections, node->text, node->domain_text),
                               node->work_end_ns - node->work_begin_ns, 0, 1);
    }
    return error;
}

static int end_uses(void *context)
{
    struct gpu_report *g = context;
    struct sums *use = &g->sums[ANALYSIS_gpu_use_sums];
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < g->device_count; i++)
        error = add_device(use, &g->devices[i]);
    return error < 0 ? error : sums_finish(use);
}

static int gpu_report_end(void *context)
{
    struct gpu_report *g = context;
    struct sums *peaks = &g->sums[ANALYSIS_gpu_memory_sums];
    int error = g->projections.sums->info ? add_projected(g) : 0;
    if (error == 0 && peaks->info)
        error = add_peaks(g);
    struct sums *const fed[] = {g->ranges.sums, g->projections.sums, peaks};
    for (unsigned i = 0; i < sizeof fed / sizeof fed[0] && error == 0; i++)
        error = fed[i]->info ? sums_finish(fed[i]) : 0;
    return error;
}

static void add_readers(struct report *r)
{
    struct gpu_report *g = r->gpu;
    if (r->sums[ANALYSIS_launches_sums].info && g->has_work && !(g->leaves & REPORT_CORRELATED))
        resolver_add(&r->resolver, &(struct rows_reader){.context = g,
                                                         .tables = 1u << ROWS_WORK,
                                                         .ties = true,
                                                         .take = take_launches,
                                                         .end = end_launches});
    if (r->sums[ANALYSIS_gpu_use_sums].info && g->has_work)
        resolver_add(&r->resolver, &(struct rows_reader){.context = g,
                                                         .tables = 1u << ROWS_WORK,
                                                         .take = take_uses,
                                                         .end = end_uses});
}

static unsigned gpu_report_consumers(struct report *r, struct consumer *list)
{
    struct gpu_report *g = r->gpu;
    bool ties = g->has_work && !(g->leaves & REPORT_CORRELATED),
         has_idle = !(g->leaves & REPORT_IDLE);
    unsigned work = g->has_work ? WALK_LOSSES | (ties ? (unsigned)WALK_WORK : 0) : 0;
    unsigned count = 0;
    add_readers(r);
    if (r->request.only)
        return 0;
    list[count++] = (struct consumer){
        .context = g,
        /* Lost operators are reported here; lost stacks, too, unless idle time does. */
        .needs = WALK_SPANS | (has_idle ? 0 : (unsigned)WALK_STACKS) | work,
        .skips = WALK_SKIPS_CALLS | (ties ? 0 : (unsigned)WALK_SKIPS_WORK),
        .take = gpu_report_take,
        .take_work = gpu_report_take_work,
        .end = gpu_report_end};
    return count;
}

const struct analysis gpu_analysis = {ANALYSIS_STATE(gpu),
                                      .uses = USE_EXPORT | USE_PARTS,
                                      .begin = gpu_report_analysis_begin,
                                      .consumers = gpu_report_consumers,
                                      .has_readers = true,
                                      .release = gpu_report_analysis_release};
