/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the SQLite exporter share, bottom up: sql_base.c the database, sqlite_texts.c
 * StringIds, sqlite_chains.c stacks, sqlite_tables.h a function for each table of sql_tables.def
 * that inserts a row, sqlite_facts.c what stands beside the events, sqlite_writer.c the events.
 *
 * As in nsys' exports, times are ns since the session's start, which is the first event of all
 * recordings; a thread is its machine, pid and tid in one number; a correlation id is one process's
 * in all tables, so that they can be joined by it alone.
 *
 * The first error sticks: what makes a value or inserts a row does nothing more then.
 *
 * Memory: sql_base.h; the texts of StringIds as kernel_names.h bounds them, and 64 bytes for each;
 * 32 bytes a process; and where the host's stacks are recorded, a call tree (call_tree.h) and 72 to
 * 136 bytes for each different frame and stack.
 */
#ifndef GPUPROF_COLLECTOR_SQLITE_STATE_H
#define GPUPROF_COLLECTOR_SQLITE_STATE_H

#include "analyse/report_make.h"
#include "base/key_map.h"
#include "error.h"
#include "export/export_writer.h"
#include "export/sql_base.h"
#include "resolve/call_tree.h"

/* What a thread's or process's number is made of. */
#define GLOBAL_MACHINE_SHIFT 48
#define GLOBAL_PID_SHIFT     24
#define GLOBAL_MASK          0xffffffu

/* Numbers of StringIds of a frame; 0: not yet known. */
struct frame_texts {
    uint32_t symbol;
    uint32_t module;
};

/* Stacks as callchains; zeros to begin with. */
struct sqlite_chains {
    struct call_tree tree;
    bool has_tree;
    struct key_map told;       /* nodes of the tree whose frames are there */
    struct frame_texts *texts; /* owned, by number of a frame */
    uint32_t text_count;
};

struct export_writer {
    struct walk *walk;
    struct export_scope scope;
    struct sql_base *base;
    int error;                 /* the first; 0: none */
    uint64_t *machines;        /* owned, by process index: from 1 on */
    struct kernel_names texts; /* of StringIds, each once */
    struct key_map text_ids;   /* (text, what of it) -> its number in StringIds */
    uint64_t text_count;
    struct key_map told; /* (process, domain, category + 1) whose names are written */
    uint64_t end_ns;     /* of the last event, since the session's start */
    struct sqlite_chains chains;
    uint64_t sample_count; /* of COMPOSITE_EVENTS */
    bool has_os;           /* a row of OSRT_API */
};

/* Remembers what went wrong; a full map is no error: what is not in it is told again. */
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

/* Since the session's start; only a damaged file has a time before it. */
static inline struct sql_value sqlite_time(struct export_writer *w, uint64_t ns)
{
    uint64_t origin = w->walk->survey.origin_ns;
    uint64_t since = ns > origin ? ns - origin : 0;
    w->end_ns = since > w->end_ns ? since : w->end_ns;
    return sql_integer(since);
}

static inline uint64_t sqlite_machine(const struct export_writer *w, const struct process *p)
{
    return w->machines[p->index] << GLOBAL_MACHINE_SHIFT;
}

/* A thread of a process by its tid, whether or not it recorded anything; 0: the process. */
static inline struct sql_value sqlite_any(const struct export_writer *w, const struct process *p,
                                          uint64_t tid)
{
    uint64_t pid = (uint64_t)(p->shown_pid & GLOBAL_MASK) << GLOBAL_PID_SHIFT;
    return sql_integer(sqlite_machine(w, p) | pid | (tid & GLOBAL_MASK));
}

static inline struct sql_value sqlite_pid(const struct export_writer *w, const struct process *p)
{
    return sqlite_any(w, p, 0);
}

static inline struct sql_value sqlite_tid(const struct export_writer *w, const struct process *p,
                                          const struct thread *t)
{
    return sqlite_any(w, p, t->shown_tid);
}

/* ---- sqlite_texts.c: each gives a number of StringIds ---- */

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes);
struct sql_value sqlite_function(struct export_writer *w, const struct function *f);

/* A text of the walk's; NULL: `otherwise`. */
struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise);

/* A kernel's name as it is shown, without what stands around its own, and as it was recorded. */
enum kernel_part { KERNEL_SHOWN, KERNEL_BASE, KERNEL_RAW };
struct sql_value sqlite_kernel(struct export_writer *w, const struct kernel_name *name,
                               uint64_t number, enum kernel_part part);

/* The sizes of an operator's inputs; NULL where there are none. */
struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs);

void sqlite_texts_release(struct export_writer *w);

/* The frames of a process's stack, if it has any (else 0): of OSRT_CALLCHAINS, once, or of that
 * sample (not 0). Returns their id. */
uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample);
void sqlite_chains_release(struct sqlite_chains *c);

/* ---- sqlite_facts.c ---- */

/* What is known before the events, and what only after them. */
void sqlite_head(struct export_writer *w);
void sqlite_tail(struct export_writer *w);

#endif
