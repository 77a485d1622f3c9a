/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include <stdlib.h>

#include "analyse/range_rows.h"
#include "analyse/report_make.h"
#include "base/array.h"
#include "error.h"
#include "resolve/nccl_call.h"

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

struct gpu_report {
    struct walk *walk;
    struct sums *sums; /* a view: all tables */
    bool has_work;
    struct range_rows ranges, projections;
    struct memory_peaks *memory; /* a view */
    unsigned leaves;             /* enum report_part */
};

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
    key_map_release(&g->ranges.counts);
    key_map_release(&g->projections.counts);
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

/* Sets *use to the rows of a device, from GPU_USE_SPAN on; NULL: there are too many. Until the end,
 * GPU_USE_OF is the end of the last slice, and GPU_USE_NS of the span its begin. Returns 0 or
 * GPUPROF_NO_MEMORY. */
static int find_use(struct sums *s, uint64_t process, uint64_t device, struct sums_row **use)
{
    const struct key span = {process, device, GPU_USE_SPAN};
    bool is_new = !sums_find(s, span);
    for (unsigned what = 0; is_new && what < GPU_USES; what++)
        if (!sums_row(s, process, device, what))
            return GPUPROF_NO_MEMORY;
    *use = sums_find(s, span);
    return 0;
}

/* Adds the time that no slice covers so far: they come in the order of their begins. */
static void cover(struct sums_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    begin_ns = max_of(begin_ns, row->values[GPU_USE_OF]);
    if (end_ns > begin_ns) {
        row->values[GPU_USE_NS] += end_ns - begin_ns;
        row->values[GPU_USE_OF] = end_ns;
    }
}

static int take_uses(void *context, const struct rows *rows)
{
    struct gpu_report *g = context;
    struct sums *s = &g->sums[ANALYSIS_gpu_use_sums];
    const uint64_t *processes = rows->columns[ROW_PROCESS], *devices = rows->columns[ROW_DEVICE];
    struct sums_row *use = NULL;
    if (g->leaves & REPORT_UNSEEN && s->count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t begin_ns = rows->columns[ROW_BEGIN][i];
        uint64_t end_ns = begin_ns + rows->columns[ROW_NS][i];
        bool is_copy = rows->columns[ROW_TYPE][i] == ROW_COPY;
        bool is_same = i && processes[i] == processes[i - 1] && devices[i] == devices[i - 1];
        if (!is_same && find_use(s, processes[i], devices[i], &use) < 0)
            return GPUPROF_NO_MEMORY;
        if (!use)
            continue;
        uint64_t *span = use[GPU_USE_SPAN].values;
        span[GPU_USE_NS] = span[GPU_USE_ROWS]++ ? min_of(span[GPU_USE_NS], begin_ns) : begin_ns;
        span[GPU_USE_OF] = max_of(span[GPU_USE_OF], end_ns);
        cover(&use[GPU_USE_BUSY], begin_ns, end_ns);
        cover(&use[is_copy ? GPU_USE_COPIES : GPU_USE_KERNELS], begin_ns, end_ns);
    }
    return 0;
}

static int end_uses(void *context)
{
    struct sums *s = &((struct gpu_report *)context)->sums[ANALYSIS_gpu_use_sums];
    for (uint32_t i = 0; i + GPU_USES <= s->count; i += GPU_USES) {
        struct sums_row *use = &s->rows[i];
        uint64_t ns[GPU_USES];
        for (unsigned what = 0; what < GPU_USES; what++)
            ns[what] = use[what].values[GPU_USE_NS];
        ns[GPU_USE_SPAN] = use[GPU_USE_SPAN].values[GPU_USE_OF] - ns[GPU_USE_SPAN];
        ns[GPU_USE_IDLE] = ns[GPU_USE_SPAN] - ns[GPU_USE_BUSY];
        ns[GPU_USE_BOTH] = ns[GPU_USE_KERNELS] + ns[GPU_USE_COPIES] - ns[GPU_USE_BUSY];
        for (unsigned what = 0; what < GPU_USES; what++) {
            use[what].values[GPU_USE_ROWS] = 1;
            use[what].values[GPU_USE_NS] = ns[what];
            use[what].values[GPU_USE_OF] = what == GPU_USE_SPAN ? 0 : ns[GPU_USE_SPAN];
        }
    }
    return sums_finish(s);
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
        const struct span_node *node = spool_at(&g->walk->survey.nodes, i, false);
        if (node->type == SPAN_RANGE && node->work_begin_ns <= node->work_end_ns)
            error = sums_count(s, range_rows_get(&g->projections, node->text, node->domain_text),
                               node->work_end_ns - node->work_begin_ns, 0, 1);
    }
    return error;
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
