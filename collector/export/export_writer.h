/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of export formats: a table of functions, which act as one consumer of the walk, and
 * a row in export_formats.def. */
#ifndef GPUPROF_COLLECTOR_EXPORT_WRITER_H
#define GPUPROF_COLLECTOR_EXPORT_WRITER_H

#include "base/options.h"
#include "flame/flame.h"
#include "output/output.h"
#include "resolve/event_walk.h"
#include "resolve/selection.h"
#include "resolve/steps.h"

struct export_writer;
struct report;

/* The options that only `export` has. */
struct export_options {
    const char *format; /* format name; NULL: by the output file's name */
    enum flame_weight weight;
};

extern const struct verb export_verb;

/* What is exported. */
struct export_scope {
    const struct options *options;
    const struct export_format *format;
    const struct steps *steps;         /* complete */
    const struct selection *selection; /* NULL: everything */
    struct report *report;             /* for sqlite: its tables, once `end` is called */
};

struct export_format {
    struct file_format file;
    enum flame_format flame; /* of costs by stack, which `flame` writes, if `create` is NULL */
    bool is_rows; /* an event is a line, which does not depend on others: several workers make them.
                   * Else the file is not written in order, so it cannot be compressed, and it has
                   * the tables of the report: `end` is called when they are known */
    /* Creates a writer. `out`, the surveyed `walk` and what `scope` points to must outlive it. */
    struct export_writer *(*create)(struct output *out, struct walk *walk,
                                    const struct export_scope *scope);
    /* Takes a selected, complete slice. */
    void (*take)(struct export_writer *w, const struct slice *s);
    /* Called after the last event, when losses are known. */
    void (*end)(struct export_writer *w);
    void (*free)(struct export_writer *w);
};

/* ---- what all exporters of events say alike (event_lines.c) ---- */

/* Returns a number that identifies a call among all processes; 0: none. */
static inline uint64_t event_id(const struct process *p, uint32_t id)
{
    return id ? (uint64_t)p->index << 32 | id : 0;
}

/* Returns that number for a CALL. Nested calls may share an id, which must identify one call for
 * its work: the outer one. */
uint64_t event_call_id(struct walk *w, const struct event *e);

/* Returns "operator", "backward", "label", "module" or "traced". */
const char *event_op_kind(const struct host_span *op);

/* ---- formats ---- */

#define EXPORT_FORMAT(name) extern const struct export_format name##_export;
#include "export/export_formats.def"
#undef EXPORT_FORMAT

extern const struct file_format *const export_formats[]; /* ended by NULL (export_verb.c) */

#endif
