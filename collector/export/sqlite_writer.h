/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the SQLite exporter share: sqlite_writer.c the events, sqlite_facts.c what
 * stands beside them (processes, devices, enumerations, losses, steps), sqlite_idle.c where the
 * devices' time went, sqlite_sums.c the report's tables of sums, sqlite_texts.c StringIds,
 * sqlite_chains.c stacks, sql_base.c the database.
 *
 * As in nsys' exports, times are ns since the session's start, which is the first event of all
 * recordings; a thread is its machine, pid and tid in one number; a correlation id is one process's
 * in all tables, so that they can be joined by it alone.
 *
 * Memory: sql_base.h; the texts of StringIds as kernel_names.h bounds them, and 64 bytes for each;
 * 32 bytes a process; and where the host's stacks are recorded, a call tree (call_tree.h) and 72 to
 * 136 bytes for each different frame and stack.
 */
#ifndef GPUPROF_COLLECTOR_SQLITE_WRITER_H
#define GPUPROF_COLLECTOR_SQLITE_WRITER_H

#include "analyse/report_make.h"
#include "base/key_map.h"
#include "export/export_writer.h"
#include "export/sql_base.h"
#include "model/call_tree.h"

/* What a thread's or process's number is made of. */
#define GLOBAL_MACHINE_SHIFT 48
#define GLOBAL_PID_SHIFT     24
#define GLOBAL_MASK          0xffffffu
#define GLOBAL_MACHINES_MAX  0x7fffu

enum nsys_event_type {
    NSYS_NVTX_CATEGORY = 33,
    NSYS_NVTX_MARK = 34,
    NSYS_NVTX_PUSH_POP = 59,
    NSYS_NVTX_START_END = 60,
    NSYS_NVTX_DOMAIN = 75,
};

enum nsys_event_class { NSYS_RUNTIME, NSYS_DRIVER, NSYS_OS = 27 };
enum nsys_thread_state { NSYS_STATE_UNKNOWN, NSYS_STATE_RUNNING };

struct frame_texts;

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
    uint64_t *machines;        /* owned, by process index: from 1 on */
    struct kernel_names texts; /* of StringIds, each once */
    struct key_map text_ids;   /* (text, what of it) -> its number in StringIds */
    uint64_t text_count;
    uint32_t *function_ids; /* owned, by function index; 0: none yet */
    uint32_t function_count;
    struct key_map told; /* (process, domain, category + 1) whose names are written */
    uint64_t end_ns;     /* of the last event, since the session's start */
    struct sqlite_chains chains;
    uint64_t sample_count; /* of COMPOSITE_EVENTS */
    bool has_os;           /* a row of OSRT_API */
};

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

static inline uint64_t sqlite_pid(const struct export_writer *w, const struct process *p)
{
    return sqlite_machine(w, p) | (uint64_t)(p->shown_pid & GLOBAL_MASK) << GLOBAL_PID_SHIFT;
}

static inline uint64_t sqlite_tid(const struct export_writer *w, const struct process *p,
                                  const struct thread *t)
{
    return sqlite_pid(w, p) | (t->shown_tid & GLOBAL_MASK);
}

/* ---- sqlite_texts.c: each is 0 or an error; *id is made a number of StringIds ---- */

int sqlite_text(struct export_writer *w, const char *text, size_t bytes, struct sql_value *id);
int sqlite_function(struct export_writer *w, const struct function *f, struct sql_value *id);

/* A text of the walk's; NULL: `otherwise`. */
int sqlite_name(struct export_writer *w, const struct kernel_name *name, const char *otherwise,
                struct sql_value *id);

/* A kernel's name as it is shown, without what stands around its own, and as it was recorded. */
int sqlite_kernel(struct export_writer *w, const struct kernel_name *name, uint64_t number,
                  struct sql_value *demangled, struct sql_value *base, struct sql_value *mangled);

/* The sizes of an operator's inputs; NULL where there are none. */
int sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs, struct sql_value *id);

void sqlite_texts_release(struct export_writer *w);

/* ---- sqlite_chains.c ---- */

/* The frames of a process's stack, if it has any (else 0 in *id): of OSRT_CALLCHAINS, once, or of
 * that sample (not 0). 0 or an error. */
int sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack, uint64_t sample,
                 uint64_t *id);
void sqlite_chains_release(struct sqlite_chains *c);

/* ---- sqlite_facts.c: 0 or an error ---- */

/* What is known before the events, and what only after them. */
int sqlite_head(struct export_writer *w);
int sqlite_tail(struct export_writer *w);

/* "the NVTX range `range` is of": names of its domain and category, each once. */
int sqlite_range_names(struct export_writer *w, const struct range *range, uint64_t at_ns);

/* ---- sqlite_idle.c: likewise, behind them; nothing where the scope has no idle time ---- */

int sqlite_idle(struct export_writer *w);

/* ---- sqlite_sums.c: likewise, a table for each that the report adds up ---- */

int sqlite_sums(struct export_writer *w, struct sums *s);

#endif
