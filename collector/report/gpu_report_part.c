/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gpu_report_part.h"

#include <string.h>

#include "analyse/gpu_report_state.h"
#include "analyse/library_report.h"
#include "base/array.h"
#include "error.h"

#define ROW_BYTES    12 /* in a part, at least */
#define DEVICE_BYTES 7
#define PEAK_BYTES   4

/* What tells rows apart, and what they have. */
struct carried {
    uint32_t table;
    const char *name, *raw, *domain;
    struct kernel_made made;
    struct gpu_stat sums;
};

static void carry_row(struct part *p, struct carried *c, uint64_t *rows_left)
{
    uint32_t maker = c->made.maker, domain = c->made.domain;
    part_u32(p, &c->table);
    part_text(p, &c->name);
    part_text(p, &c->raw);
    part_text(p, &c->domain);
    part_u32(p, &maker);
    if (maker == MAKER_KIND || maker == MAKER_FUNCTION) {
        part_u32(p, &domain);
        part_text(p, &c->made.function);
        part_text(p, &c->made.text);
        p->has_failed |= !c->made.function || domain > UINT8_MAX;
    }
    p->has_failed |= maker > MAKER_NONE || c->table >= TABLE_COUNT || !c->name;
    c->made.maker = (enum kernel_maker)maker;
    c->made.domain = (uint8_t)domain;
    part_number(p, &c->sums.count);
    part_number(p, &c->sums.total_ns);
    part_number(p, &c->sums.min_ns);
    part_number(p, &c->sums.max_ns);
    part_number(p, &c->sums.bytes);
    part_histogram(p, &c->sums.durations, rows_left);
}

/* Not rows of a device, which are made of `devices`, nor those that others have. */
static bool is_carried(const struct gpu_stat *row)
{
    return row->table < TABLE_COUNT && row->table != TABLE_DEVICES && row->table != TABLE_MEMORY;
}

static void put_rows(struct gpu_report *g, struct part *p, const struct library_report *libraries)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->stats.count; i++)
        count += is_carried(&g->stats.rows[i]);
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < g->stats.count; i++) {
        const struct gpu_stat *row = &g->stats.rows[i];
        struct carried c = {.table = row->table,
                            .name = row->name,
                            .raw = row->kernel ? row->kernel->raw : NULL,
                            .domain = row->domain,
                            .sums = *row};
        if (libraries)
            c.made = library_report_made(libraries, row->kernel);
        if (is_carried(row))
            carry_row(p, &c, NULL);
    }
}

/* ---- adding up ------------------------------------------------------------------------------- */

static int text_key(struct gpu_report *g, const char *text, uint64_t *key)
{
    const struct kernel_name *found = NULL;
    int error =
        text ? kernel_name_intern(&g->walk->texts, (const uint8_t *)text, strlen(text) + 1, &found)
             : 0;
    *key = (uintptr_t)found;
    return error;
}

/* The same where ranges are in groups, which only all of them together are. */
static struct gpu_stat *range_row_of(struct gpu_report *g, const struct carried *c)
{
    struct kernel_names *texts = &g->walk->texts;
    const struct kernel_name *text = NULL, *domain = NULL;
    const uint8_t *name = (const uint8_t *)c->name, *of = (const uint8_t *)c->domain;
    if (kernel_name_intern(texts, name, strlen(c->name), &text) < 0 ||
        (of && kernel_name_intern(texts, of, strlen(c->domain), &domain) < 0))
        return NULL;
    return range_rows_get(&g->ranges, (enum gpu_table)c->table, text, domain);
}

/* The row of that name; NULL: no memory. */
static struct gpu_stat *row_of(struct gpu_report *g, const struct carried *c)
{
    struct key key;
    if (g->ranges.texts && (c->table == TABLE_RANGES || c->table == TABLE_PROJECTIONS))
        return range_row_of(g, c);
    if (text_key(g, c->name, &key.a) < 0 || text_key(g, c->raw, &key.b) < 0 ||
        text_key(g, c->domain, &key.c) < 0)
        return NULL;
    struct gpu_stat *row = gpu_stats_row(&g->stats, (enum gpu_table)c->table, key, c->name);
    if (row && !row->count)
        row->domain = c->domain;
    return row;
}

/* As library_report.c makes it of several shapes and functions. */
static void join_made(struct kernel_made *to, const struct kernel_made *from)
{
    bool both = to->function && from->function;
    bool is_same = both && to->domain == from->domain && strcmp(to->function, from->function) == 0;
    bool is_text = is_same && (to->text && from->text ? strcmp(to->text, from->text) == 0
                                                      : to->text == from->text);
    if (both && !is_same && from->maker < MAKER_SEVERAL && to->maker < MAKER_SEVERAL)
        to->maker = MAKER_SEVERAL;
    else if (both && !is_text && from->maker == MAKER_KIND && to->maker == MAKER_KIND)
        to->maker = MAKER_FUNCTION;
    else if (from->maker > to->maker)
        *to = *from;
}

static int add_row(struct gpu_report *g, struct part *p)
{
    struct carried c = {0};
    carry_row(p, &c, g->stats.histogram_rows);
    struct gpu_stat *row = p->has_failed ? NULL : row_of(g, &c);
    if (!row) {
        histogram_release(&c.sums.durations);
        return p->has_failed ? 0 : GPUPROF_NO_MEMORY;
    }
    join_made(&row->made, &c.made);
    c.sums.table = row->table;
    gpu_stats_join(row, &c.sums);
    return 0;
}

/* ---- devices ----------------------------------------------------------------------------------
 */

static void carry_use(struct part *p, struct device_use *use, uint32_t *process)
{
    part_u32(p, process);
    part_number(p, &use->device);
    part_number(p, &use->begin_ns);
    part_number(p, &use->end_ns);
    part_number(p, &use->busy.total_ns);
    part_number(p, &use->kernels.total_ns);
    part_number(p, &use->copies.total_ns);
}

static void carry_peak(struct part *p, struct device_peak *peak, uint32_t *process)
{
    part_u32(p, process);
    part_number(p, &peak->device);
    part_number(p, &peak->allocated);
    part_number(p, &peak->reserved);
}

void gpu_report_put(struct gpu_report *g, struct part *p, const struct library_report *libraries)
{
    put_rows(g, p, libraries);
    part_count(p, &g->device_count, DEVICE_BYTES);
    for (uint32_t i = 0; i < g->device_count; i++)
        carry_use(p, &g->devices[i], &g->devices[i].process->index);
    part_count(p, &g->peak_count, PEAK_BYTES);
    for (uint32_t i = 0; i < g->peak_count; i++)
        carry_peak(p, &g->peaks[i], &g->peaks[i].process->index);
}

static int add_devices(struct gpu_report *g, struct part *p, struct process *const *processes,
                       uint32_t process_count)
{
    uint32_t uses = 0, process = 0;
    part_count(p, &uses, DEVICE_BYTES);
    for (uint32_t i = 0; i < uses && !p->has_failed; i++) {
        struct device_use use = {0};
        carry_use(p, &use, &process);
        p->has_failed |= process >= process_count;
        if (p->has_failed)
            return 0;
        struct device_use *list =
            array_room(g->devices, g->device_count, &g->device_capacity, sizeof *list, 8);
        if (!list)
            return GPUPROF_NO_MEMORY;
        g->devices = list;
        use.process = processes[process];
        list[g->device_count++] = use;
    }
    return 0;
}

static int add_peaks(struct gpu_report *g, struct part *p, struct process *const *processes,
                     uint32_t process_count)
{
    uint32_t peaks = 0, process = 0;
    part_count(p, &peaks, PEAK_BYTES);
    for (uint32_t i = 0; i < peaks && !p->has_failed; i++) {
        struct device_peak peak = {0};
        carry_peak(p, &peak, &process);
        p->has_failed |= process >= process_count;
        if (p->has_failed)
            return 0;
        struct device_peak *list =
            array_room(g->peaks, g->peak_count, &g->peak_capacity, sizeof *list, 8);
        if (!list)
            return GPUPROF_NO_MEMORY;
        g->peaks = list;
        peak.process = processes[process];
        list[g->peak_count++] = peak;
    }
    return 0;
}

int gpu_report_add(struct gpu_report *g, struct part *p, struct process *const *processes,
                   uint32_t process_count)
{
    uint32_t count = 0;
    int error = 0;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_row(g, p);
    if (error == 0)
        error = add_devices(g, p, processes, process_count);
    return error < 0 ? error : add_peaks(g, p, processes, process_count);
}

int gpu_report_add_end(struct gpu_report *g)
{
    return gpu_report_complete(g);
}
