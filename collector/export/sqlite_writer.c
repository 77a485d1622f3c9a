/* SPDX-License-Identifier: Apache-2.0 */
/* The events of an SQLite export: a row each, as they come. */
#include "export/sqlite_writer.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "error.h"
#include "export/export_writer.h"
#include "model/host_facts.h"
#include "record/gpu_record.h"

#define OPEN_FLAGS (RECORD_CAPTURED | RECORD_NESTED | RECORD_STALE | RECORD_OPEN)

/* ---- records --------------------------------------------------------------------------------- */

/* What of a record a column has (sql_tables.def). */
enum sql_from {
    FROM_NOTHING,
    FROM_BEGIN,
    FROM_END,
    FROM_PROCESS,
    FROM_THREAD,
    FROM_CALL, /* its id, if the call is known, whichever of its ids the record has */
    FROM_TITLE,
    FROM_NUMBER, /* an argument, as are the next */
    FROM_SOME,   /* 0: nothing */
    FROM_LESS,   /* one more than the number; 0: nothing */
    FROM_KIND,   /* of memory */
    FROM_STREAM,
    FROM_X, /* of a grid or block */
    FROM_Y,
    FROM_Z,
};

typedef uint8_t sql_source[2]; /* enum sql_from, argument */

/* The block of a tensor that could not be had has no address: its arguments stand in front. */
#define TENSOR_OOM_BEFORE (TENSOR_BYTES - TENSOR_OOM_BYTES)
_Static_assert((int)TENSOR_DEVICE_KIND - (int)TENSOR_OOM_DEVICE_KIND == (int)TENSOR_OOM_BEFORE,
               "what both have stands alike");

/* "One more than the number": NULL for 0. */
static struct sql_value one_less(uint64_t number)
{
    return number ? sql_integer(number - 1) : (struct sql_value){0};
}

static inline __attribute__((always_inline)) struct sql_value value_of(struct export_writer *w,
                                                                       const struct slice *s,
                                                                       const sql_source source,
                                                                       char title[GPU_TITLE_BYTES])
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned before = r->type == RECORD_TENSOR_OOM ? TENSOR_OOM_BEFORE : 0;
    bool is_there = source[1] >= before;
    uint64_t number = is_there ? record_arg(r, source[1] - before) : 0;
    switch ((enum sql_from)source[0]) {
    case FROM_BEGIN: return sqlite_time(w, e->begin_ns);
    case FROM_END: return sqlite_time(w, e->end_ns);
    case FROM_PROCESS: return sql_integer(sqlite_pid(w, e->process));
    case FROM_THREAD: return sql_integer(sqlite_tid(w, e->process, e->thread));
    case FROM_CALL:
        return sql_integer_or_null(
            event_id(e->process, s->is_called ? s->call.id : r->correlation));
    case FROM_TITLE: return sql_text(record_title(r, title));
    case FROM_NUMBER: return is_there ? sql_integer(number) : (struct sql_value){0};
    case FROM_SOME: return sql_integer_or_null(number);
    case FROM_LESS: return one_less(number);
    /* nsys' numbers begin where CUPTI's have 1, and end with "unknown". */
    case FROM_KIND: return sql_integer(number >= 1 && number <= 7 ? number - 1 : 7);
    case FROM_STREAM: return sql_integer(number ? number : GPU_STREAM_DEFAULT);
    case FROM_X: return sql_integer((uint32_t)number);
    case FROM_Y: return sql_integer(number >> 32 & 0xffff);
    case FROM_Z: return sql_integer(number >> 48);
    case FROM_NOTHING: break;
    }
    return (struct sql_value){0};
}

/* fill_TABLE: a row with what its columns have of the record. */
#define COLUMN(ENUMERATOR, name, type, ...)                                                        \
    row[ENUMERATOR] = value_of(w, s, (const sql_source){__VA_ARGS__}, title);
#define TABLE(NAME, name, columns)                                                                 \
    static inline void fill_##NAME(struct export_writer *w, const struct slice *s,                 \
                                   struct sql_value *row, char title[GPU_TITLE_BYTES])             \
    {                                                                                              \
        columns                                                                                    \
    }
#include "export/sql_tables.def"

#define TAKE_RECORD(NAME)                                                                          \
    static int take_##NAME(struct export_writer *w, const struct slice *s)                         \
    {                                                                                              \
        struct sql_value row[NAME##_COLUMNS];                                                      \
        char title[GPU_TITLE_BYTES];                                                               \
        fill_##NAME(w, s, row, title);                                                             \
        return sql_base_insert(w->base, SQL_##NAME, row);                                          \
    }
TAKE_RECORD(MEMCPY)
TAKE_RECORD(MEMSET)
TAKE_RECORD(GRAPH)
TAKE_RECORD(OVERHEAD)
TAKE_RECORD(TENSORS)

static int take_call(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct sql_value row[RUNTIME_COLUMNS];
    uint64_t id = 0;
    fill_RUNTIME(w, s, row, NULL);
    row[SQL_RUNTIME_CLASS] =
        sql_integer(e->function->domain == API_DRIVER ? NSYS_DRIVER : NSYS_RUNTIME);
    row[SQL_RUNTIME_RESULT] = sql_integer((uint64_t)(int64_t)r->result);
    row[SQL_RUNTIME_WEIGHT] = sql_integer_or_null(r->weight > 1 ? r->weight : 0);
    row[SQL_RUNTIME_FLAGS] = sql_integer_or_null(r->flags & OPEN_FLAGS);
    int error = sqlite_function(w, e->function, &row[SQL_RUNTIME_NAME]);
    if (error == 0)
        error = event_call_id(w->walk, e, &id);
    row[SQL_RUNTIME_CORRELATION] = sql_integer_or_null(id);
    return error < 0 ? error : sql_base_insert(w->base, SQL_RUNTIME, row);
}

static int take_kernel(struct export_writer *w, const struct slice *s)
{
    uint64_t number = record_arg(s->event.record, KERNEL_NAME_INDEX);
    struct sql_value row[KERNEL_COLUMNS];
    fill_KERNEL(w, s, row, NULL);
    int error =
        sqlite_kernel(w, walk_kernel(w->walk, s->event.process, number), number,
                      &row[SQL_KERNEL_DEMANGLED], &row[SQL_KERNEL_SHORT], &row[SQL_KERNEL_MANGLED]);
    return error < 0 ? error : sql_base_insert(w->base, SQL_KERNEL, row);
}

static int take_sync(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t context = record_arg(r, SYNC_CONTEXT), stream = record_arg(r, SYNC_STREAM);
    struct sql_value row[SYNC_COLUMNS];
    fill_SYNC(w, s, row, NULL);
    row[SQL_SYNC_DEVICE_ID] =
        sql_integer(survey_context_device(&w->walk->survey, s->event.process, context));
    row[SQL_SYNC_CONTEXT_ID] = sql_integer(context);
    row[SQL_SYNC_STREAM_ID] = sql_integer(stream ? stream : GPU_STREAM_DEFAULT);
    return sql_base_insert(w->base, SQL_SYNC, row);
}

static int take_memory(struct export_writer *w, const struct slice *s)
{
    struct sql_value row[MEMORY_COLUMNS];
    fill_MEMORY(w, s, row, NULL);
    row[SQL_MEMORY_OPERATION] =
        sql_integer(record_arg(s->event.record, MEMORY_OPERATION) == MEMORY_RELEASE);
    return sql_base_insert(w->base, SQL_MEMORY, row);
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

/* ---- what the host did ----------------------------------------------------------------------- */

/* A thread of the process by its tid, whether or not it recorded anything. */
static struct sql_value tid_of(const struct export_writer *w, const struct process *p,
                               const struct thread *t, uint64_t tid)
{
    return t ? sql_integer(sqlite_tid(w, p, t))
             : sql_integer(sqlite_pid(w, p) | (tid & GLOBAL_MASK));
}

static struct sql_value other_tid(const struct export_writer *w, const struct event *e,
                                  uint64_t tid)
{
    return tid ? tid_of(w, e->process, host_thread(e, tid), tid) : (struct sql_value){0};
}

static int put_enumerator(struct export_writer *w, enum sql_table table, uint64_t id,
                          const char *name, const char *label)
{
    const struct sql_value row[EVENT_CLASSES_COLUMNS] = {sql_integer(id), sql_text(name),
                                                         sql_text(label)};
    return sql_base_insert(w->base, table, row);
}

static int take_os_call(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    char text[OS_TEXT_BYTES];
    const char *name = host_os_name(e, text);
    struct sql_value row[OSRT_COLUMNS];
    uint64_t chain = 0;
    int error = w->has_os ? 0
                          : put_enumerator(w, SQL_EVENT_CLASSES, NSYS_OS,
                                           "TRACE_PROCESS_EVENT_OS_RUNTIME", "OS runtime");
    w->has_os = true;
    fill_OSRT(w, s, row, NULL);
    row[SQL_OSRT_CLASS] = sql_integer(NSYS_OS);
    row[SQL_OSRT_RESULT] = sql_integer((uint64_t)(int64_t)r->result);
    row[SQL_OSRT_NESTING] = sql_integer(0);
    row[SQL_OSRT_WAITS_FOR] = sql_text(os_class_text(host_os_class(e)));
    if (error == 0)
        error = sqlite_text(w, name, strlen(name), &row[SQL_OSRT_NAME]);
    if (error == 0 && r->byte_count)
        error = sqlite_text(w, (const char *)r->bytes, r->byte_count, &row[SQL_OSRT_FILE]);
    if (error == 0)
        error = sqlite_chain(w, e->process, r->stack_id, 0, &chain);
    row[SQL_OSRT_CHAIN] = sql_integer(chain);
    return error < 0 ? error : sql_base_insert(w->base, SQL_OSRT, row);
}

/* Of a tick of a thread's CPU timer. */
static int put_tick(struct export_writer *w, const struct slice *s,
                    const struct host_sample *sample)
{
    struct sql_value row[SAMPLES_COLUMNS];
    uint64_t id = ++w->sample_count, chain;
    int error =
        id > 1 ? 0 : put_enumerator(w, SQL_THREAD_STATES, NSYS_STATE_UNKNOWN, "Unknown", "Unknown");
    if (error == 0 && id == 1)
        error = put_enumerator(w, SQL_THREAD_STATES, NSYS_STATE_RUNNING, "Running", "Running");
    fill_SAMPLES(w, s, row, NULL);
    row[SQL_SAMPLES_ID] = sql_integer(id);
    row[SQL_SAMPLES_STATE] = sql_integer(NSYS_STATE_RUNNING);
    row[SQL_SAMPLES_TID] = tid_of(w, s->event.process, sample->thread, sample->tid);
    row[SQL_SAMPLES_CYCLES] = sql_integer(sample->ns);
    row[SQL_SAMPLES_COUNT] = sql_integer(sample->count);
    row[SQL_SAMPLES_KERNEL] = sql_integer(sample->in_kernel);
    if (error == 0)
        error = sql_base_insert(w->base, SQL_SAMPLES, row);
    return error < 0 ? error : sqlite_chain(w, s->event.process, sample->stack, id, &chain);
}

/* Of another thread's look. */
static int put_look(struct export_writer *w, const struct slice *s,
                    const struct host_sample *sample)
{
    struct sql_value row[LOOKS_COLUMNS];
    uint64_t chain = 0, holder = 0;
    bool has_state = sample->state > ' ' && sample->state < 0x7f;
    fill_LOOKS(w, s, row, NULL);
    row[SQL_LOOKS_TID] = tid_of(w, s->event.process, sample->thread, sample->tid);
    row[SQL_LOOKS_TIME] = sql_integer(sample->ns);
    if (has_state)
        row[SQL_LOOKS_STATE] =
            (struct sql_value){.kind = SQL_TEXT, .text = &sample->state, .bytes = 1};
    if (sample->syscall >= 0)
        row[SQL_LOOKS_SYSCALL] = sql_integer((uint64_t)sample->syscall);
    row[SQL_LOOKS_HOLDER] = other_tid(w, &s->event, sample->holder);
    int error = sqlite_chain(w, s->event.process, sample->stack, 0, &chain);
    if (error == 0)
        error = sqlite_chain(w, s->event.process, sample->holder_stack, 0, &holder);
    row[SQL_LOOKS_CHAIN] = sql_integer_or_null(chain);
    row[SQL_LOOKS_HOLDER_CHAIN] = sql_integer_or_null(holder);
    return error < 0 ? error : sql_base_insert(w->base, SQL_LOOKS, row);
}

static int take_gil(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct sql_value row[GIL_COLUMNS];
    uint64_t chain = 0;
    fill_GIL(w, s, row, NULL);
    row[SQL_GIL_HELD] = sql_integer(r->code == GIL_HELD);
    row[SQL_GIL_OTHER] = other_tid(w, &s->event, record_arg(r, GIL_OTHER));
    int error = sqlite_chain(w, s->event.process, r->stack_id, 0, &chain);
    row[SQL_GIL_CHAIN] = sql_integer_or_null(chain);
    return error < 0 ? error : sql_base_insert(w->base, SQL_GIL, row);
}

static int take_gc(struct export_writer *w, const struct slice *s)
{
    struct sql_value row[GC_COLUMNS];
    fill_GC(w, s, row, NULL);
    row[SQL_GC_GENERATION] = sql_integer(s->event.record->code);
    return sql_base_insert(w->base, SQL_GC, row);
}

static int take_host(struct export_writer *w, const struct slice *s)
{
    struct host_sample sample;
    switch (s->event.record->type) {
    case RECORD_OS_CALL: return take_os_call(w, s);
    case RECORD_GIL: return take_gil(w, s);
    case RECORD_GC: return take_gc(w, s);
    default: break;
    }
    if (!host_sample(s, &sample))
        return s->source ? take_sample(w, s) : 0;
    return sample.is_cpu ? put_tick(w, s, &sample) : put_look(w, s, &sample);
}

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
    int error = sqlite_range_names(w, range, range->begin_ns);
    if (error == 0 && range->text)
        error = sqlite_name(w, range->text, "", &row[SQL_NVTX_TEXT_ID]);
    if (range->text)
        row[SQL_NVTX_TEXT] = sql_recorded(range->text->shown);
    return error < 0 ? error : sql_base_insert(w->base, SQL_NVTX, row);
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
    case RECORD_COPY: return take_MEMCPY(w, s);
    case RECORD_SET: return take_MEMSET(w, s);
    case RECORD_GRAPH: return take_GRAPH(w, s);
    case RECORD_SYNC: return take_sync(w, s);
    case RECORD_OVERHEAD: return take_OVERHEAD(w, s);
    case RECORD_MEMORY: return take_memory(w, s);
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return take_TENSORS(w, s);
    default: return take_host(w, s);
    }
}

static void sqlite_free(struct export_writer *w)
{
    sqlite_texts_release(w);
    sqlite_chains_release(&w->chains);
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
    .file = {"sqlite", "sqlite"},
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
