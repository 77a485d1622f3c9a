/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of an SQLite export, a row for each, and StringIds, and callchains made of them. Texts
 * are deduplicated within bounded memory; beyond it, each use gets a row. All are valid UTF-8, as
 * SQLite's readers expect.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/sqlite_tables.h"
#include "record/op_record.h"

/* ---- texts ----------------------------------------------------------------------------------- */

/* Parts of a text that have a number, besides enum kernel_part. */
enum { PART_INPUTS = KERNEL_RAW + 1, PART_FUNCTION, PART_SYMBOL, PART_MODULE };

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes)
{
    uint32_t before = w->texts.count;
    const struct kernel_name *known = kernel_name_intern(&w->texts, text, bytes);
    uint64_t number = known ? known->number : KERNEL_NAMES_MAX + ++w->text_count;
    if (known && w->texts.count == before)
        return sql_integer(number);
    put_STRINGS(w, number, text, bytes);
    return sql_integer(number);
}

/* The same for a part of a permanent text or function (by its address) or frame (by its number),
 * looked up so since most repeat. */
static struct sql_value kept_text(struct export_writer *w, uint64_t owner, unsigned part,
                                  const char *text, size_t bytes)
{
    struct key key = {owner, part, 0};
    uint64_t number = key_map_get(&w->text_ids, key);
    if (number)
        return sql_integer(number);
    struct sql_value id = sqlite_text(w, text, bytes);
    key_map_set(&w->text_ids, key, (uint64_t)id.integer);
    return id;
}

struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise)
{
    return name ? kept_text(w, (uintptr_t)name, KERNEL_SHOWN, name->shown, strlen(name->shown))
                : sqlite_text(w, otherwise, strlen(otherwise));
}

struct sql_value sqlite_function(struct export_writer *w, const struct function *f)
{
    return kept_text(w, (uintptr_t)f, PART_FUNCTION, f->name, strlen(f->name));
}

struct sql_value sqlite_kernel(struct export_writer *w, const struct slice *s,
                               enum kernel_part part)
{
    uint64_t number = record_arg(s->event.record, KERNEL_NAME_INDEX);
    const struct kernel_name *name = walk_kernel(w->walk, s->event.process, number);
    char unknown[48];
    if (part == KERNEL_RAW)
        return IF(name, kept_text(w, (uintptr_t)name, part, name->raw, name->raw_bytes));
    if (!name)
        snprintf(unknown, sizeof unknown, "kernel %llu", (unsigned long long)number);
    if (part == KERNEL_SHOWN || !name)
        return sqlite_name(w, name, unknown);
    char *base = memory_text(name->shown);
    kernel_name_strip(base);
    const char *scope = strrchr(base, ':'), *own = scope ? scope + 1 : base;
    own = *own ? own : name->shown;
    struct sql_value id = kept_text(w, (uintptr_t)name, part, own, strlen(own));
    free(base);
    return id;
}

struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs)
{
    if (!inputs)
        return (struct sql_value){0};
    char *text = memory_new(OP_TEXT_BYTES(inputs->raw_bytes), 1);
    char *end = op_put(text, inputs->raw, inputs->raw_bytes, op_put_dims);
    struct sql_value id = kept_text(w, (uintptr_t)inputs, PART_INPUTS, text, (size_t)(end - text));
    free(text);
    return id;
}

/* ---- callchains -------------------------------------------------------------------------------
 *
 * Frame by frame: those of samples have the sample's id, as nsys' have, of others each different
 * one is there once.
 */

#define UNKNOWN "[Unknown]" /* nsys' word */

static void sqlite_writer_put_frames(struct export_writer *w, uint64_t id, uint32_t node,
                                     bool is_sample)
{
    const struct call_tree *t = &w->tree;
    for (uint64_t depth = 0; node; depth++, node = call_tree_node(t, node)->parent) {
        uint32_t frame = call_tree_node(t, node)->frame;
        const struct shown_frame *f = frame ? shown_frame_of(&t->frames, frame) : NULL;
        /* A Python frame includes its line, and its file is the module. */
        bool is_named = f && f->name && (f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED);
        const char *symbol = is_named ? f->name->shown : f ? f->label : UNKNOWN;
        const struct kernel_name *file = !f ? NULL : f->kind == SHOWN_PYTHON ? f->file : f->module;
        const char *module = file ? file->raw : UNKNOWN;
        struct sql_value symbol_id = kept_text(w, frame, PART_SYMBOL, symbol, strlen(symbol));
        struct sql_value module_id = kept_text(w, frame, PART_MODULE, module, strlen(module));
        (is_sample ? put_SAMPLE_CHAINS : put_OSRT_CHAINS)(w, id, symbol_id, module_id, f, depth);
    }
}

uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample)
{
    if (!stack)
        return 0;
    if (!w->has_tree)
        call_tree_init(&w->tree, &w->walk->survey, NULL, w->scope.options->symbols);
    w->has_tree = true;
    uint32_t node = call_tree_stack(&w->tree, 0, p->index, stack, NULL);
    if (!node)
        return 0;
    if (sample) {
        sqlite_writer_put_frames(w, sample, node, true);
        return sample;
    }
    struct key key = {node, 0, 0};
    if (key_map_get(&w->chains, key))
        return node;
    if (key_map_set(&w->chains, key, 1) < 0)
        return 0; /* without this note, frames would be written twice */
    sqlite_writer_put_frames(w, node, node, false);
    return node;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Writes a device reading: a row per known value, named as in events.def. */
static void sqlite_writer_take_sample(struct export_writer *w, const struct slice *s)
{
    const struct event_info *info = event_info(s->event.record->type);
    char uuid[DEVICE_UUID_BYTES], name[96];
    uint64_t value;
    device_source_uuid_text(s->source, uuid);
    for (unsigned i = 1; i < info->arg_count; i++) {
        if (!device_value(s->event.record, i, &value))
            continue;
        snprintf(name, sizeof name, "%s.%s", info->name + strlen("device_"), info->args[i].label);
        put_DEVICE_COUNTERS(w, s, uuid, name, value);
    }
}

/* ---- what the host did ----------------------------------------------------------------------- */

static void take_os_call(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    char text[OS_TEXT_BYTES];
    const char *name = host_os_name(&s->event, text);
    struct sql_value file = {0};
    struct sql_value id = sqlite_text(w, name, strlen(name));
    if (r->byte_count)
        file = sqlite_text(w, (const char *)r->bytes, r->byte_count);
    put_OSRT(w, s, id, file, sqlite_chain(w, s->event.process, r->stack_id, 0));
}

/* Writes a sample of a thread's CPU timer. */
static void put_tick(struct export_writer *w, const struct slice *s,
                     const struct host_sample *sample)
{
    uint64_t id = ++w->sample_count;
    if (id == 1) {
        put_THREAD_STATES(w, NSYS_STATE_UNKNOWN, "Unknown", "Unknown");
        put_THREAD_STATES(w, NSYS_STATE_RUNNING, "Running", "Running");
    }
    put_SAMPLES(w, s, sample, id);
    (void)sqlite_chain(w, s->event.process, sample->stack, id);
}

static void take_other(struct export_writer *w, const struct slice *s)
{
    struct host_sample sample;
    if (!host_sample(s, &sample)) {
        if (s->source)
            sqlite_writer_take_sample(w, s);
    } else if (sample.is_cpu) {
        put_tick(w, s, &sample);
    } else {
        put_LOOKS(w, s, &sample);
    }
}

/* ---- what the program says of itself --------------------------------------------------------- */

/* Writes the name of a range's domain (`category` 0) or category, once. */
static void put_label(struct export_writer *w, const struct host_span *range, uint64_t category,
                      const struct kernel_name *text)
{
    struct key key = {range->process->index, range->domain, category};
    if (!text || key_map_get(&w->reported, key))
        return;
    put_NVTX(w, &(const struct nvtx_row){
                    .range = range,
                    .start_ns = range->begin_ns,
                    .type = category ? NSYS_NVTX_CATEGORY : NSYS_NVTX_DOMAIN,
                    .is_label = true,
                    .category = category,
                    .text = text,
                });
    key_map_set(&w->reported, key, 1);
}

/* A range open at the end has no end time, as with nsys. Both text columns have its text, since
 * readers use either. */
static void put_range(struct export_writer *w, const struct slice *s)
{
    const struct host_span *range = s->span;
    bool is_mark = s->change == SPAN_MARKED, is_closed = s->change == SPAN_CLOSED;
    if (range->domain)
        put_label(w, range, 0, range->domain_text);
    if (range->category)
        put_label(w, range, range->category,
                  spans_label(&w->walk->spans, range->process, LABEL_OF_CATEGORY, range->domain,
                              range->category));
    put_NVTX(w, &(const struct nvtx_row){
                    .range = range,
                    .start_ns = is_mark ? s->event.begin_ns : range->begin_ns,
                    .type = is_mark         ? NSYS_NVTX_MARK
                            : range->nested ? NSYS_NVTX_PUSH_POP
                                            : NSYS_NVTX_START_END,
                    .is_closed = is_closed,
                    .category = range->category,
                    .text = range->text,
                    .ended_by = is_closed && !range->nested ? s->event.thread : NULL,
                });
}

/* ---- the consumer ---------------------------------------------------------------------------- */

static void sqlite_take(struct export_writer *w, const struct slice *s)
{
    if (s->change == SPAN_OPENED)
        return;
    if (slice_change(s, SPAN_OP))
        put_OPERATORS(w, s->span, s->change != SPAN_CLOSED);
    else if (slice_change(s, SPAN_LIBRARY))
        put_LIBRARIES(w, s->span, s->change != SPAN_CLOSED,
                      library_kind_text(&w->walk->kinds, s->span->kind));
    else if (s->change)
        put_range(w, s);
    else
        switch (s->event.record->type) {
        case RECORD_CALL: put_RUNTIME(w, s, event_call_id(w->walk, &s->event)); break;
        case RECORD_KERNEL: put_KERNEL(w, s); break;
        case RECORD_COPY: put_MEMCPY(w, s); break;
        case RECORD_SET: put_MEMSET(w, s); break;
        case RECORD_GRAPH: put_GRAPH(w, s); break;
        case RECORD_SYNC: put_SYNC(w, s); break;
        case RECORD_OVERHEAD: put_OVERHEAD(w, s); break;
        case RECORD_MEMORY: put_MEMORY(w, s); break;
        case RECORD_TENSOR:
        case RECORD_TENSOR_OOM: put_TENSORS(w, s); break;
        case RECORD_OS_CALL: take_os_call(w, s); break;
        case RECORD_GIL: put_GIL(w, s); break;
        case RECORD_GC: put_GC(w, s); break;
        default: take_other(w, s);
        }
}

static void sqlite_free(struct export_writer *w)
{
    kernel_names_release(&w->texts);
    key_map_release(&w->text_ids);
    key_map_release(&w->reported);
    key_map_release(&w->chains);
    if (w->has_tree)
        call_tree_release(&w->tree);
    sql_base_free(w->base);
    free(w);
}

static struct export_writer *sqlite_create(struct output *out, struct walk *walk,
                                           const struct export_scope *scope)
{
    struct export_writer *w = memory_new(1, sizeof *w);
    w->walk = walk;
    w->scope = *scope;
    w->texts = (struct kernel_names){.plain = true, .text_max = STRING_TABLE_BYTES};
    w->base = sql_base_create(out);
    sqlite_head(w);
    return w;
}

const struct export_format sqlite_export = {
    .file = {"sqlite", "sqlite"},
    .create = sqlite_create,
    .take = sqlite_take,
    .end = sqlite_tail,
    .free = sqlite_free,
};
