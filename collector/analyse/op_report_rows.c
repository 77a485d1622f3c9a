/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of operators, and their names, sizes and FLOPs, which are known only after the walk
 * (op_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/op_report.h"
#include "analyse/range_rows.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "resolve/op_names.h"

/* ---- FLOPs ----------------------------------------------------------------------------------- */

void op_report_add_flops(uint64_t *sum, const uint64_t *from)
{
    uint64_t flops;
    sum[2] += from[2];
    if (__builtin_add_overflow(sum[0], from[0], &flops))
        return;
    sum[0] = flops;
    sum[1] += from[1];
}

/* Sets a FLOPs sum to `calls` calls of `flops` each, which are unknown on overflow. */
static void set_flops(uint64_t *sum, uint64_t calls, bool is_known, uint64_t flops)
{
    sum[2] = calls;
    is_known = is_known && !__builtin_mul_overflow(calls, flops, &flops);
    sum[1] = is_known ? calls : 0;
    sum[0] = is_known ? flops : 0;
}

/* Finds the FLOPs and GPU time of calls, and of replays of captured ones. */
static void rate(struct op_report *o, struct op_entry *entry, const struct op_flops *flops)
{
    bool is_product = flops->is_counted && !entry->is.is_covered;
    uint64_t *v = entry->values, each = is_product ? flops->counter : flops->profiler, all;
    uint64_t own = v[OP_CALLS] > entry->captured ? v[OP_CALLS] - entry->captured : 0;
    if ((!is_product && !flops->is_profiled) || !v[OP_GPU] ||
        __builtin_mul_overflow(own + entry->replays, each, &all))
        return;
    const struct surveyed_device *device =
        is_product ? survey_device(&o->walk->survey, entry->is.process, entry->device) : NULL;
    uint32_t peak = device ? device_peak(device->name, flops->type) : 0;
    v[OP_NO_PEAK] = !peak;
    v[OP_RATE_FLOPS] = all;
    v[OP_RATE_NS] = v[OP_GPU];
    v[OP_PEAK] = peak * (v[OP_GPU] / 1000);
}

/* Finds the FLOPs of an entry. key_averages() counts an operator that only calls itself (aten::mul
 * with a number) once. */
static void find_flops(struct op_report *o, struct op_entry *entry)
{
    const struct op_class *is = &entry->is;
    uint64_t *v = entry->values, calls = v[OP_CALLS];
    const struct kernel_name *inputs =
        is->inputs ? walk_op_inputs(o->walk, is->process, is->inputs) : NULL;
    struct op_flops flops = {0};
    if (inputs)
        flops = op_flops_of(is->formula, inputs->raw, inputs->raw_bytes);
    if (is->formula->profiler)
        set_flops(&v[OP_PROFILER], calls > entry->duplicates ? calls - entry->duplicates : 0,
                  flops.is_profiled, flops.profiler);
    if (is->formula->counter && !is->is_covered)
        set_flops(&v[OP_COUNTER], calls, flops.is_counted, flops.counter);
    if (flops.is_profiled || flops.is_counted) {
        v[OP_FLOPS_NS] = entry->found_ns;
        rate(o, entry, &flops);
    }
}

/* Adds what an entry has to those that its key names, once it has all of its own. */
static void join_around(struct op_report *o, struct op_entry *entry)
{
    const struct op_class *is = &entry->is;
    struct op_entry *outer = is->module ? &o->entries[is->module - 1] : NULL;
    struct op_entry *of = is->backward_of ? &o->entries[is->backward_of - 1] : NULL;
    uint64_t *v = entry->values;
    if (is->table == OP_MODULES || is->table == OP_HOOKS)
        v[OP_SELF] = v[OP_TOTAL] > entry->inner_ns ? v[OP_TOTAL] - entry->inner_ns : 0;
    if (outer) {
        op_report_add_flops(&outer->values[OP_COUNTER], &v[OP_COUNTER]);
        op_report_add_flops(&outer->values[OP_BACKWARD_FLOPS], &v[OP_BACKWARD_FLOPS]);
    }
    if (outer && is->table == outer->is.table) {
        outer->inner_ns += v[OP_TOTAL];
        outer->values[OP_BACKWARD] += v[OP_BACKWARD];
        outer->values[OP_BACKWARD_GPU] += v[OP_BACKWARD_GPU];
    }
    if (of) {
        op_report_add_flops(&of->values[OP_BACKWARD_FLOPS], &v[OP_COUNTER]);
        of->values[OP_BACKWARD] += is->is_backward ? v[OP_TOTAL] : 0;
    }
    if (is->forward) {
        o->entries[is->forward - 1].values[OP_BACKWARD] += v[OP_TOTAL];
        o->entries[is->forward - 1].values[OP_BACKWARD_GPU] += v[OP_GPU];
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct kernel_name *dims_of(struct op_report *o, const struct op_class *is)
{
    const struct kernel_name *inputs =
        is->inputs && o->by == BY_SHAPE ? walk_op_inputs(o->walk, is->process, is->inputs) : NULL;
    if (!inputs)
        return NULL;
    char *text = memory_new(OP_TEXT_BYTES(inputs->raw_bytes), 1);
    size_t length = (size_t)(op_put(text, inputs->raw, inputs->raw_bytes, op_put_dims) - text);
    const struct kernel_name *dims = kernel_name_intern(&o->walk->texts, text, length);
    free(text);
    return dims;
}

static void group_labels(struct op_report *o)
{
    const struct kernel_name **names = memory_new(o->count + 1u, sizeof *names);
    for (uint32_t i = 0; i < o->count; i++)
        names[i] = o->entries[i].is.table == OP_LABELS ? o->entries[i].is.text : NULL;
    range_names_group(&o->walk->texts, names, NULL, o->count);
    for (uint32_t i = 0; i < o->count; i++)
        if (names[i] && names[i] != o->entries[i].is.text) {
            o->entries[i].is.text = names[i];
            o->entries[i].values[OP_MARK] = 1;
        }
    free(names);
}

/* Returns a row's name, and sets *more to a module's class; --by=stack shows a hook's full name
 * around others. */
static const struct kernel_name *name_entry(struct op_report *o, struct op_class *is,
                                            const struct kernel_name **more)
{
    struct kernel_names *names = &o->sums[is->table].texts;
    const char *text = !is->process ? "(others)" : is->text ? is->text->raw : "(not named)";
    const char *path = is->table == OP_MODULES && is->text ? strchr(text, ' ') : NULL;
    if (is->text && is->table <= OP_LABELS)
        return is->text;
    if (is->text && is->table == OP_HOOKS)
        text = op_hook_name(is->text);
    if (path)
        *more = kernel_name_intern(names, text, (size_t)(path - text));
    text = path ? path + 1 : text;
    const struct kernel_name *name = kernel_name_intern(names, text, strlen(text));
    is->text = is->text ? is->text : name;
    return name;
}

/* Finds the first entry with equal names here and around: it represents them. Outer entries come
 * earlier, so theirs are known. */
static void find_outer(struct op_report *o, uint32_t place, struct key_map *firsts)
{
    struct op_entry *entry = &o->entries[place];
    struct op_class *is = &entry->is;
    is->parent = is->parent ? o->entries[is->parent - 1].first : 0;
    struct key key = {(uintptr_t)is->text, is->parent, 0};
    entry->first = (uint32_t)key_map_get(firsts, key);
    if (!entry->first)
        key_map_set(firsts, key, entry->first = place + 1);
}

/* A name or a set of sizes has several numbers: one in each process, and more with other types. */
static void add_rows(struct op_report *o)
{
    struct key_map firsts = {0};
    for (uint32_t i = 0; i < o->count; i++) {
        struct op_class *is = &o->entries[i].is;
        uint64_t *values = o->entries[i].values;
        const struct kernel_name *more = dims_of(o, is) ?: is->range;
        const struct kernel_name *name = name_entry(o, is, &more);
        if (o->by == BY_STACK)
            find_outer(o, i, &firsts);
        values[OP_SEEN] = values[OP_CALLS] || values[OP_GPU];
        values[OP_GPU_BOTH] = values[OP_GPU] + values[OP_BACKWARD_GPU];
        sums_row_add(&o->sums[is->table],
                     (struct key){sums_name_key(name), sums_name_key(more), is->parent}, values);
    }
    key_map_release(&firsts);
}

/* ---- GPU time under no operator -------------------------------------------------------------- */

void op_report_add_none(struct op_report *o, uint64_t why, const struct kernel_name *what,
                        uint64_t count, uint64_t ns)
{
    /* The prefix of kernels from PyTorch's compiler, and of others that imitate it. */
    if (what && strncmp(what->raw, "triton_", 7) == 0)
        why = NONE_COMPILED;
    what = why == NONE_COMPILED ? what : NULL;
    struct sums_row *row = sums_row(&o->sums[OP_UNDER_NONE], why, sums_name_key(what), 0);
    row->values[NONE_COUNT] += count;
    row->values[NONE_NS] += ns;
}

/* Names a row. Only now is it known which threads have operators. */
static void name_none(struct sums *s, struct sums_row *row, void *context)
{
    static const struct {
        const char *word, *row;
    } causes[] = {[NONE_COMPILED] = {"compiled", "compiled code"},
                  [NONE_GRAPH] = {"graph", "replays of graphs captured in no operator"},
                  [NONE_THREAD] = {"thread", "calls of threads without operators"},
                  [NONE_CALL] = {"call", "work whose call is not known"},
                  [NONE_BETWEEN] = {"between", "calls between operators"}};
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
    char *text = text_printf("%s%s%s", graph ? graph : causes[cause].row, what ? ": " : "",
                             what ? what : "");
    struct key key = {sums_text(s, text), sums_text(s, causes[cause].word), 0};
    free(text);
    sums_row_add(s, key, row->values);
}

/* Adds the total without an operator as a row of the operators. */
static void add_none(struct op_report *o)
{
    const struct sums *none = &o->sums[OP_UNDER_NONE];
    uint64_t values[OP_VALUES] = {[OP_CALLS] = o->count, [OP_MARK] = 1};
    struct sums *sums = &o->sums[OP_OPERATORS];
    for (uint32_t i = 0; i < none->count; i++)
        values[OP_GPU] += none->rows[i].values[NONE_NS];
    values[OP_GPU_SELF] = values[OP_GPU];
    sums_row_add(sums, (struct key){sums_text(sums, "(under no operator)"), 0, 0}, values);
}

void op_report_complete(struct op_report *o)
{
    struct sums *none = &o->sums[OP_UNDER_NONE];
    o->has_more = o->count >= o->count_max || none->count >= none->rows_max;
    for (uint32_t i = o->count; i-- > 0;) { /* those around come earlier */
        if (o->entries[i].is.formula && o->entries[i].values[OP_CALLS])
            find_flops(o, &o->entries[i]);
        join_around(o, &o->entries[i]);
    }
    if (o->sums->groups)
        group_labels(o);
    add_rows(o);
    sums_remake(none, name_none, o);
    add_none(o);
}
