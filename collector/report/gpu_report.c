/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gpu_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "read/process_title.h"
#include "record/gpu_record.h"

#define TABLE_SHIFT  56 /* above any pointer */
#define UNNAMED      (1ull << 55)
#define UNNAMED_MASK (UNNAMED - 1)
#define PENDING      (1ull << 54) /* above any pointer, too: a kernel that nothing has named yet */
#define DEVICES_MAX  4096
#define RECENT_SLOTS 64

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
    uint64_t allocated_peak;
    uint64_t reserved_peak; /* 0: no pools */
};

struct gpu_report {
    struct recording *rec;
    struct walk *walk;
    enum report_by by;
    bool has_work;
    struct key_map places; /* of rows + 1 */
    struct {
        struct key key;
        uint64_t place;     /* 0: free */
    } recent[RECENT_SLOTS]; /* a few of them: most events are of rows that were asked for before */
    struct key_map unnamed; /* (process, number) of kernels -> a number for their keys */
    struct gpu_stat *rows;  /* owned */
    uint32_t count;
    uint32_t rows_max;
    uint32_t capacity;
    uint64_t *histogram_rows;     /* a view */
    struct key_map device_places; /* (process, device) -> place + 1 */
    struct device_use *devices;   /* owned */
    uint32_t device_count;
    uint32_t device_capacity;
    uint32_t last_use; /* place of the device that was asked for last */
    uint64_t last_ns;
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

/* The row of that key, or NULL. */
static struct gpu_stat *find_row(struct gpu_report *g, enum gpu_table table, struct key key)
{
    key.a |= (uint64_t)table << TABLE_SHIFT;
    unsigned slot = (unsigned)(key.a >> 4 ^ key.a ^ table << 3 ^ key.b ^ key.c) % RECENT_SLOTS;
    struct key known = g->recent[slot].key;
    if (known.a != key.a || known.b != key.b || known.c != key.c || !g->recent[slot].place) {
        g->recent[slot].key = key;
        g->recent[slot].place = key_map_get(&g->places, key);
    }
    return g->recent[slot].place ? &g->rows[g->recent[slot].place - 1] : NULL;
}

/* The same, made with a copy of `name`; beyond the maximum one for all others. NULL: no memory. */
static struct gpu_stat *row_of(struct gpu_report *g, enum gpu_table table, struct key key,
                               const char *name)
{
    struct gpu_stat *found = find_row(g, table, key);
    if (!found && g->count >= g->rows_max) {
        key = (struct key){0, UINT64_MAX, UINT64_MAX};
        name = "(others)";
        found = find_row(g, table, key);
    }
    if (found)
        return found;
    struct gpu_stat *rows = array_room(g->rows, g->count, &g->capacity, sizeof *rows, 64);
    if (!rows)
        return NULL;
    g->rows = rows;
    struct gpu_stat *row = &rows[g->count];
    *row = (struct gpu_stat){.table = table, .min_ns = UINT64_MAX, .name = strdup(name)};
    if (!row->name)
        return NULL;
    key.a |= (uint64_t)table << TABLE_SHIFT;
    return key_map_set(&g->places, key, ++g->count) < 0 ? NULL : row;
}

static int count_in(struct gpu_report *g, struct gpu_stat *row, uint64_t duration_ns,
                    uint64_t bytes)
{
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->count++;
    row->total_ns += duration_ns;
    row->bytes += bytes;
    if (duration_ns < row->min_ns)
        row->min_ns = duration_ns;
    if (duration_ns > row->max_ns)
        row->max_ns = duration_ns;
    return histogram_add(&row->durations, duration_ns, 1, g->histogram_rows);
}

/* A row that its name alone tells apart. */
static struct gpu_stat *named_row(struct gpu_report *g, enum gpu_table table, uint64_t number,
                                  const char *name)
{
    return row_of(g, table, (struct key){UNNAMED | (number & UNNAMED_MASK), 0, 0}, name);
}

static struct gpu_stat *range_row(struct gpu_report *g, enum gpu_table table,
                                  const struct kernel_name *text)
{
    return row_of(g, table, (struct key){(uintptr_t)text, 0, 0}, text ? text->shown : "range");
}

struct gpu_report *gpu_report_create(struct walk *walk, enum report_by by, bool has_work,
                                     uint64_t *histogram_rows)
{
    struct gpu_report *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->rec = walk->rec;
    g->walk = walk;
    g->by = by;
    g->has_work = has_work;
    g->histogram_rows = histogram_rows;
    uint64_t more = recording_bytes(g->rec) / GPU_STATS_FILE_BYTES;
    uint64_t most = GPU_STATS_MAX - GPU_STATS_FREE;
    g->rows_max = GPU_STATS_FREE + (uint32_t)(more < most ? more : most) - TABLE_COUNT;
    return g;
}

void gpu_report_free(struct gpu_report *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->count; i++) {
        free(g->rows[i].name);
        histogram_release(&g->rows[i].durations);
    }
    free(g->rows);
    free(g->devices);
    key_map_release(&g->places);
    key_map_release(&g->unnamed);
    key_map_release(&g->device_places);
    free(g);
}

static struct device_use *use_of(struct gpu_report *g, struct process *p, uint64_t device)
{
    struct key key = {p->index, device, 0};
    struct device_use *last = &g->devices[g->last_use];
    if (g->device_count && last->process == p && last->device == device)
        return last;
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

/* "name", or with --by=grid "name <<<1x1x1, 256x1x1>>>". */
static struct gpu_stat *kernel_row(struct gpu_report *g, const struct kernel_name *known,
                                   uint64_t number, uint64_t grid, uint64_t block)
{
    char unnamed[48], *text = NULL;
    bool by_grid = g->by == BY_GRID;
    struct key key = {known ? (uintptr_t)known : UNNAMED | (number & UNNAMED_MASK),
                      by_grid ? grid : 0, by_grid ? block : 0};
    struct gpu_stat *row = find_row(g, TABLE_KERNELS, key);
    if (row)
        return row;
    snprintf(unnamed, sizeof unnamed, "kernel %llu", (unsigned long long)number);
    const char *name = known ? known->shown : unnamed;
    if (!by_grid)
        return row_of(g, TABLE_KERNELS, key, name);
    if (asprintf(&text, "%s <<<%ux%ux%u, %ux%ux%u>>>", name, (unsigned)(uint32_t)grid,
                 (unsigned)(grid >> 32 & 0xffff), (unsigned)(grid >> 48), (unsigned)(uint32_t)block,
                 (unsigned)(block >> 32 & 0xffff), (unsigned)(block >> 48)) < 0)
        return NULL;
    row = row_of(g, TABLE_KERNELS, key, text);
    free(text);
    return row;
}

/* A name may stand behind the kernels that have it: until then they have a row by their number. */
static struct gpu_stat *row_of_kernel(struct gpu_report *g, const struct event *e)
{
    const struct record *r = e->record;
    uint64_t number = record_arg(r, KERNEL_NAME_INDEX);
    uint64_t grid = record_arg(r, KERNEL_GRID), block = record_arg(r, KERNEL_BLOCK);
    const struct kernel_name *known = walk_kernel(g->walk, e->process, number);
    if (known || !number)
        return kernel_row(g, known, number, grid, block);
    struct key unnamed = {e->process->index, number, 0};
    uint64_t n = key_map_get(&g->unnamed, unnamed);
    if (!n && key_map_set(&g->unnamed, unnamed, n = g->unnamed.count + 1ull) == GPUPROF_NO_MEMORY)
        return NULL;
    struct key key = {PENDING | n, g->by == BY_GRID ? grid : 0, g->by == BY_GRID ? block : 0};
    struct gpu_stat *row = row_of(g, TABLE_KERNELS, key, "");
    if (row && !row->name[0]) {
        row->unnamed = e->process;
        row->number = number;
        row->grid = grid;
        row->block = block;
    }
    return row;
}

/* Now its name is known, or never will be. */
static int name_row(struct gpu_report *g, uint32_t place)
{
    struct gpu_stat *from = &g->rows[place];
    struct gpu_stat *row = kernel_row(g, walk_kernel(g->walk, from->unnamed, from->number),
                                      from->number, from->grid, from->block);
    if (!row)
        return GPUPROF_NO_MEMORY;
    from = &g->rows[place];
    row->count += from->count;
    row->total_ns += from->total_ns;
    row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
    row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
    histogram_move(&row->durations, &from->durations);
    from->table = TABLE_COUNT; /* none */
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

/* Call to kernel: the time to its begin, and how long it waited behind its call's end. */
static int take_launch(struct gpu_report *g, const struct event *e,
                       const struct correlated_call *call)
{
    uint64_t latency = e->begin_ns > call->begin_ns ? e->begin_ns - call->begin_ns : 0;
    uint64_t queue = e->begin_ns > call->end_ns ? e->begin_ns - call->end_ns : 0;
    uint64_t api = call->end_ns > call->begin_ns ? call->end_ns - call->begin_ns : 0;
    int error = count_in(g, named_row(g, TABLE_LAUNCHES, 1, "launch latency"), latency, 0);
    if (error == 0)
        error = count_in(g, named_row(g, TABLE_LAUNCHES, 2, "queue time"), queue, 0);
    /* The launch of a graph has many kernels, and is one call. */
    bool again = call->flags & CORRELATION_COUNTED;
    return error < 0 || again ? error
                              : count_in(g, named_row(g, TABLE_LAUNCHES, 3, "call"), api, 0);
}

static int take_work(struct gpu_report *g, const struct event *e)
{
    const struct record *r = e->record;
    struct gpu_stat *row;
    uint64_t bytes = 0;
    struct device_use *use = use_of(g, e->process, record_arg(r, KERNEL_DEVICE));
    if (!use)
        return GPUPROF_NO_MEMORY;
    if (e->begin_ns < use->begin_ns)
        use->begin_ns = e->begin_ns;
    if (e->end_ns > use->end_ns)
        use->end_ns = e->end_ns;
    cover(&use->busy, e->begin_ns, e->end_ns);
    if (r->type == RECORD_KERNEL || r->type == RECORD_GRAPH) {
        cover(&use->kernels, e->begin_ns, e->end_ns);
        row = r->type == RECORD_KERNEL ? row_of_kernel(g, e)
                                       : graph_row(g, record_arg(r, GRAPH_GRAPH));
    } else {
        cover(&use->copies, e->begin_ns, e->end_ns);
        bytes = record_arg(r, r->type == RECORD_COPY ? COPY_BYTES : SET_BYTES);
        row = transfer_row(g, TABLE_COPIES, r);
    }
    int error = count_in(g, row, e->end_ns - e->begin_ns, bytes);
    if (error == 0 && (r->type == RECORD_COPY || r->type == RECORD_SET))
        error = count_in(g, transfer_row(g, TABLE_SIZES, r), bytes, 0);
    return error;
}

static int tied(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct event *e = &s->event;
    if (!g->has_work || !s->is_called || !is_stream_work(e->record->type))
        return 0;
    int error = e->record->type == RECORD_KERNEL ? take_launch(g, e, &s->call) : 0;
    return error < 0 ? error : survey_project(&g->walk->survey, &s->call, e->begin_ns, e->end_ns);
}

static int take_memory(struct gpu_report *g, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    const struct memory_totals totals = s->memory;
    if (r->type == RECORD_POOL || !memory_is_device(record_arg(r, MEMORY_KIND)))
        return 0;
    struct device_use *use = use_of(g, e->process, record_arg(r, MEMORY_DEVICE));
    if (!use)
        return GPUPROF_NO_MEMORY;
    if (totals.allocated > use->allocated_peak)
        use->allocated_peak = totals.allocated;
    if (totals.has_pool && memory_reserved(&totals) > use->reserved_peak)
        use->reserved_peak = memory_reserved(&totals);
    return 0;
}

static int take_range(struct gpu_report *g, const struct slice *s)
{
    const struct range *range = s->range;
    if (s->change != RANGE_CLOSED && s->change != RANGE_LEFT)
        return 0;
    uint64_t end_ns = s->change == RANGE_LEFT ? g->last_ns : range->end_ns;
    end_ns = end_ns > range->begin_ns ? end_ns : range->begin_ns;
    return count_in(g, range_row(g, TABLE_RANGES, range->text), end_ns - range->begin_ns, 0);
}

static int take_slice(void *context, const struct slice *s)
{
    struct gpu_report *g = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->type == RECORD_CALL)
        return 0;
    if (event_is_visible(r->type) && e->end_ns > g->last_ns)
        g->last_ns = e->end_ns;
    if (is_stream_work(r->type))
        return g->has_work ? take_work(g, e) : 0;
    uint64_t duration_ns = e->end_ns - e->begin_ns;
    uint64_t kind = record_arg(r, SYNC_KIND);
    _Static_assert((unsigned)SYNC_KIND == (unsigned)OVERHEAD_KIND, "both begin with their kind");
    switch (r->type) {
    case RECORD_SYNC:
        return count_in(g, named_row(g, TABLE_SYNCS, kind, sync_kind_text(kind)), duration_ns, 0);
    case RECORD_OVERHEAD:
        return count_in(g, named_row(g, TABLE_OVERHEADS, kind, overhead_kind_text(kind)),
                        duration_ns, 0);
    case RECORD_MEMORY:
    case RECORD_POOL: return take_memory(g, s);
    default: return take_range(g, s);
    }
}

/* A row of TABLE_DEVICES or TABLE_MEMORY: one number, in the order in which it is added. */
static int add_number(struct gpu_report *g, enum gpu_table table, const struct device_use *use,
                      const char *what, uint64_t ns, uint64_t of_ns, uint64_t bytes)
{
    char name[160];
    char rank[32] = "";
    const char *text = process_rank(use->process);
    if (text)
        snprintf(rank, sizeof rank, "rank %.16s, ", text);
    if (g->rec->count > 1 && !text)
        snprintf(rank, sizeof rank, "process %u, ", use->process->header.pid);
    snprintf(name, sizeof name, "%sGPU %llu: %s", rank, (unsigned long long)use->device, what);
    struct gpu_stat *row = row_of(g, table, (struct key){UNNAMED, g->count, 1}, name);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->order = g->count;
    row->of_ns = of_ns;
    return count_in(g, row, ns, bytes);
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
            {"idle", span_ns - use->busy.total_ns},
            {"in kernels", use->kernels.total_ns},
            {"in copies and sets", use->copies.total_ns},
            {"copies and sets during kernels", both_ns},
        };
        for (size_t i = 0; error == 0 && i < sizeof rows / sizeof rows[0]; i++)
            error = add_number(g, TABLE_DEVICES, use, rows[i].what, rows[i].ns, i ? span_ns : 0, 0);
    }
    if (error == 0 && use->allocated_peak)
        error = add_number(g, TABLE_MEMORY, use, "most allocated", 0, 0, use->allocated_peak);
    if (error == 0 && use->reserved_peak)
        error = add_number(g, TABLE_MEMORY, use, "most reserved, pools included", 0, 0,
                           use->reserved_peak);
    return error;
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
    return strcmp(a->name, b->name);
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
            error = count_in(g, range_row(g, TABLE_PROJECTIONS, node->text),
                             node->work_end_ns - node->work_begin_ns, 0);
    }
    return error;
}

static int end(void *context)
{
    struct gpu_report *g = context;
    int error = add_projected(g);
    for (uint32_t i = 0; error == 0 && i < g->count; i++)
        if (g->rows[i].unnamed)
            error = name_row(g, i);
    for (uint32_t i = 0; error == 0 && i < g->device_count; i++)
        error = add_device(g, &g->devices[i]);
    if (g->count)
        qsort(g->rows, g->count, sizeof *g->rows, compare_stats);
    return error;
}

struct consumer gpu_report_consumer(struct gpu_report *g)
{
    unsigned work = g->has_work ? WALK_WORK | WALK_LOSSES : 0;
    return (struct consumer){.context = g,
                             .needs = WALK_RANGES | WALK_MEMORY | work,
                             .take = take_slice,
                             .tied = tied,
                             .end = end};
}

const struct gpu_stat *gpu_report_rows(const struct gpu_report *g, uint32_t *count)
{
    *count = g ? g->count : 0;
    return g ? g->rows : NULL;
}

struct gpu_totals gpu_report_totals(const struct gpu_report *g)
{
    struct gpu_totals t = {0};
    for (uint32_t i = 0; g && i < g->count; i++)
        if (g->rows[i].table == TABLE_KERNELS)
            t.kernels += g->rows[i].count;
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
