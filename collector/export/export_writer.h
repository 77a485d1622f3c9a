/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every format of `export` provides: a table of functions, which are one consumer of the walk,
 * and its name in export_formats.def.
 */
#ifndef GPUPROF_COLLECTOR_EXPORT_WRITER_H
#define GPUPROF_COLLECTOR_EXPORT_WRITER_H

#include "base/options.h"
#include "flame/flame.h"
#include "output/verb_output.h"
#include "resolve/event_walk.h"
#include "resolve/selection.h"
#include "resolve/steps.h"

struct export_writer;
struct report;

/* What the options of `export` say beyond those of all verbs that read recordings. */
struct export_options {
    const char *format; /* its name; NULL: as the name of the file has it */
    enum flame_weight weight;
};

extern const struct verb export_verb;

/* What is exported. */
struct export_scope {
    const struct options *options;
    const struct steps *steps;         /* complete; NULL: the format wants none */
    const struct selection *selection; /* the piece that is shown; NULL: everything */
    struct report *report; /* its tables, once `end` is called, if the format wants some */
    enum flame_weight weight;
};

struct export_format {
    struct file_format file;
    bool is_random; /* it is written here and there: only a file will do, not compressed */
    bool is_rows;   /* of an event, whatever other processes do: event_lanes_run will do */
    bool wants_steps;
    bool wants_tables; /* of the report: idle time, sums. `end` is called when all are known */
    unsigned needs;    /* enum walk_need, with work of a device; else without that */
    /* NULL: no memory, or out->error. `out`, `walk`, which has been surveyed, and what `scope`
     * points at must stay. */
    struct export_writer *(*create)(struct output *out, struct walk *walk,
                                    const struct export_scope *scope);
    /* Each slice that is shown, complete. 0 or an error; errors of *out stay there. */
    int (*take)(struct export_writer *w, const struct slice *s);
    /* After the last event, when the losses are known. 0 or an error. */
    int (*end)(struct export_writer *w);
    void (*free)(struct export_writer *w);
};

/* ---- what all exporters of events say alike (event_lines.c) ---- */

/* A number that means one call in all processes' events; 0: none. */
static inline uint64_t event_id(const struct process *p, uint32_t id)
{
    return id ? (uint64_t)p->index << 32 | id : 0;
}

/* That of a CALL: a call inside another may have its id, too, by which work is to find one call:
 * the outer one. 0 or an error. */
int event_call_id(struct walk *w, const struct event *e, uint64_t *id);

/* "operator", "backward", "label", "module" or "traced". */
const char *event_op_kind(const struct op *op);

/* What steps of that kind are made of. */
const char *event_step_name(enum step_kind kind, const struct step *step);

/* ---- the rows of several workers (event_lanes.c) ---- */

/*
 * As walk_run, of a walk that has surveyed or only what is shared, and for one consumer, which
 * writes into *out; its `end` runs here. *steps, if not NULL, are found before: the consumer has
 * them, those of a worker without `made_of`. *found, of a selection that filters the walk, is
 * the sum over all. 0 or an error, which is said, also where *out has one.
 */
int event_lanes_run(struct walk *w, struct steps *steps, const struct consumer *consumer,
                    struct output *out, struct selection_found *found);

/* ---- formats ---- */

#define EXPORT_FORMAT(name) extern const struct export_format name##_export;
#include "export/export_formats.def"
#undef EXPORT_FORMAT

extern const struct file_format *const export_formats[]; /* ended by NULL (export_verb.c) */

#endif
