/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by the SQLite exporter's files, bottom up: sql_base.c (database), sqlite_texts.c
 * (StringIds and stacks), sqlite_tables.h (an insert function per table of sql_tables.def),
 * sqlite_facts.c (facts around the events), sqlite_writer.c (events).
 * As in nsys' exports, times are ns since the session's start, the first event of all recordings. A
 * thread is its machine, pid and tid in one number. Correlation ids are unique across processes, so
 * tables join by them alone. After the first error, functions do nothing.
 * Memory: sql_base.h; StringIds' texts (bounded by packet.h) and 64 bytes each; with host
 * stacks a call tree (call_tree.h) and 72 to 136 bytes per distinct frame and
 * stack.
 */
#ifndef GPUPROF_COLLECTOR_SQLITE_STATE_H
#define GPUPROF_COLLECTOR_SQLITE_STATE_H

#include "analyse/report_make.h"
#include "base/key_map.h"
#include "error.h"
#include "export/export_writer.h"
#include "export/sql_base.h"
#include "resolve/call_tree.h"
#include "trace/packet.h"

/* The parts of a thread's or process's number. */
#define GLOBAL_MACHINE_SHIFT 48
#define GLOBAL_PID_SHIFT     24
#define GLOBAL_MASK          0xffffffu

/* Writes stacks as callchains; starts zeroed. */
struct sqlite_chains {
    struct call_tree tree;
    bool has_tree;
    struct key_map reported; /* nodes whose frames are written */
};

struct export_writer {
    struct walk *walk;
    struct export_scope scope;
    struct sql_base *base;
    int error;                 /* first error; 0: none */
    struct text_numbers texts; /* numbers in StringIds */
    uint64_t text_count;       /* rows there without such a number */
    struct key_map text_ids;   /* (permanent text or frame, part of it) -> number in StringIds */
    struct key_map reported;   /* (process, domain, category + 1) with written names */
    uint64_t end_ns;           /* end of the last event, since the session's start */
    struct sqlite_chains chains;
    uint64_t sample_count; /* rows of COMPOSITE_EVENTS */
    bool has_os;           /* OSRT_API has a row */
};

/* Stores an error. A full map is none: what does not fit is written again. */
static inline bool sqlite_ok(struct export_writer *w, int error)
{
    if (!w->error && error < 0 && error != GPUPROF_LIMIT)
        w->error = error;
    return !w->error;
}

static inline void sqlite_insert(struct export_writer *w, enum sql_table table,
                                 const struct sql_value *row)
{
    if (!w->error)
        w->error = sql_base_insert(w->base, table, row);
}

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

/* ---- sqlite_texts.c: each gives a number of StringIds ---- */

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes);
struct sql_value sqlite_function(struct export_writer *w, const struct function *f);

/* Returns the id of a walk's text; NULL: of `otherwise`. */
struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise);

/* A kernel's name as shown, its base without scope and arguments, and as recorded. */
enum kernel_part { KERNEL_SHOWN, KERNEL_BASE, KERNEL_RAW };
struct sql_value sqlite_kernel(struct export_writer *w, const struct kernel_name *name,
                               uint64_t number, enum kernel_part part);

/* Returns the sizes of an operator's inputs, or NULL. */
struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs);

void sqlite_texts_release(struct export_writer *w);

/* Writes a stack's frames: to OSRT_CALLCHAINS, once, or, if `sample` is not 0, for that sample.
 * Returns their id; 0: no stack. */
uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample);
void sqlite_chains_release(struct sqlite_chains *c);

/* ---- sqlite_facts.c ---- */

/* Write what is known before the events, and what only after them. */
void sqlite_head(struct export_writer *w);
void sqlite_tail(struct export_writer *w);

#endif
