/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of trace formats: a table of functions, in one writer file each, and a row in
 * trace_formats.def. */
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

/* What a trace shows. */
struct trace_scope {
    struct survey *survey;             /* NULL: no GPU work, or not shown */
    struct call_tree *tree;            /* NULL: stacks not shown */
    const struct process *only;        /* NULL: all processes */
    bool counters;                     /* with counter tracks */
    bool memory_events;                /* with instants for the blocks of PyTorch's allocator */
    bool binds_slices;                 /* slices encode most arrows: "bind_id" */
    bool has_own_samples;              /* the format has CPU samples that are not events */
    bool sync_streams;                 /* synchronisations show the stream that they waited for */
    const struct steps *steps;         /* known steps; NULL: those of gpuprof_step() */
    struct device_pids *pids;          /* shared with other traces; NULL: not shared */
    const char *name;                  /* trace name; NULL: none */
    uint64_t rank;                     /* RANK_NONE: that of the first process, or 0 */
    const bool *is_filtered;           /* set for filtered slices; NULL: no filter */
    const struct thinning *thinning;   /* NULL: none */
    const enum left_out *left_out;     /* kind of a slice filtered by that, else LEFT_OUT_KINDS */
    const struct selection *selection; /* NULL: everything */
};

struct trace_format {
    struct file_format file;
    const char *rank_ending; /* ending of a file per rank, after its first point; NULL: same */
    bool is_text;            /* viewers limit the length of text */
    /* Creates a writer. `out`, `walk` (already surveyed if needed) and what `scope` points to must
     * outlive it. Returns NULL without memory. */
    struct trace_writer *(*create)(struct output *out, struct walk *walk,
                                   const struct trace_scope *scope);
    /* Called before the first event; times are shown relative to origin_ns. Returns 0 or an
     * error. */
    int (*begin)(struct trace_writer *w, uint64_t origin_ns);
    /* Takes a slice. Returns 0 or an error. */
    int (*take)(struct trace_writer *w, const struct slice *s);
    /* Returns the uncompressed bytes written; NULL: the output's count. */
    uint64_t (*bytes)(const struct trace_writer *w);
    /* Called after the last event, when losses are known. Returns 0 or an error. */
    int (*end)(struct trace_writer *w);
    void (*free)(struct trace_writer *w);
};

#define TRACE_FORMAT(name) extern const struct trace_format name##_format;
#include "trace/trace_formats.def"
#undef TRACE_FORMAT

extern const struct file_format *const trace_formats[]; /* ended by NULL (merge.c) */

#endif
