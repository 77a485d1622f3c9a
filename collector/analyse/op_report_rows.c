/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of operators, and their names, sizes and FLOPs, which are known only after the walk
 * (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/op_report.h"
#include "analyse/range_rows.h"
#include "base/array.h"
#include "base/text.h"
#include "error.h"
#include "resolve/op_stack.h"

/* ---- FLOPs ----------------------------------------------------------------------------------- */

/* Adds `calls` calls of `flops` each to a FLOPs sum such as OP_PROFILER. On overflow they count as
 * unknown. */
static void add_flops(uint64_t *sum, uint64_t calls, bool is_known, uint64_t flops)
{
    sum[2] += calls;
    if (!is_known || __builtin_mul_overflow(calls, flops, &flops) ||
        __builtin_add_overflow(sum[0], flops, &flops))
        return;
    sum[0] = flops;
    sum[1] += calls;
}

/* Adds the FLOPs and GPU time of calls, and of replays of captured ones. */
static void rate(struct op_report *o, struct op_row *row, const struct op_entry *entry,
                 const struct op_flops *flops)
{
    bool is_product = flops->is_counted && !entry->is.is_covered;
    uint64_t each = is_product ? flops->counter : flops->profiler, all;
    uint64_t own = entry->calls > entry->captured ? entry->calls - entry->captured : 0;
    if ((!is_product && !flops->is_profiled) || !entry->gpu_ns ||
        __builtin_mul_overflow(own + entry->replays, each, &all) ||
        __builtin_add_overflow(row->values[OP_RATE_FLOPS], all, &all))
        return;
    const struct surveyed_device *device =
        is_product ? survey_device(&o->walk->survey, row->process, entry->device) : NULL;
    uint32_t peak = device ? device_peak(device->name, flops->type) : 0;
    row->values[OP_NO_PEAK] |= !peak;
    row->values[OP_RATE_FLOPS] = all;
    row->values[OP_RATE_NS] += entry->gpu_ns;
    row->values[OP_PEAK] += peak * (entry->gpu_ns / 1000);
}

/* Adds to `module` and to all modules around it. */
static void add_to_modules(struct op_report *o, uint32_t module, unsigned measure, uint64_t calls,
                           const struct op_flops *flops)
{
    for (; module; module = o->entries[module - 1].is.module)
        add_flops(&o->rows[o->entries[module - 1].is.row].values[measure], calls, flops->is_counted,
                  flops->counter);
}

/* Adds the FLOPs of an entry. key_averages() counts an operator that only calls itself (aten::mul
 * with a number) once. */
static void find_flops(struct op_report *o, const struct op_entry *entry)
{
    const struct op_class *is = &entry->is;
    struct op_row *row = &o->rows[is->row];
    const struct kernel_name *inputs =
        is->inputs ? walk_op_inputs(o->walk, row->process, is->inputs) : NULL;
    struct op_flops flops = {0};
    if (inputs)
        flops = op_flops_of(is->formula, inputs->raw, inputs->raw_bytes);
    if (is->formula->profiler)
        add_flops(&row->values[OP_PROFILER],
                  entry->calls > entry->duplicates ? entry->calls - entry->duplicates : 0,
                  flops.is_profiled, flops.profiler);
    if (is->formula->counter && !is->is_covered) {
        add_flops(&row->values[OP_COUNTER], entry->calls, flops.is_counted, flops.counter);
        add_to_modules(o, is->backward_of, OP_BACKWARD_FLOPS, entry->calls, &flops);
        add_to_modules(o, is->module, OP_COUNTER, entry->calls, &flops);
    }
    if (flops.is_profiled || flops.is_counted) {
        row->values[OP_FLOPS_NS] += entry->found_ns;
        rate(o, row, entry, &flops);
    }
}

/* Adds a module's own time, and the time of its backward operators to it and to all around it. */
static void find_times(struct op_report *o, const struct op_entry *entry)
{
    o->rows[entry->is.row].values[OP_SELF] +=
        entry->ns > entry->inner_ns ? entry->ns - entry->inner_ns : 0;
    for (const struct op_entry *m = entry; entry->backward_ns || entry->backward_gpu_ns;) {
        o->rows[m->is.row].values[OP_BACKWARD] += entry->backward_ns;
        o->rows[m->is.row].values[OP_BACKWARD_GPU] += entry->backward_gpu_ns;
        if (!m->is.module)
            break;
        m = &o->entries[m->is.module - 1];
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_dims(struct op_report *o, const struct op_row *row, const struct kernel_name **dims)
{
    const struct kernel_name *inputs =
        row->inputs ? walk_op_inputs(o->walk, row->process, row->inputs) : NULL;
    if (!inputs)
        return 0;
    char *text = malloc(OP_TEXT_BYTES(inputs->raw_bytes));
    if (!text)
        return GPUPROF_NO_MEMORY;
    size_t length = (size_t)(op_put_dims(text, inputs->raw, inputs->raw_bytes) - text);
    int error = kernel_name_intern(&o->walk->texts, (const uint8_t *)text, length, dims);
    free(text);
    return error;
}

static int group_labels(struct op_report *o)
{
    const struct kernel_name **names = calloc(o->count + 1u, sizeof *names);
    if (!names)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < o->count; i++)
        names[i] = o->rows[i].table == OP_LABELS ? o->rows[i].text : NULL;
    int64_t grouped = range_names_group(&o->walk->texts, names, NULL, o->count);
    for (uint32_t i = 0; grouped > 0 && i < o->count; i++)
        if (names[i] && names[i] != o->rows[i].text) {
            o->rows[i].text = names[i];
            o->rows[i].values[OP_MARK] = 1;
        }
    free(names);
    return grouped < 0 ? (int)grouped : 0;
}

/* Sets a row's name, and a module's class; --by=stack shows a hook's full name around others. */
static int op_report_rows_name_row(struct op_report *o, struct op_row *row,
                                   const struct kernel_name **name, const struct kernel_name **more)
{
    struct kernel_names *names = &o->sums[row->table].texts;
    const char *text = !row->process ? "(others)" : row->text ? row->text->raw : "(not named)";
    const char *path = row->table == OP_MODULES && row->text ? strchr(text, ' ') : NULL;
    int error = 0;
    *name = row->text;
    if (row->text && row->table <= OP_LABELS)
        return 0;
    if (row->text && row->table == OP_HOOKS)
        text = op_hook_name(row->text);
    if (path)
        error = kernel_name_intern(names, (const uint8_t *)text, (size_t)(path - text), more);
    text = path ? path + 1 : text;
    if (error == 0)
        error = kernel_name_intern(names, (const uint8_t *)text, strlen(text), name);
    row->text = row->text ? row->text : *name;
    return error;
}

/* Merges rows with equal names and surroundings: the first such row represents them. Outer rows
 * come earlier, so they are already merged. */
static int find_outer(struct op_report *o, uint32_t place, struct key_map *firsts)
{
    struct op_row *row = &o->rows[place];
    row->parent = row->parent ? o->rows[row->parent - 1].first : 0;
    struct key key = {(uintptr_t)row->text, row->parent, 0};
    row->first = (uint32_t)key_map_get(firsts, key);
    if (row->first)
        return 0;
    row->first = place + 1;
    return key_map_set(firsts, key, row->first);
}

/* A name or a set of sizes has several numbers: one in each process, and more with other types. */
static int join_rows(struct op_report *o)
{
    struct key_map firsts = {0};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < o->count; i++) {
        struct op_row *row = &o->rows[i];
        uint64_t *values = row->values;
        const struct kernel_name *name, *more = row->range;
        error = find_dims(o, row, &more);
        error = error < 0 ? error : op_report_rows_name_row(o, row, &name, &more);
        if (error == 0 && o->by == BY_STACK)
            error = find_outer(o, i, &firsts);
        if (error < 0)
            break;
        values[OP_SEEN] = values[OP_CALLS] || values[OP_GPU];
        values[OP_GPU_BOTH] = values[OP_GPU] + values[OP_BACKWARD_GPU];
        error = sums_row_add(&o->sums[row->table],
                             (struct key){sums_name_key(name), sums_name_key(more), row->parent},
                             values);
    }
    key_map_release(&firsts);
    return error;
}

/* ---- GPU time under no operator -------------------------------------------------------------- */

int op_report_add_none(struct op_report *o, uint64_t why, const struct kernel_name *what,
                       uint64_t count, uint64_t ns)
{
    /* The prefix of kernels from PyTorch's compiler, and of others that imitate it. */
    if (what && strncmp(what->raw, "triton_", 7) == 0)
        why = NONE_COMPILED;
    what = why == NONE_COMPILED ? what : NULL;
    struct sums_row *row = sums_row(&o->sums[OP_UNDER_NONE], why, sums_name_key(what), 0);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->values[NONE_COUNT] += count;
    row->values[NONE_NS] += ns;
    return 0;
}

const struct none_words none_words[NONE_CAUSES] = {
    [NONE_COMPILED] = {"compiled", "compiled code", "compiled code"},
    [NONE_GRAPH] = {"graph", "replays of graphs captured in no operator", "replays of graphs"},
    [NONE_THREAD] = {"thread", "calls of threads without operators", "threads without operators"},
    [NONE_CALL] = {"call", "work whose call is not known", "calls not known"},
    [NONE_BETWEEN] = {"between", "calls between operators", "between operators"}};

/* Names a row. Only now is it known which threads have operators. */
static int name_none(struct sums *s, struct sums_row *row, void *context)
{
    static const char *const graphs[GRAPH_ORIGINS] = {
        [GRAPH_WHOLE] = "replays of graphs, recorded as a whole",
        [GRAPH_UNSEEN] = "replays of graphs whose capture was not recorded",
        [GRAPH_DIFFERENT] = "replays of graphs with other nodes than were captured"};
    const struct op_report *o = context;
    const char *what = sums_shown(row->keys[NONE_WHAT]);
    uint64_t thread = row->keys[NONE_WHY] >> 32;
    enum none_cause cause = (enum none_cause)(row->keys[NONE_WHY] & 0xff);
    if (thread && !o->has_ops[thread - 1])
        cause = NONE_THREAD;
    const char *graph = cause == NONE_GRAPH ? graphs[row->keys[NONE_WHY] >> 8] : NULL;
    char *text = text_printf("%s%s%s", graph ? graph : none_words[cause].row, what ? ": " : "",
                             what ? what : "");
    if (!text)
        return GPUPROF_NO_MEMORY;
    struct key key = {sums_text(s, text), sums_text(s, none_words[cause].word), 0};
    free(text);
    return sums_row_add(s, key, row->values);
}

/* Adds the total without an operator as a row of the operators. */
static int add_none(struct op_report *o)
{
    const struct sums *none = &o->sums[OP_UNDER_NONE];
    uint64_t values[OP_VALUES] = {[OP_CALLS] = o->count, [OP_MARK] = 1};
    struct sums *sums = &o->sums[OP_OPERATORS];
    for (uint32_t i = 0; i < none->count; i++)
        values[OP_GPU] += none->rows[i].values[NONE_NS];
    values[OP_GPU_SELF] = values[OP_GPU];
    return sums_row_add(sums, (struct key){sums_text(sums, "(under no operator)"), 0, 0}, values);
}

int op_report_complete(struct op_report *o)
{
    struct sums *none = &o->sums[OP_UNDER_NONE];
    o->has_more =
        o->count >= o->rows_max || o->entry_count >= o->rows_max || none->count >= none->rows_max;
    for (uint32_t i = 0; i < o->entry_count; i++)
        if (o->entries[i].is.formula && o->entries[i].calls)
            find_flops(o, &o->entries[i]);
    for (uint32_t i = 0; i < o->entry_count; i++)
        find_times(o, &o->entries[i]);
    free(o->entries); /* room for the tables */
    o->entries = NULL;
    number_set_release(&o->entry_numbers);
    int error = o->sums->groups ? group_labels(o) : 0;
    error = error < 0 ? error : join_rows(o);
    error = error < 0 ? error : sums_remake(none, name_none, o);
    return error < 0 ? error : add_none(o);
}
