/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of operators, and what is known of them only behind the walk: names, sizes, FLOPs
 * (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/op_report.h"
#include "analyse/range_rows.h"
#include "base/array.h"
#include "error.h"

int64_t op_row_place(struct op_report *o, struct key key, const struct op_row *made)
{
    uint64_t place = key_map_get(&o->row_places, key);
    if (place)
        return (int64_t)place - 1;
    struct op_row *rows = array_room(o->rows, o->count, &o->capacity, sizeof *rows, 64);
    if (!rows)
        return GPUPROF_NO_MEMORY;
    o->rows = rows;
    rows[o->count] = *made;
    rows[o->count].number = o->count + 1;
    if (key_map_set(&o->row_places, key, ++o->count) < 0)
        return GPUPROF_NO_MEMORY; /* there are fewer rows than a map has room for */
    return o->count - 1;
}

/* ---- FLOPs ----------------------------------------------------------------------------------- */

/* Of `calls` calls with so many each. What does not fit is not known. */
static void add_flops(struct op_sum *sum, uint64_t calls, bool is_known, uint64_t flops)
{
    sum->calls += calls;
    if (!is_known || __builtin_mul_overflow(calls, flops, &flops) ||
        __builtin_add_overflow(sum->flops, flops, &flops))
        return;
    sum->flops = flops;
    sum->known += calls;
}

/* FLOPs in the time of the GPU: of calls, and of replays of those that were captured. */
static void rate(struct op_report *o, struct op_row *row, const struct op_entry *entry,
                 const struct op_flops *flops)
{
    bool is_product = flops->is_counted && !entry->is_covered;
    uint64_t each = is_product ? flops->counter : flops->profiler, all;
    uint64_t own = entry->calls > entry->captured ? entry->calls - entry->captured : 0;
    if ((!is_product && !flops->is_profiled) || !entry->gpu_ns ||
        __builtin_mul_overflow(own + entry->replays, each, &all) ||
        __builtin_add_overflow(row->rate_flops, all, &all))
        return;
    const struct surveyed_device *device =
        is_product && !entry->is_mixed
            ? survey_device(&o->walk->survey, row->process, entry->device)
            : NULL;
    uint32_t peak = device ? device_peak(device->name, flops->type) : 0;
    row->is_rated = true;
    row->has_no_peak |= !peak;
    row->rate_flops = all;
    row->rate_ns += entry->gpu_ns;
    row->peak_flops += (unsigned __int128)peak * entry->gpu_ns;
}

/* An operator that only hands on to itself (aten::mul with a number) is one in key_averages(). */
static void find_flops(struct op_report *o, const struct op_entry *entry)
{
    struct op_row *row = &o->rows[entry->row];
    const struct kernel_name *inputs =
        entry->inputs ? walk_op_inputs(o->walk, row->process, entry->inputs) : NULL;
    struct op_flops flops = {0};
    if (inputs)
        flops = op_flops_of(entry->formula, inputs->raw, inputs->raw_bytes);
    if (op_formula_is_profiled(entry->formula))
        add_flops(&row->profiler, entry->calls > entry->twins ? entry->calls - entry->twins : 0,
                  flops.is_profiled, flops.profiler);
    if (op_formula_is_counted(entry->formula) && !entry->is_covered) {
        add_flops(&row->counter, entry->calls, flops.is_counted, flops.counter);
        for (uint32_t m = entry->backward_of; m; m = o->entries[m - 1].module)
            add_flops(&o->rows[o->entries[m - 1].row].backward, entry->calls, flops.is_counted,
                      flops.counter);
        for (uint32_t m = entry->module; m; m = o->entries[m - 1].module)
            add_flops(&o->rows[o->entries[m - 1].row].counter, entry->calls, flops.is_counted,
                      flops.counter);
    }
    if (flops.is_profiled || flops.is_counted) {
        o->has_flops = true;
        o->flops_ns += entry->found_ns;
        rate(o, row, entry, &flops);
    }
}

/* Of a module: its own time, and for those around it, too, what its backward operators took. */
static void find_times(struct op_report *o, const struct op_entry *entry)
{
    o->rows[entry->row].self_ns += entry->ns > entry->inner_ns ? entry->ns - entry->inner_ns : 0;
    for (const struct op_entry *m = entry; entry->backward_ns || entry->backward_gpu_ns;) {
        o->rows[m->row].backward_ns += entry->backward_ns;
        o->rows[m->row].backward_gpu_ns += entry->backward_gpu_ns;
        if (!m->module)
            break;
        m = &o->entries[m->module - 1];
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_dims(struct op_report *o, struct op_row *row)
{
    const struct kernel_name *inputs =
        row->inputs ? walk_op_inputs(o->walk, row->process, row->inputs) : NULL;
    if (!inputs)
        return 0;
    char *text = malloc(OP_TEXT_BYTES(inputs->raw_bytes));
    if (!text)
        return GPUPROF_NO_MEMORY;
    size_t length = (size_t)(op_put_dims(text, inputs->raw, inputs->raw_bytes) - text);
    int error = kernel_name_intern(&o->walk->texts, (const uint8_t *)text, length, &row->dims);
    free(text);
    return error;
}

/* Names that stood behind their first use. */
static void find_texts(const struct op_report *o, struct op_row *row)
{
    if (!row->process)
        return;
    const struct kernel_handles *names = &o->walk->names[row->process->index].ops.names;
    if (!row->text && row->name)
        row->text = kernel_name_of(names, row->name);
    if (!row->range && row->range_name)
        row->range = kernel_name_of(names, row->range_name);
}

static int group_labels(struct op_report *o)
{
    const struct kernel_name **names = calloc(o->count + 1u, sizeof *names);
    if (!names)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < o->count; i++) {
        find_texts(o, &o->rows[i]);
        names[i] = o->rows[i].kind == OP_ROW_LABEL ? o->rows[i].text : NULL;
    }
    int64_t grouped = range_names_group(&o->walk->texts, names, o->count);
    for (uint32_t i = 0; grouped > 0 && i < o->count; i++)
        o->rows[i].text = names[i] ? names[i] : o->rows[i].text;
    o->has_groups = grouped > 0;
    free(names);
    return grouped < 0 ? (int)grouped : 0;
}

static void add_sum(struct op_sum *into, const struct op_sum *sum)
{
    uint64_t flops;
    into->calls += sum->calls;
    if (__builtin_add_overflow(into->flops, sum->flops, &flops))
        return;
    into->flops = flops;
    into->known += sum->known;
}

static void add_row(struct op_row *into, const struct op_row *row)
{
    into->calls += row->calls;
    into->total_ns += row->total_ns;
    into->self_ns += row->self_ns;
    into->gpu_ns += row->gpu_ns;
    into->gpu_self_ns += row->gpu_self_ns;
    into->graph_ns += row->graph_ns;
    into->backward_ns += row->backward_ns;
    into->backward_gpu_ns += row->backward_gpu_ns;
    add_sum(&into->profiler, &row->profiler);
    add_sum(&into->counter, &row->counter);
    add_sum(&into->backward, &row->backward);
    into->is_rated |= row->is_rated;
    into->has_no_peak |= row->has_no_peak;
    into->rate_flops += row->rate_flops;
    into->rate_ns += row->rate_ns;
    into->peak_flops += row->peak_flops;
}

static struct key text_key(const struct op_row *row)
{
    uint64_t process = row->process ? row->process->index : 0;
    struct key key = {process << 4 | (uint64_t)row->is_others << 3 | row->kind, row->name, 0};
    if (row->text)
        key = (struct key){UINT64_MAX - row->kind, (uintptr_t)row->text, 0};
    /* Rows are by one of these at most. */
    key.c = row->dims ? (uintptr_t)row->dims : row->parent ? row->parent : (uintptr_t)row->range;
    return key;
}

/* What is around a row is told by names alone: the first row of one stands for a label, too, that
 * is called as an operator is. */
static int64_t outer_of(struct op_report *o, const struct op_row *row, uint32_t number)
{
    struct key key = text_key(row);
    key.a = row->text ? UINT64_MAX - OP_ROW_KINDS : key.a | OP_ROW_KINDS;
    uint64_t first = key_map_get(&o->row_places, key);
    int error = first ? 0 : key_map_set(&o->row_places, key, number);
    return error < 0 ? error : first ? (int64_t)first : number;
}

/* A name or a set of sizes has many numbers: one in each process, and others with other types. What
 * is around a row has been joined before it. `joined` has the new number of each old one. */
static int join_rows(struct op_report *o, uint32_t *joined)
{
    uint32_t count = o->count;
    key_map_release(&o->row_places);
    o->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct op_row row = o->rows[i];
        row.parent = row.parent ? joined[row.parent - 1] : 0;
        find_texts(o, &row);
        int error = find_dims(o, &row);
        uint32_t before = o->count;
        int64_t place = error < 0 ? error : op_row_place(o, text_key(&row), &row);
        if (place < 0)
            return (int)place;
        if (o->count == before) /* it is not new */
            add_row(&o->rows[place], &row);
        int64_t outer = outer_of(o, &row, (uint32_t)place + 1);
        if (outer < 0)
            return (int)outer;
        joined[i] = (uint32_t)outer;
    }
    return 0;
}

static int compare_texts(const struct kernel_name *a, const struct kernel_name *b)
{
    return strcmp(a ? a->shown : "", b ? b->shown : "");
}

/* Began, and its end is missing: it is nothing but what others are inside of. */
static bool is_empty(const struct op_row *row)
{
    return !row->calls && !row->gpu_ns && row->kind != OP_ROW_NONE;
}

static int table_of(const struct op_row *row)
{
    return row->kind >= OP_ROW_MODULE ? (int)row->kind : row->kind == OP_ROW_LABEL;
}

static uint64_t module_gpu_ns(const struct op_row *row)
{
    return row->gpu_ns + row->backward_gpu_ns;
}

static int compare_rows(const void *left, const void *right)
{
    const struct op_row *a = left;
    const struct op_row *b = right;
    if (is_empty(a) != is_empty(b))
        return is_empty(a) ? 1 : -1;
    if (table_of(a) != table_of(b))
        return table_of(a) - table_of(b);
    if (a->kind == OP_ROW_MODULE && module_gpu_ns(a) != module_gpu_ns(b))
        return module_gpu_ns(a) > module_gpu_ns(b) ? -1 : 1;
    if (a->kind == OP_ROW_HOOK && a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    if (a->gpu_self_ns != b->gpu_self_ns)
        return a->gpu_self_ns > b->gpu_self_ns ? -1 : 1;
    if (a->self_ns != b->self_ns)
        return a->self_ns > b->self_ns ? -1 : 1;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    int order = compare_texts(a->text, b->text);
    order = order ? order : compare_texts(a->dims, b->dims);
    order = order ? order : compare_texts(a->range, b->range);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int sort_rows(struct op_report *o)
{
    o->places = calloc(o->count + 1u, sizeof *o->places);
    if (!o->places)
        return GPUPROF_NO_MEMORY;
    if (o->count)
        qsort(o->rows, o->count, sizeof *o->rows, compare_rows);
    for (uint32_t i = 0; i < o->count; i++)
        o->places[o->rows[i].number - 1] = i;
    while (o->count && is_empty(&o->rows[o->count - 1]))
        o->count--;
    return 0;
}

int op_report_complete(struct op_report *o)
{
    for (uint32_t i = 0; i < o->entry_count; i++)
        if (o->entries[i].formula && o->entries[i].calls)
            find_flops(o, &o->entries[i]);
    for (uint32_t i = 0; i < o->entry_count; i++)
        find_times(o, &o->entries[i]);
    uint32_t *joined = calloc(o->count + 1u, sizeof *joined);
    int64_t error = !joined ? GPUPROF_NO_MEMORY : o->groups ? group_labels(o) : 0;
    if (error == 0)
        error = join_rows(o, joined);
    free(joined);
    struct op_row none = {
        .kind = OP_ROW_NONE, .gpu_ns = o->gpu_none_ns, .gpu_self_ns = o->gpu_none_ns};
    o->has_rows |= o->count != 0;
    if (error == 0 && o->has_rows && o->gpu_none_ns)
        error = op_row_place(o, (struct key){UINT64_MAX, UINT64_MAX, UINT64_MAX}, &none);
    if (error < 0)
        return (int)error;
    for (uint32_t i = 0; i < o->count; i++)
        o->self_ns += o->rows[i].kind == OP_ROW_OPERATOR ? o->rows[i].self_ns : 0;
    return sort_rows(o);
}
