/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the SQLite exporter's files, and an insert function for each table of
 * sql_tables.def: put_NAME(w, parameters). Files, bottom up: sql_base.c (database), sqlite_facts.c
 * (facts around the events), sqlite_writer.c (events, StringIds and stacks).
 * As in nsys' exports, times are ns since the session's start, the first event of all recordings. A
 * thread is its machine, pid and tid in one number. Correlation ids are unique across processes, so
 * tables join by them alone.
 * Memory: the database's; StringIds' texts (bounded by kernel_names.h) and 64 bytes each; with host
 * stacks a call tree (call_tree.h) and 72 to 136 bytes per distinct frame and
 * stack.
 */
#ifndef GPUPROF_COLLECTOR_SQLITE_TABLES_H
#define GPUPROF_COLLECTOR_SQLITE_TABLES_H

#include <string.h>

#include "analyse/idle.h"
#include "analyse/report_make.h"
#include "api/api.h"
#include "base/key_map.h"
#include "error.h"
#include "export/export_writer.h"
#include "rank.h"
#include "read/process.h"
#include "record/gpu_record.h"
#include "record/losses.h"
#include "resolve/call_tree.h"
#include "resolve/host_facts.h"

/* ---- sql_base.c ---- */

/*
 * A database with the tables of sql_tables.def and added ones, written once in one transaction and
 * never read again. It needs no journal: the file has no name until it is complete (output.h). The
 * first error stays in the output. Values are bound, so text from a recording is never SQL. Memory:
 * SQLite's pages, at most SQL_CACHE_KIB, and a prepared statement per table.
 */
#define SQL_CACHE_KIB  16384
#define SQL_NAME_BYTES 64 /* of an added table */

enum sql_table {
#define COLUMN(...)
#define EMPTY(...)
#define TABLE(NAME, ...) SQL_##NAME,
#include "export/sql_tables.def"
    SQL_TABLES
};
#define SQL_LATE SQL_OSRT /* this and later tables are created with their first row */

/* Counts the columns of each table. */
#define COLUMN(...)                            +1
#define EMPTY(count, columns)                  +(count)
#define TABLE(NAME, name, parameters, columns) enum { NAME##_COLUMNS = 0 columns };
#include "export/sql_tables.def"

enum sql_kind { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_RECORDED };

/* All zero is NULL. */
struct sql_value {
    uint8_t kind; /* enum sql_kind */
    union {
        int64_t integer;
        double real;
        const char *text; /* a view; UTF-8 */
    };
    size_t bytes; /* of the text */
};

static inline struct sql_value sql_integer(uint64_t value)
{
    return (struct sql_value){.kind = SQL_INTEGER, .integer = (int64_t)value};
}

/* 0 becomes NULL. */
static inline struct sql_value sql_integer_or_null(uint64_t value)
{
    return (struct sql_value){.kind = value ? SQL_INTEGER : SQL_NULL, .integer = (int64_t)value};
}

static inline struct sql_value sql_real(double value)
{
    return (struct sql_value){.kind = SQL_REAL, .real = value};
}

/* Views of `text`, which must stay valid until the row is inserted. The second cleans text from a
 * recording; NULL stays NULL. */
struct sql_value sql_text(const char *text);
struct sql_value sql_recorded(const char *text);

struct sql_base;

/* Creates the tables in the file of `out`, which must outlive it. */
struct sql_base *sql_base_create(struct output *out);

/* Inserts a row with a value per column. */
void sql_base_insert(struct sql_base *b, enum sql_table table, const struct sql_value *row);

/* Creates a further table with these SQL columns ("name TEXT, calls INTEGER"); inserts rows of
 * `count` values into the last one created. */
void sql_base_add_table(struct sql_base *b, const char *name, const char *columns);
void sql_base_add_row(struct sql_base *b, const struct sql_value *row, unsigned count);

/* Writes everything to the file. */
void sql_base_free(struct sql_base *b);

/* ---- the writer ---- */

/* The parts of a thread's or process's number. */
#define GLOBAL_MACHINE_SHIFT 48
#define GLOBAL_PID_SHIFT     24
#define GLOBAL_MASK          0xffffffu

struct export_writer {
    struct walk *walk;
    struct export_scope scope;
    struct sql_base *base;
    struct kernel_names texts; /* numbers in StringIds */
    uint64_t text_count;       /* rows there without such a number */
    struct key_map text_ids;   /* (permanent text or frame, part of it) -> number in StringIds */
    struct key_map reported;   /* (process, domain, category + 1) with written names */
    uint64_t end_ns;           /* end of the last event, since the session's start */
    struct call_tree tree;     /* of the stacks written as callchains */
    bool has_tree;
    struct key_map chains; /* nodes whose frames are written */
    uint64_t sample_count; /* rows of COMPOSITE_EVENTS */
};

/* Returns the time since the session's start, which only a damaged file precedes. */
static inline struct sql_value sqlite_time(struct export_writer *w, uint64_t ns)
{
    uint64_t origin = w->walk->survey.origin_ns;
    uint64_t since = ns > origin ? ns - origin : 0;
    w->end_ns = since > w->end_ns ? since : w->end_ns;
    return sql_integer(since);
}

static inline uint64_t sqlite_machine(const struct process *p)
{
    return (p->host + 1ull) << GLOBAL_MACHINE_SHIFT;
}

/* Returns the number of a thread by its tid, recorded or not; 0: the process. */
static inline struct sql_value sqlite_any(const struct process *p, uint64_t tid)
{
    uint64_t pid = (uint64_t)(p->shown_pid & GLOBAL_MASK) << GLOBAL_PID_SHIFT;
    return sql_integer(sqlite_machine(p) | pid | (tid & GLOBAL_MASK));
}

static inline struct sql_value sqlite_pid(const struct process *p)
{
    return sqlite_any(p, 0);
}

static inline struct sql_value sqlite_tid(const struct process *p, const struct thread *t)
{
    return sqlite_any(p, t->shown_tid);
}

/* ---- sqlite_writer.c: each gives a number of StringIds ---- */

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes);
struct sql_value sqlite_function(struct export_writer *w, const struct function *f);

/* Returns the id of a walk's text; NULL: of `otherwise`. */
struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise);

/* A kernel's name as shown, its base without scope and arguments, and as recorded. */
enum kernel_part { KERNEL_SHOWN, KERNEL_BASE, KERNEL_RAW };
struct sql_value sqlite_kernel(struct export_writer *w, const struct slice *s,
                               enum kernel_part part);

/* Returns the sizes of an operator's inputs, or NULL. */
struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs);

/* Writes a stack's frames: to OSRT_CALLCHAINS, once, or, if `sample` is not 0, for that sample.
 * Returns their id; 0: no stack. */
uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample);

/* Write what is known before the events, and what only after them (sqlite_facts.c). */
void sqlite_head(struct export_writer *w);
void sqlite_tail(struct export_writer *w);

/* ---- insert functions ---- */

enum nsys_event_type {
    NSYS_NVTX_CATEGORY = 33,
    NSYS_NVTX_MARK = 34,
    NSYS_NVTX_PUSH_POP = 59,
    NSYS_NVTX_START_END = 60,
    NSYS_NVTX_DOMAIN = 75,
};
enum nsys_event_class { NSYS_RUNTIME, NSYS_DRIVER, NSYS_OS = 27 };
enum nsys_thread_state { NSYS_STATE_UNKNOWN, NSYS_STATE_RUNNING };
enum payload {
    PAYLOAD_U64 = 1,
    PAYLOAD_I64,
    PAYLOAD_DOUBLE,
    PAYLOAD_U32,
    PAYLOAD_I32,
    PAYLOAD_FLOAT
};

/* A range or mark, or the name of a domain or category. */
struct nvtx_row {
    const struct host_span *range;
    uint64_t start_ns;
    unsigned type; /* enum nsys_event_type */
    bool is_label;
    bool is_closed;
    uint64_t category;
    const struct kernel_name *text;
    const struct thread *ended_by; /* NULL: the same thread, or open at the end */
};

#define OPEN_FLAGS (RECORD_CAPTURED | RECORD_NESTED | RECORD_STALE | RECORD_OPEN)

/* ---- values of a slice `s` ---- */

#define IF(condition, value) ((condition) ? (value) : (struct sql_value){0})
#define RECORD               (s->event.record)
#define BEGIN                sqlite_time(w, s->event.begin_ns)
#define END                  sqlite_time(w, s->event.end_ns)
#define PROCESS              sqlite_pid(s->event.process)
#define THREAD               sqlite_tid(s->event.process, s->event.thread)
/* The call's id if the call is known, whichever of its ids the record has. */
#define CALL                                                                                       \
    sql_integer_or_null(event_id(s->event.process, s->is_called ? s->call.id : RECORD->correlation))
#define TITLE                 sql_text(record_title(RECORD, (char[GPU_TITLE_BYTES]){0}))
#define RESULT(result)        sql_integer((uint64_t)(int64_t)(result))
#define NUMBER(argument)      sql_integer(record_arg(RECORD, argument))
#define SOME(argument)        sql_integer_or_null(record_arg(RECORD, argument))
#define LESS(argument)        one_less(record_arg(RECORD, argument))
#define KIND(argument)        memory_kind(record_arg(RECORD, argument))
#define STREAM(argument)      stream_of(record_arg(RECORD, argument))
#define X(argument)           sql_integer((uint32_t)record_arg(RECORD, argument))
#define Y(argument)           sql_integer(record_arg(RECORD, argument) >> 32 & 0xffff)
#define Z(argument)           sql_integer(record_arg(RECORD, argument) >> 48)
#define TID_OF(t, tid)        sqlite_any(s->event.process, (t) ? (t)->shown_tid : (tid))
#define OTHER_TID(tid)        IF(tid, TID_OF(host_thread(&s->event, tid), tid))
#define PID_AT(process_index) sqlite_pid(w->walk->rec->processes[process_index])
#define FIRST_NS(p)           (w->walk->first_ns[(p)->index])
/* Negative for facts from before the session's start. */
#define SINCE(ns) sql_integer((ns)-w->walk->survey.origin_ns)

/* Returns a number stored as number + 1; NULL for 0. */
static inline struct sql_value one_less(uint64_t number)
{
    return IF(number, sql_integer(number - 1));
}

/* nsys' numbers are CUPTI's - 1, with "unknown" last. */
static inline struct sql_value memory_kind(uint64_t number)
{
    return sql_integer(number >= 1 && number <= 7 ? number - 1 : 7);
}

static inline struct sql_value stream_of(uint64_t number)
{
    return sql_integer(number ? number : GPU_STREAM_DEFAULT);
}

/* A failed tensor allocation has no address, so its arguments have lower positions. */
#define TENSOR_OOM_BEFORE (TENSOR_BYTES - TENSOR_OOM_BYTES)
_Static_assert((int)TENSOR_DEVICE_KIND - (int)TENSOR_OOM_DEVICE_KIND == (int)TENSOR_OOM_BEFORE,
               "what both have stands alike");
static inline struct sql_value tensor_arg(const struct record *r, unsigned argument)
{
    unsigned before = r->type == RECORD_TENSOR_OOM ? TENSOR_OOM_BEFORE : 0;
    return IF(argument >= before, sql_integer(record_arg(r, argument - before)));
}

static inline struct sql_value payload_of(const struct nvtx_row *n, enum payload type)
{
    uint64_t payload = n->range->payload;
    uint32_t low = (uint32_t)payload;
    double real;
    float small;
    memcpy(&real, &payload, sizeof real);
    memcpy(&small, &low, sizeof small);
    if (n->is_label || n->range->payload_type != type)
        return (struct sql_value){0};
    return type == PAYLOAD_DOUBLE  ? sql_real(real)
           : type == PAYLOAD_FLOAT ? sql_real((double)small)
           : type == PAYLOAD_I32   ? RESULT((int32_t)low)
                                   : sql_integer(type == PAYLOAD_U32 ? low : payload);
}

static inline struct sql_value state_of(const struct host_sample *sample)
{
    struct sql_value state = {.kind = SQL_TEXT, .text = &sample->state, .bytes = 1};
    return IF(sample->state > ' ' && sample->state < 0x7f, state);
}

#define COLUMN(name, type, value) *v++ = value;
#define EMPTY(count, columns)                                                                      \
    for (int i = 0; i < (count); i++)                                                              \
        (v++)->kind = SQL_NULL;
#define ROW_OF(...) struct export_writer *w, __VA_ARGS__
#define TABLE(NAME, name, parameters, columns)                                                     \
    static inline void put_##NAME(ROW_OF parameters)                                               \
    {                                                                                              \
        struct sql_value row[NAME##_COLUMNS], *v = row;                                            \
        columns sql_base_insert(w->base, SQL_##NAME, row);                                         \
    }
#include "export/sql_tables.def"

#endif
