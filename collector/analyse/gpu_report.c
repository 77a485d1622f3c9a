/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/library_report.h"
#include "analyse/memory_peaks.h"
#include "analyse/range_rows.h"
#include "analyse/report_make.h"
#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "model/nccl_call.h"
#include "record/gpu_record.h"

#define PENDING (1ull << 63) /* above any pointer: a kernel that nothing has named yet */

/* All that are between them are fed here. */
#define FIRST_TABLE ANALYSIS_kernels_sums
#define LAST_TABLE  ANALYSIS_host_copies_sums

#define DEVICES_MAX    4096
#define RECENT_KERNELS 256

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

/* The time covered by slices that come in the order of their begins. */
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

/* A kernel whose row was asked for. */
struct recent_kernel {
    uint32_t process;
    uint32_t place; /* of the row, + 1; 0: free */
    uint64_t number;
};

struct pending_kernel {
    const struct process *process;
    uint64_t number;
};

struct gpu_report {
    struct walk *walk;
    struct sums *sums; /* a view: all tables */
    enum report_by by;
    bool has_work;
    bool *is_host; /* owned, by process index: its devices have no rows */
    bool has_host; /* any of them */
    struct range_rows ranges, projections;
    struct key_map pending_places;  /* of kernels: (process, number) -> place + 1 */
    struct pending_kernel *pending; /* owned */
    uint32_t pending_count;
    struct key_map device_places; /* (process, device) -> place + 1 */
    struct device_use *devices;   /* owned */
    uint32_t device_count;
    struct memory_peaks memory;
    struct recent_kernel recent[RECENT_KERNELS];
    uint32_t last_use; /* place of the device that was asked for last */
    unsigned leaves;   /* enum report_part */
};

static void cover(struct covered *c, uint64_t begin_ns, uint64_t end_ns)
{
    if (begin_ns < c->end_ns)
        begin_ns = c->end_ns;
    if (end_ns > begin_ns) {
        c->total_ns += end_ns - begin_ns;
        c->end_ns = end_ns;
    }
}

/* One more in the row of these keys, of a table that somebody will look at. */
static int count(struct sums *s, uint64_t a, uint64_t b, uint64_t ns, uint64_t bytes)
{
    return s->info ? gpu_count(s, sums_row(s, a, b, 0), ns, bytes, 1) : 0;
}

static int analysis_begin(struct report *r)
{
    struct gpu_report *g = r->gpu;
    struct walk *walk = &r->walk;
    *g = (struct gpu_report){.walk = walk,
                             .sums = r->sums,
                             .by = r->wish.by,
                             .leaves = r->wish.leaves,
                             .has_work = r->wish.use != USE_PARTS &&
                                         (r->stacks || recording_expects_gpu(walk->rec)),
                             .is_host = calloc(walk->rec->count + 1u, sizeof *g->is_host)};
    if (memory_peaks_init(&g->memory, walk) < 0 || !g->is_host)
        return GPUPROF_NO_MEMORY;
    if (r->signs.walk) /* the books tell these as well */
        g->memory.also = memory_signs_user(&r->signs);
    for (uint32_t i = 0; i < walk->rec->count; i++)
        g->has_host |= g->is_host[i] = !process_expects_gpu(walk->rec->processes[i]);
    g->ranges = (struct range_rows){.sums = &r->sums[ANALYSIS_ranges_sums],
                                    .texts = r->wish.groups ? &walk->texts : NULL,
                                    .marks = RANGE_GROUPS};
    g->projections = g->ranges;
    g->projections.sums = &r->sums[ANALYSIS_projections_sums];
    for (unsigned i = FIRST_TABLE; i <= LAST_TABLE; i++)
        r->sums[i].owner = g;
    g->ranges.sums->owner = &g->ranges;
    g->projections.sums->owner = &g->projections;
    return 0;
}

static void analysis_release(struct report *r)
{
    struct gpu_report *g = r->gpu;
    range_rows_release(&g->ranges);
    range_rows_release(&g->projections);
    free(g->devices);
    memory_peaks_release(&g->memory);
    free(g->is_host);
    key_map_release(&g->pending_places);
    free(g->pending);
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
    g->last_use = number ? number - 1 : DEVICES_MAX - 1; /* more than anything real has are one */
    return &g->devices[g->last_use];
}

static struct device_use *use_of(struct gpu_report *g, struct process *p, uint64_t device)
{
    struct device_use *last = g->device_count ? &g->devices[g->last_use] : NULL;
    return last && last->process == p && last->device == device ? last : find_use(g, p, device);
}

/* A name may stand behind the kernels that have it: until then they have a row by their number. */
static __attribute__((noinline)) struct sums_row *
find_row_of_kernel(struct gpu_report *g, const struct event *e, struct recent_kernel *recent)
{
    struct sums *kernels = &g->sums[ANALYSIS_kernels_sums];
    bool by_grid = g->by == BY_GRID;
    uint64_t number = record_arg(e->record, KERNEL_NAME_INDEX);
    uint64_t key = sums_name_key(walk_kernel(g->walk, e->process, number));
    if (!key) {
        struct key of = {e->process->index, number, 0};
        uint32_t place;
        if (KEY_MAP_ITEM(&g->pending_places, of, g->pending, g->pending_count, UINT32_MAX,
                         (&(struct pending_kernel){e->process, number}), &place) < 0)
            return NULL;
        key = PENDING | place;
    }
    struct sums_row *row = sums_row(kernels, key, by_grid ? record_arg(e->record, KERNEL_GRID) : 0,
                                    by_grid ? record_arg(e->record, KERNEL_BLOCK) : 0);
    if (row && !(key & PENDING) && !by_grid)
        *recent =
            (struct recent_kernel){e->process->index, (uint32_t)(row - kernels->rows) + 1, number};
    return row;
}

static inline struct sums_row *row_of_kernel(struct gpu_report *g, const struct event *e)
{
    uint32_t process = e->process->index;
    uint64_t number = record_arg(e->record, KERNEL_NAME_INDEX);
    struct recent_kernel *recent = &g->recent[(number ^ (uint64_t)process << 4) % RECENT_KERNELS];
    return recent->place && recent->number == number && recent->process == process
               ? &g->sums[ANALYSIS_kernels_sums].rows[recent->place - 1]
               : find_row_of_kernel(g, e, recent);
}

/* What is known by now is its name, or else its number is. Place 0 had no room. */
static uint64_t late_key(struct gpu_report *g, uint32_t place)
{
    char text[48] = "kernel";
    const struct pending_kernel *p = place ? &g->pending[place - 1] : NULL;
    const struct kernel_name *name = p ? walk_kernel(g->walk, p->process, p->number) : NULL;
    if (p)
        snprintf(text, sizeof text, "kernel %llu", (unsigned long long)p->number);
    return name ? sums_name_key(name) : sums_text(&g->sums[ANALYSIS_kernels_sums], text);
}

/* 0 or GPUPROF_NO_MEMORY. */
static int name_pending(struct gpu_report *g)
{
    struct sums *kernels = &g->sums[ANALYSIS_kernels_sums];
    for (uint32_t i = 0; i < kernels->count; i++) {
        const struct sums_row *from = &kernels->rows[i];
        if (!(from->keys[0] & PENDING) || sums_is_others(from))
            continue;
        uint64_t key = late_key(g, (uint32_t)from->keys[0]);
        struct sums_row *row = sums_row(kernels, key, from->keys[1], from->keys[2]);
        if (!row)
            return GPUPROF_NO_MEMORY;
        sums_join(kernels, row, &kernels->rows[i]);
        kernels->rows[i].keys[0] = key;
    }
    return 0;
}

/* Call to kernel: the time to its begin, and how long it waited behind its call's end. */
static int take_launch(struct gpu_report *g, const struct event *e,
                       const struct correlated_call *call)
{
    struct sums *launches = &g->sums[ANALYSIS_launches_sums];
    if (!launches->info || (g->leaves & REPORT_UNSEEN && launches->count))
        return 0;
    const uint64_t ns[LAUNCH_ROWS] = {
        [LAUNCH_LATENCY] = e->begin_ns > call->begin_ns ? e->begin_ns - call->begin_ns : 0,
        [LAUNCH_QUEUE] = e->begin_ns > call->end_ns ? e->begin_ns - call->end_ns : 0,
        [LAUNCH_CALL] = call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0};
    while (launches->count < LAUNCH_ROWS) /* each has its place, for each kernel */
        if (!sums_row(launches, launches->count, 0, 0))
            return GPUPROF_NO_MEMORY;
    /* The launch of a graph has many kernels, and is one call. */
    unsigned rows = call->flags & CORRELATION_COUNTED ? LAUNCH_CALL : LAUNCH_ROWS;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < rows; i++)
        error = gpu_count(launches, &launches->rows[i], ns[i], 0, 1);
    return error;
}

static int take_use(struct gpu_report *g, const struct event *e)
{
    const struct record *r = e->record;
    struct device_use *use = use_of(g, e->process, record_arg(r, KERNEL_DEVICE));
    if (!use)
        return GPUPROF_NO_MEMORY;
    bool computes = r->type == RECORD_KERNEL || r->type == RECORD_GRAPH;
    if (e->begin_ns < use->begin_ns)
        use->begin_ns = e->begin_ns;
    if (e->end_ns > use->end_ns)
        use->end_ns = e->end_ns;
    cover(&use->busy, e->begin_ns, e->end_ns);
    cover(computes ? &use->kernels : &use->copies, e->begin_ns, e->end_ns);
    return 0;
}

/* Work of a kind that has a call. */
static inline int take_tied(struct gpu_report *g, const struct slice *s)
{
    const struct event *e = &s->event;
    if (!s->is_called)
        return 0;
    int error = e->record->type == RECORD_KERNEL ? take_launch(g, e, &s->call) : 0;
    return error < 0 || !s->call.range
               ? error
               : survey_project(&g->walk->survey, &s->call, e->begin_ns, e->end_ns);
}

static int tied(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    return g->has_work && is_stream_work(s->event.record->type) ? take_tied(g, s) : 0;
}

static int take_work(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct sums *kernels = &g->sums[ANALYSIS_kernels_sums];
    uint64_t ns = e->end_ns - e->begin_ns;
    if (!g->has_work)
        return 0;
    bool leaves_use = g->leaves & REPORT_USE || (g->leaves & REPORT_UNSEEN && g->device_count);
    int error = leaves_use ? 0 : take_use(g, e);
    if (error < 0)
        return error;
    if (r->type == RECORD_KERNEL) {
        error = kernels->info ? gpu_count(kernels, row_of_kernel(g, e), ns, 0, 1) : 0;
    } else if (r->type == RECORD_GRAPH) {
        error = count(&g->sums[ANALYSIS_graphs_sums], record_arg(r, GRAPH_GRAPH), 0, ns, 0);
    } else {
        bool is_copy = r->type == RECORD_COPY;
        uint64_t bytes = record_arg(r, is_copy ? COPY_BYTES : SET_BYTES);
        uint64_t kind = is_copy ? record_arg(r, COPY_KIND) : GPU_COPY_SET;
        kind = kind < GPU_COPY_KINDS || !is_copy ? kind : 0;
        error = count(&g->sums[ANALYSIS_copies_sums], kind, 0, ns, bytes);
        if (error == 0)
            error = count(&g->sums[ANALYSIS_copy_sizes_sums], kind, 0, bytes, 0);
    }
    return error == 0 && s->is_tied && !(g->leaves & REPORT_TIED) ? take_tied(g, s) : error;
}

static int take_range(struct gpu_report *g, const struct slice *s)
{
    const struct range *range = s->range;
    if ((s->change != RANGE_CLOSED && s->change != RANGE_LEFT) || s->is_hidden ||
        !g->ranges.sums->info)
        return 0;
    struct nccl_call call;
    uint64_t bytes = nccl_call_of(range, &call) ? call.bytes : 0;
    return gpu_count(g->ranges.sums, range_rows_get(&g->ranges, range->text, range->domain_text),
                     range->end_ns - range->begin_ns, bytes, 1);
}

static uint64_t kind_of(const struct event *e)
{
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == ARG_KIND)
            return e->record->args[i];
    return HOST_COPY_UNKNOWN;
}

/* Of a process whose devices have no rows a call that launched a kernel, copied or set; times are
 * those of the call, on the host. */
static int take_host(struct sums *sums, const struct slice *s)
{
    const struct event *e = &s->event;
    unsigned does = e->function->does;
    bool is_one = does == API_DOES_LAUNCH || api_is_copy(does) || does == API_DOES_SET;
    if (!is_one || e->record->flags & (RECORD_NESTED | RECORD_CAPTURED) ||
        api_has_failed(e->function->domain, e->record->result))
        return 0;
    bool is_launch = does == API_DOES_LAUNCH;
    struct sums *of = &sums[is_launch ? ANALYSIS_host_kernels_sums : ANALYSIS_host_copies_sums];
    if (!of->info)
        return 0;
    uint64_t kind = is_launch ? sums_name_key(walk_launched(s)) : HOST_COPY_SET;
    if (api_is_copy(does))
        kind = kind_of(e) < HOST_COPY_UNKNOWN ? kind_of(e) : HOST_COPY_UNKNOWN;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    return gpu_count(of, sums_row(of, kind, 0, 0), e->end_ns - e->begin_ns,
                     function_bytes(e->function, e->record), weight);
}

static int take_call(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    return g->is_host[s->event.process->index] ? take_host(g->sums, s) : 0;
}

static int take(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint64_t ns = e->end_ns - e->begin_ns, kind = record_arg(r, SYNC_KIND);
    _Static_assert((unsigned)SYNC_KIND == (unsigned)OVERHEAD_KIND, "both begin with their kind");
    switch (r->type) { /* kinds that nobody knows are one, that of 0 */
    case RECORD_SYNC:
        kind = sync_kind_text(kind) == sync_kind_text(0) ? 0 : kind;
        return count(&g->sums[ANALYSIS_syncs_sums], kind, 0, ns, 0);
    case RECORD_OVERHEAD:
        kind = overhead_kind_text(kind) == overhead_kind_text(0) ? 0 : kind;
        return count(&g->sums[ANALYSIS_overheads_sums], kind, 0, ns, 0);
    case RECORD_MEMORY:
    case RECORD_POOL: return 0;
    default: return take_range(g, s);
    }
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
    memory_peaks_finish(&g->memory);
    for (uint32_t i = 0; i < g->memory.totals.count && i < g->memory.capacity; i++) {
        const struct place_totals *place = &g->memory.totals.list[i];
        const uint64_t bytes[] = {[PEAK_ALLOCATED] = g->memory.list[i].allocated,
                                  [PEAK_RESERVED] = g->memory.list[i].reserved};
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

/* Each range once, from its first work to the end of its last, as nsys has it. */
static int add_projected(struct gpu_report *g)
{
    struct sums *s = g->projections.sums;
    int error = 0;
    for (uint32_t i = 1; error == 0 && i <= g->walk->survey.nodes.count; i++) {
        const struct range_node *node = survey_range(&g->walk->survey, i, &error);
        if (!node)
            return error;
        if (node->work_begin_ns <= node->work_end_ns)
            error = gpu_count(s, range_rows_get(&g->projections, node->text, node->domain_text),
                              node->work_end_ns - node->work_begin_ns, 0, 1);
    }
    return error;
}

static int end(void *context)
{
    struct gpu_report *g = context;
    struct sums *use = &g->sums[ANALYSIS_gpu_use_sums];
    int error = g->projections.sums->info ? add_projected(g) : 0;
    if (error == 0 && g->sums[ANALYSIS_kernels_sums].info)
        error = name_pending(g);
    for (uint32_t i = 0; use->info && error == 0 && i < g->device_count; i++)
        error = add_device(use, &g->devices[i]);
    if (error == 0 && g->sums[ANALYSIS_gpu_memory_sums].info)
        error = add_peaks(g);
    for (unsigned i = FIRST_TABLE; i <= LAST_TABLE && error == 0; i++)
        error = g->sums[i].info ? sums_finish(&g->sums[i]) : 0;
    return error;
}

static unsigned consumers(struct report *r, struct consumer *list)
{
    struct gpu_report *g = r->gpu;
    bool ties = !(g->leaves & REPORT_TIED), has_idle = !(g->leaves & REPORT_IDLE);
    unsigned work = g->has_work ? WALK_LOSSES | (ties ? (unsigned)WALK_WORK : 0) : 0;
    unsigned count = 0;
    if (!(g->leaves & REPORT_MEMORY))
        list[count++] = memory_peaks_consumer(&g->memory);
    list[count++] = (struct consumer){
        .context = g,
        /* What is lost of operators is told, and of stacks, if nobody else does. */
        .needs = WALK_RANGES | WALK_OPS | (has_idle ? 0 : (unsigned)WALK_STACKS) | work,
        .skips = (g->has_host ? 0 : WALK_SKIPS_CALLS) |
                 (g->leaves & REPORT_WORK ? WALK_SKIPS_WORK : 0) |
                 WALK_SKIPS_TIED, /* take_work sees that it is */
        .take = take,
        .take_call = take_call,
        .take_work = take_work,
        .tied = ties ? tied : NULL,
        .end = end};
    return count;
}

/* Which calls of libraries, if it is known, made the kernels. 0 or GPUPROF_NO_MEMORY. */
static int analysis_end(struct report *r)
{
    struct sums *kernels = &r->sums[ANALYSIS_kernels_sums];
    for (uint32_t i = 0; r->libraries && i < kernels->count; i++) {
        struct sums_row *row = &kernels->rows[i];
        if (sums_is_others(row))
            continue;
        struct kernel_made made =
            library_report_made(r->libraries, (const void *)(uintptr_t)row->keys[0]);
        row->values[KERNEL_MAKER] = made.maker;
        if (!made.kind)
            continue;
        row->values[KERNEL_MAKER_FUNCTION] = sums_function(kernels, made.kind->function);
        row->values[KERNEL_MAKER_TEXT] = sums_name_key(made.kind->text);
        if (!row->values[KERNEL_MAKER_FUNCTION])
            return GPUPROF_NO_MEMORY;
    }
    return 0;
}

const struct analysis gpu_analysis = {ANALYSIS_STATE(gpu),     .uses = USE_EXPORT | USE_PARTS,
                                      .begin = analysis_begin, .consumers = consumers,
                                      .end = analysis_end,     .release = analysis_release};

bool gpu_report_is_unsure(const struct gpu_report *g)
{
    return g->ranges.is_unsure || g->projections.is_unsure;
}

struct gpu_totals gpu_totals(const struct sums *use)
{
    struct gpu_totals t = {0};
    uint64_t span_ns = 0;
    for (uint32_t i = 0; i < use->count; i++) {
        const struct sums_row *row = &use->rows[i];
        if (row->keys[GPU_USE_WHAT] == GPU_USE_SPAN) {
            span_ns = row->values[GPU_USE_NS];
            t.devices += span_ns > 0;
            t.span_ns += span_ns;
        } else if (row->keys[GPU_USE_WHAT] == GPU_USE_BUSY && span_ns) {
            t.busy_ns += row->values[GPU_USE_NS];
        }
    }
    return t;
}
