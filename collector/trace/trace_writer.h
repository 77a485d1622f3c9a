/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of trace formats: a table of functions, in one writer file each, and a row in
 * trace_formats.def. */
#ifndef GPUPROF_COLLECTOR_TRACE_WRITER_H
#define GPUPROF_COLLECTOR_TRACE_WRITER_H

#include "base/key_map.h"
#include "output/output.h"
#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "resolve/selection.h"
#include "resolve/steps.h"

/*
 * What merge --max-size leaves out: short events. Everything with a duration (calls, work, ranges,
 * operators, library calls, marks, host activities) stays if it lasts at least `all_ns`; of those
 * from `some_ns` on, an evenly spread share stays. Failed and open calls stay, and so do all other
 * events. A first pass weighs the text of each event by duration.
 */
#define THINNING_WEIGHTS (64 * 8) /* eight per octave of ns */

/* Kinds left out; host: samples, and records of RECORD_SAMPLE's kind. */
enum left_out_kind {
    LEFT_OUT_WORK,
    LEFT_OUT_CALLS,
    LEFT_OUT_RANGES,
    LEFT_OUT_HOST,
    LEFT_OUT_KINDS
};

/* A slice that --max-size leaves out, or may leave out. */
struct left_out {
    enum left_out_kind kind; /* LEFT_OUT_KINDS: none */
    uint64_t begin_ns;
    uint64_t ns;
    uint32_t thread;
};

/* Returns what a step is made of. */
static inline const char *step_made_of(const struct steps *steps, const struct step *step)
{
    return step->made_of                 ? step->made_of->shown
           : steps->kind == STEPS_CALLED ? "gpuprof_step"
                                         : "launches of a graph";
}

struct thinning {
    bool weighs; /* first pass: nothing is left out yet */
    uint64_t all_ns;
    uint64_t some_ns;
    uint64_t share; /* in units of 2^-32 */
    uint64_t weights[THINNING_WEIGHTS];
    uint64_t weighed;
};

struct trace_writer;

#define DEVICES_NUMBERED 64 /* readers know ordinals up to 63 */

/* The options that only `merge` has. */
struct merge_options {
    const char *format; /* trace format; NULL: by the output file's name */
    bool per_rank;
    bool sync_streams;
    bool no_counters;
    bool memory_events;
    uint64_t max_size; /* bytes of text; 0: no limit */
};

/* What a trace shows. */
struct trace_scope {
    struct survey *survey;      /* NULL: no GPU work, or not shown */
    struct call_tree *tree;     /* NULL: stacks not shown */
    const struct process *only; /* NULL: all processes */
    const struct merge_options *options;
    bool for_perfetto;                 /* slices encode most arrows ("bind_id"), and CPU samples
                                        * are no events */
    const struct steps *steps;         /* NULL: not shown */
    uint32_t *owners;                  /* in an archive, whose members viewers may show as one
                                        * trace: by ordinal, the process index + 1 whose device has
                                        * that number as its pid; else NULL */
    const char *name;                  /* trace name; NULL: none */
    uint64_t rank;                     /* RANK_NONE: that of the first process, or 0 */
    const struct thinning *thinning;   /* NULL: none */
    const struct left_out *left_out;   /* the current slice, if that leaves it out */
    const struct selection *selection; /* NULL: everything */
};

struct trace_format {
    struct file_format file;
    const char *rank_ending; /* ending of a file per rank, after its first point; NULL: same */
    bool is_text;            /* viewers limit the length of text */
    /* Creates a writer; times are shown relative to the origin of the surveyed `walk`. `out`,
     * `walk` and what `scope` points to must outlive it. */
    struct trace_writer *(*create)(struct output *out, struct walk *walk,
                                   const struct trace_scope *scope);
    void (*take)(struct trace_writer *w, const struct slice *s);
    /* Returns the uncompressed bytes written; NULL: the output's count. */
    uint64_t (*bytes)(const struct trace_writer *w);
    /* Called after the last event, when losses are known. */
    void (*end)(struct trace_writer *w);
    void (*free)(struct trace_writer *w);
};

#define TRACE_FORMAT(name) extern const struct trace_format name##_format;
#include "trace/trace_formats.def"
#undef TRACE_FORMAT

extern const struct file_format *const trace_formats[]; /* ended by NULL (merge.c) */

#endif
