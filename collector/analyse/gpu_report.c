/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/gpu_report_state.h"
#include "analyse/host_rows.h"
#include "analyse/library_report.h"
#include "base/array.h"
#include "error.h"
#include "model/nccl_call.h"
#include "query/report_parts.h"
#include "read/process_title.h"
#include "record/gpu_record.h"

#define UNNAMED      (1ull << 55)
#define UNNAMED_MASK (UNNAMED - 1)
#define PENDING      (1ull << 54) /* above any pointer, too: a kernel that nothing has named yet */
#define DEVICES_MAX  4096

static void cover(struct covered *c, uint64_t begin_ns, uint64_t end_ns)
{
    if (begin_ns < c->end_ns)
        begin_ns = c->end_ns;
    if (end_ns > begin_ns) {
        c->total_ns += end_ns - begin_ns;
        c->end_ns = end_ns;
    }
}

/* A row that its name alone tells apart. */
static struct gpu_stat *named_row(struct gpu_report *g, enum gpu_table table, uint64_t number,
                                  const char *name)
{
    return gpu_stats_row(&g->stats, table, (struct key){UNNAMED | (number & UNNAMED_MASK), 0, 0},
                         name);
}

/* By a text that stays: all kinds that nobody knows have one. */
static struct gpu_stat *kind_row(struct gpu_report *g, enum gpu_table table, const char *text)
{
    return named_row(g, table, (uintptr_t)text, text);
}

struct gpu_report *gpu_report_create(struct walk *walk, enum report_by by, bool groups,
                                     bool has_work, uint64_t *histogram_rows)
{
    struct gpu_report *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->is_host = calloc(walk->rec->count + 1u, sizeof *g->is_host);
    if (memory_peaks_init(&g->memory, walk) < 0 || !g->is_host) {
        gpu_report_free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < walk->rec->count; i++)
        g->has_host |= g->is_host[i] = !process_expects_gpu(walk->rec->processes[i]);
    g->rec = walk->rec;
    g->walk = walk;
    g->by = by;
    g->has_work = has_work;
    gpu_stats_init(&g->stats, recording_bytes(g->rec), histogram_rows);
    g->ranges = (struct range_rows){.stats = &g->stats, .texts = groups ? &walk->texts : NULL};
    return g;
}

void gpu_report_free(struct gpu_report *g)
{
    if (!g)
        return;
    gpu_stats_release(&g->stats);
    range_rows_release(&g->ranges);
    free(g->devices);
    free(g->peaks);
    memory_peaks_release(&g->memory);
    free(g->is_host);
    key_map_release(&g->unnamed);
    key_map_release(&g->device_places);
    free(g);
}

static __attribute__((noinline)) struct device_use *find_use(struct gpu_report *g,
                                                             struct process *p, uint64_t device)
{
    struct key key = {p->index, device, 0};
    uint64_t place = key_map_get(&g->device_places, key);
    if (place) {
        g->last_use = (uint32_t)place - 1;
        return &g->devices[place - 1];
    }
    /* More devices than anything real has are one. */
    if (g->device_count == DEVICES_MAX)
        return &g->devices[DEVICES_MAX - 1];
    struct device_use *devices =
        array_room(g->devices, g->device_count, &g->device_capacity, sizeof *devices, 8);
    if (!devices)
        return NULL;
    g->devices = devices;
    devices[g->device_count] =
        (struct device_use){.process = p, .device = device, .begin_ns = UINT64_MAX};
    return key_map_set(&g->device_places, key, ++g->device_count) < 0
               ? NULL
               : &devices[g->device_count - 1];
}

static struct device_use *use_of(struct gpu_report *g, struct process *p, uint64_t device)
{
    struct device_use *last = g->device_count ? &g->devices[g->last_use] : NULL;
    return last && last->process == p && last->device == device ? last : find_use(g, p, device);
}

static struct gpu_stat *named_kernel_row(struct gpu_report *g, struct key key, const char *name,
                                         const struct kernel_name *known)
{
    struct gpu_stat *row = gpu_stats_row(&g->stats, TABLE_KERNELS, key, name);
    if (row && !row->kernel && !row->count)
        row->kernel = known;
    return row;
}

/* "name", or with --by=grid "name <<<1x1x1, 256x1x1>>>". */
static __attribute__((noinline)) struct gpu_stat *
make_kernel_row(struct gpu_report *g, struct key key, const struct kernel_name *known,
                uint64_t number, uint64_t grid, uint64_t block)
{
    char unnamed[48], *text = NULL;
    snprintf(unnamed, sizeof unnamed, "kernel %llu", (unsigned long long)number);
    const char *name = known ? known->shown : unnamed;
    if (g->by != BY_GRID)
        return named_kernel_row(g, key, name, known);
    if (asprintf(&text, "%s <<<%ux%ux%u, %ux%ux%u>>>", name, (unsigned)(uint32_t)grid,
                 (unsigned)(grid >> 32 & 0xffff), (unsigned)(grid >> 48), (unsigned)(uint32_t)block,
                 (unsigned)(block >> 32 & 0xffff), (unsigned)(block >> 48)) < 0)
        return NULL;
    struct gpu_stat *row = named_kernel_row(g, key, text, known);
    free(text);
    return row;
}

static struct gpu_stat *kernel_row(struct gpu_report *g, const struct kernel_name *known,
                                   uint64_t number, uint64_t grid, uint64_t block)
{
    bool by_grid = g->by == BY_GRID;
    struct key key = {known ? (uintptr_t)known : UNNAMED | (number & UNNAMED_MASK),
                      by_grid ? grid : 0, by_grid ? block : 0};
    struct gpu_stat *row = gpu_stats_find(&g->stats, TABLE_KERNELS, key);
    return row ? row : make_kernel_row(g, key, known, number, grid, block);
}

/* A name may stand behind the kernels that have it: until then they have a row by their number. */
static __attribute__((noinline)) struct gpu_stat *
find_row_of_kernel(struct gpu_report *g, const struct event *e, struct recent_kernel *recent)
{
    const struct record *r = e->record;
    uint64_t number = record_arg(r, KERNEL_NAME_INDEX);
    uint64_t grid = record_arg(r, KERNEL_GRID), block = record_arg(r, KERNEL_BLOCK);
    const struct kernel_name *known = walk_kernel(g->walk, e->process, number);
    if (known || !number) {
        struct gpu_stat *row = kernel_row(g, known, number, grid, block);
        if (row && known && g->by != BY_GRID)
            *recent = (struct recent_kernel){e->process->index, (uint32_t)(row - g->stats.rows) + 1,
                                             number};
        return row;
    }
    struct key unnamed = {e->process->index, number, 0};
    uint64_t n = key_map_get(&g->unnamed, unnamed);
    if (!n && key_map_set(&g->unnamed, unnamed, n = g->unnamed.count + 1ull) == GPUPROF_NO_MEMORY)
        return NULL;
    struct key key = {PENDING | n, g->by == BY_GRID ? grid : 0, g->by == BY_GRID ? block : 0};
    struct gpu_stat *row = gpu_stats_row(&g->stats, TABLE_KERNELS, key, "");
    if (row && !row->name[0]) {
        row->unnamed = e->process;
        row->number = number;
        row->grid = grid;
        row->block = block;
    }
    return row;
}

static inline struct gpu_stat *row_of_kernel(struct gpu_report *g, const struct event *e)
{
    uint32_t process = e->process->index;
    uint64_t number = record_arg(e->record, KERNEL_NAME_INDEX);
    struct recent_kernel *recent = &g->recent[(number ^ (uint64_t)process << 4) % RECENT_KERNELS];
    return recent->place && recent->number == number && recent->process == process
               ? &g->stats.rows[recent->place - 1]
               : find_row_of_kernel(g, e, recent);
}

/* Now its name is known, or never will be. */
static int name_row(struct gpu_report *g, uint32_t place)
{
    struct gpu_stat *from = &g->stats.rows[place];
    struct gpu_stat *row = kernel_row(g, walk_kernel(g->walk, from->unnamed, from->number),
                                      from->number, from->grid, from->block);
    if (!row)
        return GPUPROF_NO_MEMORY;
    from = &g->stats.rows[place];
    gpu_stats_join(row, from);
    return 0;
}

/* As nsys names them. */
static struct gpu_stat *copy_row(struct gpu_report *g, enum gpu_table table, uint64_t kind)
{
    static const char *const names[] = {
        "[CUDA memcpy unknown]",          "[CUDA memcpy Host-to-Device]",
        "[CUDA memcpy Device-to-Host]",   "[CUDA memcpy Host-to-Array]",
        "[CUDA memcpy Array-to-Host]",    "[CUDA memcpy Array-to-Array]",
        "[CUDA memcpy Array-to-Device]",  "[CUDA memcpy Device-to-Array]",
        "[CUDA memcpy Device-to-Device]", "[CUDA memcpy Host-to-Host]",
        "[CUDA memcpy Peer-to-Peer]",
    };
    kind = kind < sizeof names / sizeof names[0] ? kind : 0;
    return named_row(g, table, kind, names[kind]);
}

static struct gpu_stat *transfer_row(struct gpu_report *g, enum gpu_table table,
                                     const struct record *r)
{
    return r->type == RECORD_COPY ? copy_row(g, table, record_arg(r, COPY_KIND))
                                  : named_row(g, table, 100, "[CUDA memset]");
}

static struct gpu_stat *graph_row(struct gpu_report *g, uint64_t graph)
{
    char name[48];
    snprintf(name, sizeof name, "CUDA graph %llu", (unsigned long long)graph);
    return named_row(g, TABLE_GRAPHS, graph, name);
}

static __attribute__((noinline)) struct gpu_stat *make_launch_row(struct gpu_report *g,
                                                                  enum launch_row which)
{
    static const char *const names[LAUNCH_ROWS] = {"launch latency", "queue time", "call"};
    struct gpu_stat *row = named_row(g, TABLE_LAUNCHES, which + 1u, names[which]);
    if (row)
        g->launch_rows[which] = (uint32_t)(row - g->stats.rows) + 1;
    return row;
}

static int count_launch(struct gpu_report *g, enum launch_row which, uint64_t ns)
{
    uint32_t place = g->launch_rows[which];
    struct gpu_stat *row = place ? &g->stats.rows[place - 1] : make_launch_row(g, which);
    return gpu_stats_count(&g->stats, row, ns, 0);
}

/* Call to kernel: the time to its begin, and how long it waited behind its call's end. */
static int take_launch(struct gpu_report *g, const struct event *e,
                       const struct correlated_call *call)
{
    if (g->leaves & REPORT_UNSEEN && g->launch_rows[LAUNCH_CALL])
        return 0;
    const uint64_t ns[LAUNCH_ROWS] = {
        [LAUNCH_LATENCY] = e->begin_ns > call->begin_ns ? e->begin_ns - call->begin_ns : 0,
        [LAUNCH_QUEUE] = e->begin_ns > call->end_ns ? e->begin_ns - call->end_ns : 0,
        [LAUNCH_CALL] = call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0};
    /* The launch of a graph has many kernels, and is one call. */
    unsigned count = call->flags & CORRELATION_COUNTED ? LAUNCH_CALL : LAUNCH_ROWS;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < count; i++)
        error = count_launch(g, (enum launch_row)i, ns[i]);
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
    struct gpu_stat *row;
    uint64_t bytes = 0;
    if (!g->has_work)
        return 0;
    bool leaves_use = g->leaves & REPORT_USE || (g->leaves & REPORT_UNSEEN && g->device_count);
    int error = leaves_use ? 0 : take_use(g, e);
    if (error < 0)
        return error;
    if (r->type == RECORD_KERNEL || r->type == RECORD_GRAPH) {
        row = r->type == RECORD_KERNEL ? row_of_kernel(g, e)
                                       : graph_row(g, record_arg(r, GRAPH_GRAPH));
    } else {
        bytes = record_arg(r, r->type == RECORD_COPY ? COPY_BYTES : SET_BYTES);
        row = transfer_row(g, TABLE_COPIES, r);
    }
    error = gpu_stats_count(&g->stats, row, e->end_ns - e->begin_ns, bytes);
    if (error == 0 && (r->type == RECORD_COPY || r->type == RECORD_SET))
        error = gpu_stats_count(&g->stats, transfer_row(g, TABLE_SIZES, r), bytes, 0);
    return error == 0 && s->is_tied && !(g->leaves & REPORT_TIED) ? take_tied(g, s) : error;
}

static int take_range(struct gpu_report *g, const struct slice *s)
{
    const struct range *range = s->range;
    if ((s->change != RANGE_CLOSED && s->change != RANGE_LEFT) || s->is_hidden)
        return 0;
    struct nccl_call call;
    uint64_t bytes = nccl_call_of(range, &call) ? call.bytes : 0;
    return gpu_stats_count(
        &g->stats, range_rows_get(&g->ranges, TABLE_RANGES, range->text, range->domain_text),
        range->end_ns - range->begin_ns, bytes);
}

static int take_call(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    return g->is_host[s->event.process->index] ? host_rows_take(&g->stats, s) : 0;
}

static int take(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint64_t duration_ns = e->end_ns - e->begin_ns;
    uint64_t kind = record_arg(r, SYNC_KIND);
    _Static_assert((unsigned)SYNC_KIND == (unsigned)OVERHEAD_KIND, "both begin with their kind");
    switch (r->type) {
    case RECORD_SYNC:
        return gpu_stats_count(&g->stats, kind_row(g, TABLE_SYNCS, sync_kind_text(kind)),
                               duration_ns, 0);
    case RECORD_OVERHEAD:
        return gpu_stats_count(&g->stats, kind_row(g, TABLE_OVERHEADS, overhead_kind_text(kind)),
                               duration_ns, 0);
    case RECORD_MEMORY:
    case RECORD_POOL: return 0;
    default: return take_range(g, s);
    }
}

/* A row of TABLE_DEVICES or TABLE_MEMORY: one number, in the order in which it is added. */
static int add_number(struct gpu_report *g, enum gpu_table table, const struct device_use *use,
                      const char *what, uint64_t ns, uint64_t of_ns, uint64_t bytes)
{
    char name[160];
    char who[RANK_TITLE_BYTES] = "";
    if (g->rec->count > 1 || process_rank(use->process))
        process_who(use->process, who);
    snprintf(name, sizeof name, "%s%sGPU %llu: %s", who, *who ? ", " : "",
             (unsigned long long)use->device, what);
    struct gpu_stat *row =
        gpu_stats_row(&g->stats, table, (struct key){UNNAMED, g->stats.count, 1}, name);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->order = g->stats.count;
    row->of_ns = of_ns;
    return gpu_stats_count(&g->stats, row, ns, bytes);
}

static int add_device(struct gpu_report *g, const struct device_use *use)
{
    uint64_t span_ns = use->end_ns > use->begin_ns ? use->end_ns - use->begin_ns : 0;
    uint64_t both_ns = use->kernels.total_ns + use->copies.total_ns - use->busy.total_ns;
    int error = 0;
    if (use->begin_ns != UINT64_MAX) {
        const struct {
            const char *what;
            uint64_t ns;
        } rows[] = {
            {"from first to last work", span_ns},
            {"busy", use->busy.total_ns},
            {gpu_report_is_piece(g) ? "idle, or at other work" : "idle",
             span_ns - use->busy.total_ns},
            {"in kernels", use->kernels.total_ns},
            {"in copies and sets", use->copies.total_ns},
            {"copies and sets during kernels", both_ns},
        };
        for (size_t i = 0; error == 0 && i < sizeof rows / sizeof rows[0]; i++)
            error = add_number(g, TABLE_DEVICES, use, rows[i].what, rows[i].ns, i ? span_ns : 0, 0);
    }
    return error;
}

static int gather_peaks(struct gpu_report *g)
{
    memory_peaks_finish(&g->memory);
    for (uint32_t i = 0; i < g->memory.totals.count && i < g->memory.capacity; i++) {
        const struct place_totals *place = &g->memory.totals.list[i];
        if (place->is_host || place->device == LEDGER_NO_DEVICE)
            continue;
        struct device_peak *peaks =
            array_room(g->peaks, g->peak_count, &g->peak_capacity, sizeof *peaks, 8);
        if (!peaks)
            return GPUPROF_NO_MEMORY;
        g->peaks = peaks;
        peaks[g->peak_count++] =
            (struct device_peak){g->rec->processes[place->process->index], place->device,
                                 g->memory.list[i].allocated, g->memory.list[i].reserved};
    }
    return 0;
}

static int add_memory(struct gpu_report *g, const struct device_peak *peak)
{
    const struct device_use use = {.process = peak->process, .device = peak->device};
    int error = 0;
    if (peak->allocated)
        error = add_number(g, TABLE_MEMORY, &use, "most allocated", 0, 0, peak->allocated);
    if (error == 0 && peak->reserved)
        error = add_number(g, TABLE_MEMORY, &use, "most reserved, pools included", 0, 0,
                           peak->reserved);
    return error;
}

static int compare_places(const struct process *p, uint64_t a, const struct process *q, uint64_t b)
{
    if (p->index != q->index)
        return p->index < q->index ? -1 : 1;
    return (a > b) - (a < b);
}

static int compare_uses(const void *left, const void *right)
{
    const struct device_use *a = left, *b = right;
    return compare_places(a->process, a->device, b->process, b->device);
}

static int compare_peaks(const void *left, const void *right)
{
    const struct device_peak *a = left, *b = right;
    return compare_places(a->process, a->device, b->process, b->device);
}

static int compare_stats(const void *left, const void *right)
{
    const struct gpu_stat *a = left;
    const struct gpu_stat *b = right;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    int order = strcmp(a->name, b->name);
    if (order == 0 && a->domain && b->domain)
        order = strcmp(a->domain, b->domain);
    if (order == 0)
        order = (a->domain != NULL) - (b->domain != NULL);
    if (order == 0 && a->kernel && b->kernel)
        order = strcmp(a->kernel->raw, b->kernel->raw);
    return order;
}

/* Each range once, from its first work to the end of its last, as nsys has it. */
static int add_projected(struct gpu_report *g)
{
    int error = 0;
    for (uint32_t i = 1; error == 0 && i <= g->walk->survey.nodes.count; i++) {
        const struct range_node *node = survey_range(&g->walk->survey, i, &error);
        if (!node)
            return error;
        if (node->work_begin_ns <= node->work_end_ns)
            error = gpu_stats_count(
                &g->stats,
                range_rows_get(&g->ranges, TABLE_PROJECTIONS, node->text, node->domain_text),
                node->work_end_ns - node->work_begin_ns, 0);
    }
    return error;
}

int gpu_report_complete(struct gpu_report *g)
{
    int error = gather_peaks(g);
    if (g->device_count)
        qsort(g->devices, g->device_count, sizeof *g->devices, compare_uses);
    if (g->peak_count)
        qsort(g->peaks, g->peak_count, sizeof *g->peaks, compare_peaks);
    for (uint32_t i = 0; error == 0 && i < g->device_count; i++)
        error = add_device(g, &g->devices[i]);
    for (uint32_t i = 0; error == 0 && i < g->peak_count; i++)
        error = add_memory(g, &g->peaks[i]);
    if (g->stats.count)
        qsort(g->stats.rows, g->stats.count, sizeof *g->stats.rows, compare_stats);
    return error;
}

static int end(void *context)
{
    struct gpu_report *g = context;
    int error = add_projected(g);
    for (uint32_t i = 0; error == 0 && i < g->stats.count; i++)
        if (g->stats.rows[i].unnamed)
            error = name_row(g, i);
    return error < 0 ? error : gpu_report_complete(g);
}

void gpu_report_tell(struct gpu_report *g, const struct ledger_user *user)
{
    g->memory.also = *user;
}

struct consumer gpu_report_books(struct gpu_report *g)
{
    return memory_peaks_consumer(&g->memory);
}

struct consumer gpu_report_consumer(struct gpu_report *g)
{
    bool ties = !(g->leaves & REPORT_TIED);
    unsigned work = g->has_work ? WALK_LOSSES | (ties ? (unsigned)WALK_WORK : 0) : 0;
    return (struct consumer){.context = g,
                             .needs = WALK_RANGES | work,
                             .skips = (g->has_host ? 0 : WALK_SKIPS_CALLS) |
                                      (g->leaves & REPORT_WORK ? WALK_SKIPS_WORK : 0) |
                                      WALK_SKIPS_TIED, /* take_work sees that it is */
                             .take = take,
                             .take_call = take_call,
                             .take_work = take_work,
                             .tied = ties ? tied : NULL,
                             .end = end};
}

bool gpu_report_is_piece(const struct gpu_report *g)
{
    return g->walk && g->walk->filter;
}

void gpu_report_leave(struct gpu_report *g, unsigned parts)
{
    g->leaves = parts;
}

void gpu_report_set_libraries(struct gpu_report *g, const struct library_report *libraries)
{
    g->libraries = libraries;
}

const char *gpu_report_maker(const struct gpu_report *g, const struct gpu_stat *row)
{
    return g->libraries ? library_report_maker(g->libraries, row->kernel)
                        : library_maker_text(&row->made);
}

const struct gpu_stat *gpu_report_rows(const struct gpu_report *g, uint32_t *count)
{
    *count = g ? g->stats.count : 0;
    return g ? g->stats.rows : NULL;
}

struct gpu_totals gpu_report_totals(const struct gpu_report *g)
{
    struct gpu_totals t = {0};
    for (uint32_t i = 0; g && i < g->stats.count; i++)
        if (g->stats.rows[i].table == TABLE_KERNELS)
            t.kernels += g->stats.rows[i].count;
    for (uint32_t i = 0; g && i < g->device_count; i++) {
        const struct device_use *use = &g->devices[i];
        if (use->begin_ns >= use->end_ns)
            continue;
        t.devices++;
        t.busy_ns += use->busy.total_ns;
        t.span_ns += use->end_ns - use->begin_ns;
    }
    return t;
}
