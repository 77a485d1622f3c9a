/* SPDX-License-Identifier: Apache-2.0 */
/* The events of an SQLite export: a row each, as they come. */
#include "export/sqlite_writer.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/json_text.h"
#include "error.h"
#include "export/event_facts.h"
#include "record/gpu_record.h"

#define OPEN_FLAGS (RECORD_CAPTURED | RECORD_NESTED | RECORD_STALE | RECORD_OPEN)

static struct sql_value correlation(const struct process *p, uint32_t id)
{
    return sql_integer_or_null(event_id(p, id));
}

/* nsys' numbers of kinds of memory begin where CUPTI's have 1, and end with "unknown". */
static struct sql_value memory_kind(uint64_t kind)
{
    return sql_integer(kind >= 1 && kind <= 7 ? kind - 1 : 7);
}

/* "One more than the number": NULL for 0. */
static struct sql_value one_less(uint64_t number)
{
    return number ? sql_integer(number - 1) : (struct sql_value){0};
}

static int take_call(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool is_driver = e->function->domain == API_DRIVER;
    struct sql_value row[RUNTIME_COLUMNS] = {
        [SQL_RUNTIME_START] = sqlite_time(w, e->begin_ns),
        [SQL_RUNTIME_END] = sqlite_time(w, e->end_ns),
        [SQL_RUNTIME_CLASS] = sql_integer(is_driver ? NSYS_DRIVER : NSYS_RUNTIME),
        [SQL_RUNTIME_TID] = sql_integer(sqlite_tid(w, e->process, e->thread)),
        [SQL_RUNTIME_RESULT] = sql_integer((uint64_t)(int64_t)r->result),
        [SQL_RUNTIME_WEIGHT] = sql_integer_or_null(r->weight > 1 ? r->weight : 0),
        [SQL_RUNTIME_FLAGS] = sql_integer_or_null(r->flags & OPEN_FLAGS),
    };
    uint64_t id = 0;
    int error = sqlite_function(w, e->function, &row[SQL_RUNTIME_NAME]);
    if (error == 0)
        error = event_call_id(w->walk, e, &id);
    row[SQL_RUNTIME_CORRELATION] = sql_integer_or_null(id);
    return error < 0 ? error : sql_base_insert(w->base, SQL_RUNTIME, row);
}

/* ---- work of devices ------------------------------------------------------------------------- */

/* What all tables of it begin with; `stream` as consumers know the default one. Of work whose call
 * is known the id is the call's, whichever of its ids the record has. */
static void place(struct export_writer *w, const struct slice *s, struct sql_value *row,
                  uint64_t device, uint64_t context, uint64_t stream)
{
    const struct event *e = &s->event;
    row[SQL_KERNEL_START] = sqlite_time(w, e->begin_ns);
    row[SQL_KERNEL_END] = sqlite_time(w, e->end_ns);
    row[SQL_KERNEL_DEVICE_ID] = sql_integer(device);
    row[SQL_KERNEL_CONTEXT_ID] = sql_integer(context);
    row[SQL_KERNEL_STREAM_ID] = sql_integer(stream ? stream : GPU_STREAM_DEFAULT);
    row[SQL_KERNEL_CORRELATION] =
        correlation(e->process, s->is_called ? s->call.id : e->record->correlation);
    row[SQL_KERNEL_PID] = sql_integer(sqlite_pid(w, e->process));
}
_Static_assert((int)SQL_KERNEL_PID == (int)SQL_MEMCPY_PID &&
                   (int)SQL_KERNEL_PID == (int)SQL_MEMSET_PID &&
                   (int)SQL_KERNEL_PID == (int)SQL_SYNC_PID &&
                   (int)SQL_KERNEL_PID == (int)SQL_GRAPH_PID,
               "all tables of work begin alike");

static void put_dim3(struct sql_value *row, uint64_t dim3)
{
    row[0] = sql_integer((uint32_t)dim3);
    row[1] = sql_integer(dim3 >> 32 & 0xffff);
    row[2] = sql_integer(dim3 >> 48);
}

static int take_kernel(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t number = record_arg(r, KERNEL_NAME_INDEX);
    struct sql_value row[KERNEL_COLUMNS] = {
        [SQL_KERNEL_REGISTERS] = sql_integer(record_arg(r, KERNEL_REGISTERS)),
        [SQL_KERNEL_STATIC] = sql_integer(record_arg(r, KERNEL_STATIC_SHARED)),
        [SQL_KERNEL_DYNAMIC] = sql_integer(record_arg(r, KERNEL_DYNAMIC_SHARED)),
        [SQL_KERNEL_LOCAL_ALL] = sql_integer(record_arg(r, KERNEL_LOCAL)),
        [SQL_KERNEL_NODE] = sql_integer_or_null(record_arg(r, KERNEL_GRAPH_NODE)),
    };
    place(w, s, row, record_arg(r, KERNEL_DEVICE), record_arg(r, KERNEL_CONTEXT),
          record_arg(r, KERNEL_STREAM));
    put_dim3(&row[SQL_KERNEL_GRID_X], record_arg(r, KERNEL_GRID));
    put_dim3(&row[SQL_KERNEL_BLOCK_X], record_arg(r, KERNEL_BLOCK));
    int error =
        sqlite_kernel(w, walk_kernel(w->walk, s->event.process, number), number,
                      &row[SQL_KERNEL_DEMANGLED], &row[SQL_KERNEL_SHORT], &row[SQL_KERNEL_MANGLED]);
    return error < 0 ? error : sql_base_insert(w->base, SQL_KERNEL, row);
}

static int take_copy(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct sql_value row[MEMCPY_COLUMNS] = {
        [SQL_MEMCPY_BYTES] = sql_integer(record_arg(r, COPY_BYTES)),
        [SQL_MEMCPY_KIND] = sql_integer(record_arg(r, COPY_KIND)),
        [SQL_MEMCPY_FROM] = memory_kind(record_arg(r, COPY_SOURCE)),
        [SQL_MEMCPY_TO] = memory_kind(record_arg(r, COPY_DESTINATION)),
        [SQL_MEMCPY_FROM_DEVICE] = one_less(record_arg(r, COPY_SOURCE_DEVICE)),
        [SQL_MEMCPY_FROM_CONTEXT] = one_less(record_arg(r, COPY_SOURCE_CONTEXT)),
        [SQL_MEMCPY_TO_DEVICE] = one_less(record_arg(r, COPY_DESTINATION_DEVICE)),
        [SQL_MEMCPY_TO_CONTEXT] = one_less(record_arg(r, COPY_DESTINATION_CONTEXT)),
        [SQL_MEMCPY_NODE] = sql_integer_or_null(record_arg(r, COPY_GRAPH_NODE)),
    };
    place(w, s, row, record_arg(r, COPY_DEVICE), record_arg(r, COPY_CONTEXT),
          record_arg(r, COPY_STREAM));
    return sql_base_insert(w->base, SQL_MEMCPY, row);
}

static int take_set(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct sql_value row[MEMSET_COLUMNS] = {
        [SQL_MEMSET_VALUE] = sql_integer(record_arg(r, SET_VALUE)),
        [SQL_MEMSET_BYTES] = sql_integer(record_arg(r, SET_BYTES)),
        [SQL_MEMSET_KIND] = memory_kind(record_arg(r, SET_KIND)),
        [SQL_MEMSET_NODE] = sql_integer_or_null(record_arg(r, SET_GRAPH_NODE)),
    };
    place(w, s, row, record_arg(r, SET_DEVICE), record_arg(r, SET_CONTEXT),
          record_arg(r, SET_STREAM));
    return sql_base_insert(w->base, SQL_MEMSET, row);
}

static int take_graph(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct sql_value row[GRAPH_COLUMNS] = {
        [SQL_GRAPH_ID] = sql_integer(record_arg(r, GRAPH_GRAPH)),
    };
    place(w, s, row, record_arg(r, GRAPH_DEVICE), record_arg(r, GRAPH_CONTEXT),
          record_arg(r, GRAPH_STREAM));
    return sql_base_insert(w->base, SQL_GRAPH, row);
}

static int take_sync(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t context = record_arg(r, SYNC_CONTEXT);
    struct sql_value row[SYNC_COLUMNS] = {
        [SQL_SYNC_KIND] = sql_integer(record_arg(r, SYNC_KIND)),
        [SQL_SYNC_EVENT] = sql_integer(record_arg(r, SYNC_EVENT)),
    };
    place(w, s, row, survey_context_device(&w->walk->survey, s->event.process, context), context,
          record_arg(r, SYNC_STREAM));
    return sql_base_insert(w->base, SQL_SYNC, row);
}

static int take_overhead(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    struct sql_value row[OVERHEAD_COLUMNS] = {
        [SQL_OVERHEAD_START] = sqlite_time(w, e->begin_ns),
        [SQL_OVERHEAD_END] = sqlite_time(w, e->end_ns),
        [SQL_OVERHEAD_PID] = sql_integer(sqlite_pid(w, e->process)),
        [SQL_OVERHEAD_KIND] = sql_text(overhead_kind_text(record_arg(e->record, OVERHEAD_KIND))),
        [SQL_OVERHEAD_CORRELATION] = correlation(e->process, e->record->correlation),
    };
    return sql_base_insert(w->base, SQL_OVERHEAD, row);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int take_memory(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint32_t id = s->is_called ? s->call.id : r->correlation;
    struct sql_value row[MEMORY_COLUMNS] = {
        [SQL_MEMORY_START] = sqlite_time(w, e->begin_ns),
        [SQL_MEMORY_PID] = sql_integer(sqlite_pid(w, e->process)),
        [SQL_MEMORY_DEVICE_ID] = sql_integer(record_arg(r, MEMORY_DEVICE)),
        [SQL_MEMORY_CONTEXT_ID] = sql_integer(record_arg(r, MEMORY_CONTEXT)),
        [SQL_MEMORY_ADDRESS] = sql_integer(record_arg(r, MEMORY_ADDRESS)),
        [SQL_MEMORY_PC] = sql_integer(record_arg(r, MEMORY_PC)),
        [SQL_MEMORY_BYTES] = sql_integer(record_arg(r, MEMORY_BYTES)),
        [SQL_MEMORY_KIND] = memory_kind(record_arg(r, MEMORY_KIND)),
        [SQL_MEMORY_OPERATION] =
            sql_integer(record_arg(r, MEMORY_OPERATION) == MEMORY_RELEASE ? 1 : 0),
        [SQL_MEMORY_CORRELATION] = correlation(e->process, id),
        [SQL_MEMORY_STREAM_ID] = sql_integer(record_arg(r, MEMORY_STREAM)),
    };
    return sql_base_insert(w->base, SQL_MEMORY, row);
}

/* PyTorch's allocator: a block, or one that could not be had. */
static int take_tensor(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool is_had = r->type == RECORD_TENSOR;
    unsigned bytes = is_had ? (unsigned)TENSOR_BYTES : (unsigned)TENSOR_OOM_BYTES;
    char title[GPU_TITLE_BYTES];
    struct sql_value row[TENSORS_COLUMNS] = {
        [SQL_TENSORS_START] = sqlite_time(w, e->begin_ns),
        [SQL_TENSORS_TID] = sql_integer(sqlite_tid(w, e->process, e->thread)),
        [SQL_TENSORS_OPERATION] = sql_text(record_title(r, title)),
        [SQL_TENSORS_ADDRESS] =
            is_had ? sql_integer(record_arg(r, TENSOR_ADDRESS)) : (struct sql_value){0},
        [SQL_TENSORS_BYTES] = sql_integer(record_arg(r, bytes)),
        [SQL_TENSORS_ALLOCATED] = sql_integer(record_arg(r, bytes + 1)),
        [SQL_TENSORS_RESERVED] = sql_integer(record_arg(r, bytes + 2)),
        [SQL_TENSORS_DEVICE_ID] = sql_integer(record_arg(r, bytes + 3)),
        [SQL_TENSORS_DEVICE_KIND] = sql_integer(record_arg(r, bytes + 4)),
    };
    return sql_base_insert(w->base, SQL_TENSORS, row);
}
/* What the driver said of a device: a row for each value that is known, named as in events.def. */
static int take_sample(struct export_writer *w, const struct slice *s)
{
    const struct device_source *source = s->source;
    const struct record *r = s->event.record;
    const struct event_info *info = event_info(r->type);
    char uuid[DEVICE_UUID_BYTES], name[96];
    struct sql_value row[DEVICE_COUNTERS_COLUMNS] = {
        [SQL_DEVICE_COUNTERS_START] = sqlite_time(w, device_sample_ns(&s->event)),
        [SQL_DEVICE_COUNTERS_PID] = sql_integer(sqlite_pid(w, s->event.process)),
        [SQL_DEVICE_COUNTERS_DEVICE_ID] =
            source->device == UINT64_MAX ? (struct sql_value){0} : sql_integer(source->device),
    };
    device_source_uuid_text(source, uuid);
    row[SQL_DEVICE_COUNTERS_UUID] = uuid[0] ? sql_text(uuid) : (struct sql_value){0};
    int error = 0;
    for (unsigned i = 1; error == 0 && i < info->arg_count; i++) {
        uint64_t value;
        if (!device_value(r, i, &value))
            continue;
        snprintf(name, sizeof name, "%s.%s", info->name + strlen("device_"), info->args[i].label);
        row[SQL_DEVICE_COUNTERS_NAME] = sql_text(name);
        row[SQL_DEVICE_COUNTERS_VALUE] = sql_integer(value);
        error = sql_base_insert(w->base, SQL_DEVICE_COUNTERS, row);
    }
    return error;
}

_Static_assert((int)TENSOR_DEVICE_KIND - (int)TENSOR_BYTES ==
                   (int)TENSOR_OOM_DEVICE_KIND - (int)TENSOR_OOM_BYTES,
               "what both have stands alike");

/* ---- what the program says of itself --------------------------------------------------------- */

enum payload {
    PAYLOAD_U64 = 1,
    PAYLOAD_I64,
    PAYLOAD_DOUBLE,
    PAYLOAD_U32,
    PAYLOAD_I32,
    PAYLOAD_FLOAT
};

static void put_payload(struct sql_value *row, const struct range *range)
{
    double real;
    float small;
    uint32_t low = (uint32_t)range->payload;
    memcpy(&real, &range->payload, sizeof real);
    memcpy(&small, &low, sizeof small);
    switch (range->payload_type) {
    case PAYLOAD_U64: row[SQL_NVTX_U64] = sql_integer(range->payload); break;
    case PAYLOAD_I64: row[SQL_NVTX_I64] = sql_integer(range->payload); break;
    case PAYLOAD_DOUBLE: row[SQL_NVTX_DOUBLE] = sql_real(real); break;
    case PAYLOAD_U32: row[SQL_NVTX_U32] = sql_integer(low); break;
    case PAYLOAD_I32: row[SQL_NVTX_I32] = sql_integer((uint64_t)(int64_t)(int32_t)low); break;
    case PAYLOAD_FLOAT: row[SQL_NVTX_FLOAT] = sql_real((double)small); break;
    default: break;
    }
}

/* One that is open at the end has no end, as with nsys. Its text stands in both places in which
 * people look for it. */
static int put_range(struct export_writer *w, const struct slice *s)
{
    const struct range *range = s->range;
    bool is_mark = s->change == RANGE_MARKED;
    uint64_t tid = sqlite_tid(w, range->process, range->thread);
    struct sql_value row[NVTX_COLUMNS] = {
        [SQL_NVTX_START] = sqlite_time(w, is_mark ? s->event.begin_ns : range->begin_ns),
        [SQL_NVTX_TYPE] = sql_integer(is_mark         ? NSYS_NVTX_MARK
                                      : range->nested ? NSYS_NVTX_PUSH_POP
                                                      : NSYS_NVTX_START_END),
        [SQL_NVTX_RANGE] = sql_integer_or_null(range->nested ? 0 : range->number),
        [SQL_NVTX_CATEGORY] = sql_integer_or_null(range->category),
        [SQL_NVTX_COLOR] = sql_integer_or_null(range->color),
        [SQL_NVTX_TID] = sql_integer(tid),
        [SQL_NVTX_DOMAIN] = sql_integer(range->domain),
    };
    if (s->change == RANGE_CLOSED)
        row[SQL_NVTX_END] = sqlite_time(w, range->end_ns);
    if (s->change == RANGE_CLOSED && !range->nested && s->event.thread)
        row[SQL_NVTX_END_TID] = sql_integer(sqlite_tid(w, s->event.process, s->event.thread));
    put_payload(row, range);
    char *text = NULL;
    int error = sqlite_range_names(w, range, range->begin_ns);
    if (error == 0 && range->text)
        error = sqlite_name(w, range->text, "", &row[SQL_NVTX_TEXT_ID]);
    if (error == 0 && range->text) {
        text = json_clean(range->text->shown, strlen(range->text->shown));
        error = text ? 0 : GPUPROF_NO_MEMORY;
        row[SQL_NVTX_TEXT] = sql_text(text ? text : "");
    }
    if (error == 0)
        error = sql_base_insert(w->base, SQL_NVTX, row);
    free(text);
    return error;
}

static int put_op(struct export_writer *w, const struct slice *s)
{
    const struct op *op = s->op;
    const struct kernel_name *name = walk_op_name(w->walk, op);
    const struct kernel_name *inputs =
        op->inputs ? walk_op_inputs(w->walk, op->process, op->inputs) : NULL;
    struct sql_value row[OPERATORS_COLUMNS] = {
        [SQL_OPERATORS_START] = sqlite_time(w, op->begin_ns),
        [SQL_OPERATORS_END] = sqlite_time(w, op->end_ns),
        [SQL_OPERATORS_TID] = sql_integer(sqlite_tid(w, op->process, op->thread)),
        [SQL_OPERATORS_KIND] = sql_text(event_op_kind(op)),
        [SQL_OPERATORS_SEQUENCE] = one_less(op->sequence),
        [SQL_OPERATORS_OPEN] = sql_integer(s->op_change == OP_LEFT),
    };
    int error = sqlite_name(w, name, "operator", &row[SQL_OPERATORS_NAME]);
    if (error == 0)
        error = sqlite_inputs(w, inputs, &row[SQL_OPERATORS_INPUTS]);
    return error < 0 ? error : sql_base_insert(w->base, SQL_OPERATORS, row);
}

static int put_library(struct export_writer *w, const struct slice *s)
{
    const struct library_call *call = s->library;
    struct sql_value row[LIBRARIES_COLUMNS] = {
        [SQL_LIBRARIES_START] = sqlite_time(w, call->begin_ns),
        [SQL_LIBRARIES_END] = sqlite_time(w, call->end_ns),
        [SQL_LIBRARIES_TID] = sql_integer(sqlite_tid(w, call->process, call->thread)),
        [SQL_LIBRARIES_OPEN] = sql_integer(s->library_change != LIBRARY_CLOSED),
    };
    int error = sqlite_function(w, call->function, &row[SQL_LIBRARIES_NAME]);
    const struct kernel_name *text =
        error == 0 ? library_kind_text(&w->walk->kinds, call->kind, &error) : NULL;
    if (s->library_change == LIBRARY_CLOSED)
        row[SQL_LIBRARIES_RESULT] = sql_integer((uint64_t)(int64_t)call->result);
    if (error == 0 && text)
        error = sqlite_name(w, text, "", &row[SQL_LIBRARIES_SHAPE]);
    return error < 0 ? error : sql_base_insert(w->base, SQL_LIBRARIES, row);
}

/* ---- the consumer ---------------------------------------------------------------------------- */

static int sqlite_take(struct export_writer *w, const struct slice *s)
{
    if (s->op_change != OP_SAME)
        return s->op_change == OP_OPENED ? 0 : put_op(w, s);
    if (s->library_change != LIBRARY_SAME)
        return s->library_change == LIBRARY_OPENED ? 0 : put_library(w, s);
    if (s->change != RANGE_NONE)
        return s->change == RANGE_OPENED ? 0 : put_range(w, s);
    switch (s->event.record->type) {
    case RECORD_CALL: return take_call(w, s);
    case RECORD_KERNEL: return take_kernel(w, s);
    case RECORD_COPY: return take_copy(w, s);
    case RECORD_SET: return take_set(w, s);
    case RECORD_GRAPH: return take_graph(w, s);
    case RECORD_SYNC: return take_sync(w, s);
    case RECORD_OVERHEAD: return take_overhead(w, s);
    case RECORD_MEMORY: return take_memory(w, s);
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return take_tensor(w, s);
    default: return s->source ? take_sample(w, s) : 0;
    }
}

static void sqlite_free(struct export_writer *w)
{
    sqlite_texts_release(w);
    sql_base_free(w->base);
    key_map_release(&w->told);
    free(w->machines);
    free(w);
}

static struct export_writer *sqlite_create(struct output *out, struct walk *walk,
                                           const struct export_scope *scope)
{
    struct export_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->walk = walk;
    w->scope = *scope;
    w->texts.plain = true;
    kernel_names_limit(&w->texts, recording_bytes(walk->rec));
    w->machines = calloc(walk->rec->count + 1u, sizeof *w->machines);
    w->base = w->machines ? sql_base_create(out) : NULL;
    if (w->base && sqlite_head(w) == 0)
        return w;
    sqlite_free(w);
    return NULL;
}

static int sqlite_end(struct export_writer *w)
{
    int error = sqlite_tail(w);
    return error < 0 ? error : sql_base_finish(w->base);
}

const struct export_format sqlite_export = {
    .name = "sqlite",
    .ending = "sqlite",
    .help = "a database with the tables of nsys export, for SQL",
    .is_random = true,
    .wants_steps = true,
    .wants_tables = true,
    .needs = WALK_RANGES | WALK_OPS | WALK_LIBRARIES | WALK_WORK | WALK_LOSSES,
    .create = sqlite_create,
    .take = sqlite_take,
    .end = sqlite_end,
    .free = sqlite_free,
};
