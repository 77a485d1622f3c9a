/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "record/gpu_record.h"

void resolver_init(struct resolver *r, struct walk *walk)
{
    const struct recording *rec = walk->rec;
    *r =
        (struct resolver){.walk = walk, .is_host = memory_new(rec->count + 1u, sizeof *r->is_host)};
    for (uint32_t i = 0; i < rec->count; i++)
        r->is_host[i] = !process_expects_gpu(rec->processes[i]);
}

void resolver_release(struct resolver *r)
{
    for (unsigned t = 0; t < ROW_TABLES; t++)
        free(r->tables[t].columns[0]);
    free(r->is_host);
    *r = (struct resolver){0};
}

void resolver_add(struct resolver *r, const struct rows_reader *reader)
{
    assert(r->reader_count < ROWS_READERS_MAX);
    r->readers[r->reader_count++] = *reader;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Passes the block to its readers and empties it. Returns 0 or an error. */
static int hand_out(struct resolver *r, struct rows *rows)
{
    int error = 0;
    for (unsigned i = 0; error == 0 && rows->count && i < r->reader_count; i++)
        if (r->readers[i].tables >> rows->table & 1)
            error = r->readers[i].take(r->readers[i].context, rows);
    rows->count = 0;
    return error;
}

/* Reserves a row at *place. Returns 0 or an error. */
static inline int begin_row(struct resolver *r, enum row_table table, uint32_t *place)
{
    struct rows *rows = &r->tables[table];
    int error = rows->count == BLOCK_ROWS ? hand_out(r, rows) : 0;
    *place = rows->count++;
    return error;
}

static inline void put_times(struct rows *rows, uint32_t at, enum row_type type,
                             const struct event *e)
{
    rows->columns[ROW_TYPE][at] = type;
    rows->columns[ROW_BEGIN][at] = e->begin_ns;
    rows->columns[ROW_NS][at] = e->end_ns - e->begin_ns;
    rows->columns[ROW_PROCESS][at] = e->process->index;
}

/* ---- names ----------------------------------------------------------------------------------- */

const struct kernel_name *resolver_kernel(struct resolver *r, const struct process *p,
                                          uint64_t number)
{
    struct recent_kernel *recent =
        &r->recent[(uint32_t)(number ^ (uint64_t)p->index << 4) % ROWS_RECENT];
    char text[48];
    if (recent->name && recent->number == number && recent->process == p)
        return recent->name;
    const struct kernel_name *name = walk_kernel(r->walk, p, number);
    int length = snprintf(text, sizeof text, "kernel %llu", (unsigned long long)number);
    if (!name)
        name = kernel_name_intern(&r->walk->texts, text, (size_t)length);
    *recent = (struct recent_kernel){number, p, name};
    return name;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Adds the kernel launch, copy or set of a call of a process without GPU rows. Times are those of
 * the call on the host. */
static void put_host(const struct slice *s, struct rows *rows, uint32_t at)
{
    const struct event *e = &s->event;
    unsigned does = e->function->does;
    if (e->record->flags & (RECORD_NESTED | RECORD_CAPTURED) ||
        rows->columns[ROW_FLAGS][at] & ROW_FAILED)
        return;
    if (api_is_copy(does) || does == API_DOES_SET) {
        uint64_t kind = function_arg_of(e->function, e->record, ARG_KIND, HOST_COPY_UNKNOWN);
        rows->columns[ROW_TYPE][at] = ROW_HOST_COPY;
        rows->columns[ROW_KIND][at] = !api_is_copy(does)         ? HOST_COPY_SET
                                      : kind < HOST_COPY_UNKNOWN ? kind
                                                                 : HOST_COPY_UNKNOWN;
    }
    if (does == API_DOES_LAUNCH) {
        rows->columns[ROW_TYPE][at] = ROW_HOST_KERNEL;
        rows->columns[ROW_NAME][at] = (uintptr_t)walk_launched(s);
    }
}

static int rows_take_call(void *context, const struct slice *s)
{
    struct resolver *r = context;
    struct rows *rows = &r->tables[ROWS_CALLS];
    const struct event *e = &s->event;
    uint32_t at;
    int error = begin_row(r, ROWS_CALLS, &at);
    bool has_failed =
        api_has_failed(e->function->domain, e->record->result); /* "not ready" has not */
    put_times(rows, at, ROW_CALL, e);
    rows->columns[ROW_THREAD][at] = e->thread->index;
    rows->columns[ROW_KIND][at] = rows->columns[ROW_NAME][at] = 0;
    rows->columns[ROW_BYTES][at] = has_failed ? 0 : function_bytes(e->function, e->record);
    rows->columns[ROW_FUNCTION][at] = e->function->index;
    rows->columns[ROW_WEIGHT][at] = e->record->weight > 1 ? e->record->weight : 1;
    rows->columns[ROW_FLAGS][at] =
        (e->record->flags & RECORD_NESTED ? ROW_NESTED : 0u) | (has_failed ? ROW_FAILED : 0u);
    if (r->is_host[e->process->index])
        put_host(s, rows, at);
    return error;
}

/* ---- work ------------------------------------------------------------------------------------ */

static int rows_take_work(void *context, const struct slice *s)
{
    struct resolver *r = context;
    struct rows *rows = &r->tables[ROWS_WORK];
    const struct event *e = &s->event;
    const struct record *record = e->record;
    bool is_kernel = record->type == RECORD_KERNEL;
    bool is_called = s->is_called;
    const struct kernel_name *name = NULL;
    uint64_t kind = 0, bytes = 0;
    uint32_t at;
    enum row_type type = is_kernel ? ROW_KERNEL : ROW_COPY;
    int error = begin_row(r, ROWS_WORK, &at);
    if (is_kernel) {
        name = resolver_kernel(r, e->process, record_arg(record, KERNEL_NAME_INDEX));
    } else if (record->type == RECORD_GRAPH) {
        type = ROW_GRAPH;
        kind = record_arg(record, GRAPH_GRAPH);
    } else if (record->type == RECORD_COPY) {
        kind = record_arg(record, COPY_KIND) < GPU_COPY_KINDS ? record_arg(record, COPY_KIND) : 0;
        bytes = record_arg(record, COPY_BYTES);
    } else {
        kind = GPU_COPY_SET;
        bytes = record_arg(record, SET_BYTES);
    }
    put_times(rows, at, type, e);
    rows->columns[ROW_KIND][at] = kind;
    rows->columns[ROW_NAME][at] = (uintptr_t)name;
    rows->columns[ROW_BYTES][at] = bytes;
    rows->columns[ROW_DEVICE][at] = record_arg(record, KERNEL_DEVICE);
    rows->columns[ROW_GRID][at] = is_kernel ? record_arg(record, KERNEL_GRID) : 0;
    rows->columns[ROW_BLOCK][at] = is_kernel ? record_arg(record, KERNEL_BLOCK) : 0;
    rows->columns[ROW_FLAGS][at] =
        (is_kernel ? ROW_IS_KERNEL : 0u) | (is_called ? ROW_CALLED : 0u) |
        (is_called && s->call.flags & CORRELATION_COUNTED ? ROW_COUNTED : 0u);
    rows->columns[ROW_THREAD][at] = is_called ? s->call.thread : 0;
    rows->columns[ROW_CALL_BEGIN][at] = is_called ? s->call.begin_ns : 0;
    rows->columns[ROW_CALL_NS][at] =
        is_called && s->call.end_ns > s->call.begin_ns ? s->call.end_ns - s->call.begin_ns : 0;
    return error;
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Unknown kinds count as kind 0. */
static int rows_take(void *context, const struct slice *s)
{
    struct resolver *r = context;
    unsigned type = s->event.record->type;
    uint64_t kind = record_arg(s->event.record, SYNC_KIND);
    bool is_sync = type == RECORD_SYNC;
    uint32_t at;
    _Static_assert((unsigned)SYNC_KIND == (unsigned)OVERHEAD_KIND, "both begin with their kind");
    if (!is_sync && type != RECORD_OVERHEAD)
        return 0;
    const char *(*text)(uint64_t) = is_sync ? sync_kind_text : overhead_kind_text;
    int error = begin_row(r, ROWS_OTHERS, &at);
    put_times(&r->tables[ROWS_OTHERS], at, is_sync ? ROW_SYNC : ROW_OVERHEAD, &s->event);
    r->tables[ROWS_OTHERS].columns[ROW_KIND][at] = text(kind) == text(0) ? 0 : kind;
    return error;
}

/* ---- consumer -------------------------------------------------------------------------------- */

static int rows_end(void *context)
{
    struct resolver *r = context;
    int error = 0;
    for (unsigned t = 0; error == 0 && t < ROW_TABLES; t++)
        error = hand_out(r, &r->tables[t]);
    for (unsigned i = 0; error == 0 && i < r->reader_count; i++)
        error = r->readers[i].end ? r->readers[i].end(r->readers[i].context) : 0;
    return error;
}

static void make_tables(struct resolver *r, unsigned tables)
{
    for (enum row_table t = 0; t < ROW_TABLES; t++) {
        uint64_t *memory =
            tables >> t & 1 ? memory_new(ROW_COLUMNS * BLOCK_ROWS, sizeof *memory) : NULL;
        r->tables[t] = (struct rows){.table = t};
        for (unsigned c = 0; memory && c < ROW_COLUMNS; c++)
            r->tables[t].columns[c] = memory + c * BLOCK_ROWS;
    }
}

struct consumer resolver_consumer(struct resolver *r)
{
    unsigned tables = 0;
    bool ties = false;
    for (unsigned i = 0; i < r->reader_count; i++) {
        tables |= r->readers[i].tables;
        ties |= r->readers[i].ties;
    }
    make_tables(r, tables);
    ties = ties && !r->leaves_work && recording_any(r->walk->rec, process_expects_gpu);
    bool has_calls = tables >> ROWS_CALLS & 1;
    bool has_work = tables >> ROWS_WORK & 1 && !r->leaves_work;
    return (struct consumer){.context = r,
                             .needs = ties ? WALK_CALLS : 0,
                             .skips = (has_calls ? 0 : (unsigned)WALK_SKIPS_CALLS) |
                                      (has_work ? 0 : (unsigned)WALK_SKIPS_WORK),
                             .take = tables >> ROWS_OTHERS & 1 ? rows_take : NULL,
                             .take_call = has_calls ? rows_take_call : NULL,
                             .take_work = has_work ? rows_take_work : NULL,
                             .end = rows_end};
}
