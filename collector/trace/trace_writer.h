/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every trace format provides: a table of functions, one writer file each, and its name in
 * trace_formats.def.
 */
#ifndef GPUPROF_COLLECTOR_TRACE_WRITER_H
#define GPUPROF_COLLECTOR_TRACE_WRITER_H

#include "output/verb_output.h"
#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "resolve/selection.h"
#include "resolve/steps.h"
#include "trace/thinning.h"

struct trace_writer;
struct device_pids;

/* What a trace is to show. */
struct trace_scope {
    struct survey *survey;      /* NULL: no GPU work, or none is shown */
    struct call_tree *tree;     /* NULL: no stacks are shown */
    const struct process *only; /* NULL: all of the recording */
    bool counters;              /* with counter tracks */
    bool memory_events;         /* with an instant for each block of PyTorch's allocator */
    bool binds_slices;          /* most arrows are said by the slices at their ends: "bind_id" */
    bool has_own_samples;       /* the format has samples of the CPU that are no events */
    bool sync_streams;          /* synchronisations have the stream that they waited for */
    const struct steps *steps;  /* of the program; NULL: those of gpuprof_step() as they come */
    struct device_pids *pids; /* of all traces that are shown as one; NULL: this one stands alone */
    const char *name;         /* of the trace, NULL: none */
    uint64_t rank;            /* RANK_NONE: that of the first process, or 0 */
    const bool *is_hidden;    /* said of each slice: it is not to be shown; NULL: all are */
    const struct thinning *thinning;   /* NULL: none */
    const enum left_out *left_out;     /* what a hidden slice is of, if it is hidden by that; else
                                        * LEFT_OUT_KINDS */
    const struct selection *selection; /* the piece that is shown; NULL: everything */
};

struct trace_format {
    struct file_format file;
    const char *rank_ending; /* of a file for one rank, behind its first point; NULL: the same */
    bool for_perfetto;       /* which takes an archive of such files for one trace */
    bool is_text;            /* whose length viewers bound */
    unsigned needs;          /* enum walk_need, with work of a device; else RANGES and OPS */
    /* NULL: no memory. `out`, `walk`, which has been surveyed if there is anything that it could
     * have learnt, and what `scope` points at must stay. */
    struct trace_writer *(*create)(struct output *out, struct walk *walk,
                                   const struct trace_scope *scope);
    /* Before the first event; all times will be shown relative to origin_ns. 0 or an error. */
    int (*begin)(struct trace_writer *w, uint64_t origin_ns);
    /* 0 or an error. */
    int (*take)(struct trace_writer *w, const struct slice *s);
    /* What is written so far, not compressed; NULL: as the output says. */
    uint64_t (*bytes)(const struct trace_writer *w);
    /* After the last event, when the losses are known. 0 or an error. */
    int (*end)(struct trace_writer *w);
    void (*free)(struct trace_writer *w);
};

#define TRACE_FORMAT(name) extern const struct trace_format name##_format;
#include "trace/trace_formats.def"
#undef TRACE_FORMAT

extern const struct file_format *const trace_formats[]; /* ended by NULL (merge.c) */

#endif
