/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every format of `export` provides: a table of functions, which are one consumer of the walk,
 * and its name in export_formats.def.
 */
#ifndef GPUPROF_COLLECTOR_EXPORT_WRITER_H
#define GPUPROF_COLLECTOR_EXPORT_WRITER_H

#include "base/options.h"
#include "model/event_walk.h"
#include "model/selection.h"
#include "model/steps.h"
#include "output/verb_output.h"

struct export_writer;
struct idle;

/* What is exported. */
struct export_scope {
    const struct options *options;
    const struct steps *steps;         /* complete; NULL: the format wants none */
    const struct selection *selection; /* the piece that is shown; NULL: everything */
    struct sums
        *sums; /* ANALYSES_COUNT, in order once `end` is called; NULL: the format wants none */
    struct idle *idle; /* named, once `end` is called; NULL: the format wants none, or no device */
};

struct export_format {
    struct file_format file;
    const char *help; /* what it is, for whom */
    bool is_random;   /* it is written here and there: only a file will do, not compressed */
    bool is_rows;     /* of an event, whatever other processes do: event_lanes.h will do */
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

#define EXPORT_FORMAT(name) extern const struct export_format name##_export;
#include "export/export_formats.def"
#undef EXPORT_FORMAT

extern const struct file_format *const export_formats[]; /* ended by NULL (export_verb.c) */

#endif
