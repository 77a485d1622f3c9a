/* SPDX-License-Identifier: Apache-2.0 */
/* One trace of `merge`, of all processes or of one, no larger than asked for. */
#ifndef GPUPROF_COLLECTOR_MERGE_TRACE_H
#define GPUPROF_COLLECTOR_MERGE_TRACE_H

#include "base/message.h"
#include "output/output.h"
#include "resolve/selection.h"
#include "trace/trace_writer.h"

/*
 * One trace file per process, as HTA and TensorBoard want them: rank_N with the format's ending for
 * the process that is rank N, and in a folder of their own, which those two do not look into, the
 * processes that share a rank with it or have none. Of several jobs each has a folder, job_N.
 */
#define RANK_FILE_BYTES 96

struct rank_file {
    struct process *process;
    uint64_t rank;              /* as the file says it */
    bool other;                 /* in the folder of the others */
    uint32_t stem;              /* so many bytes of `name` are without the ending */
    char name[RANK_FILE_BYTES]; /* with its folders, without .gz */
};

/* What the options of `merge` say beyond those of all verbs that read recordings. */
struct merge_options {
    const char *format; /* of the trace: its name; NULL: as the name of the file has it */
    bool per_rank;
    bool sync_streams;
    bool no_counters;
    bool memory_events;
    uint64_t max_size; /* bytes of text; 0: any */
};

extern const struct verb merge_verb;
struct merge;

/* What is so of all traces. */
struct merge_kind {
    bool split;      /* a file per rank */
    bool cut;        /* to the piece that is selected */
    bool stepped;    /* `steps` are made */
    bool with_steps; /* and shown */
    bool with_stacks;
};

/* The trace that is being written, or was last. */
struct merge_one {
    struct trace_writer *writer;
    struct output *out;
    const char *path; /* NULL: standard output */
    bool begun;
    bool is_hidden;      /* the slice */
    bool weighs;         /* it is only being weighed */
    uint64_t bytes;      /* of the trace */
    uint64_t text_bytes; /* of its file */
};

/* What --max-size leaves out of it. */
struct merge_fit {
    struct thinning thinning;
    struct walk_filter filter; /* that, and the selection's */
    enum left_out left_out;    /* what the slice is of, if it is left out by that */
    uint64_t left_out_count;
    bool is_too_small; /* the size; that is said */
};

/* Traces that are more than viewers open. */
struct merge_large {
    bool said; /* that there is one, and what to do about it */
    uint32_t count;
    uint64_t bytes; /* of the largest of them */
    char *path;     /* owned: of the first */
};

struct merge {
    const struct merge_options *own;
    const struct trace_format *format;
    struct recording rec;
    struct progress progress;
    struct walk walk;
    struct call_tree tree;
    struct steps steps;
    struct select_wish wish;
    struct selection selection;
    struct merge_kind is;
    struct merge_one one;
    struct merge_fit fit;
    struct merge_large large;
    uint64_t room; /* for the text of all traces */
};

/* What the walk is to show: the piece, and no more than --max-size leaves. */
const struct walk_filter *merge_filter(struct merge *m);

/* Writes it of the processes in scope, into an output that stays the caller's. 0 or an error, which
 * is said. */
int merge_write_trace(struct merge *m, struct output *out, struct trace_scope *scope);

/* Ends what was written to `path`, with that error or 0. Of a piece in which nothing is nothing is
 * kept, if it is `all` that is written. */
enum exit_code merge_close(const struct merge *m, struct output *out, const char *path, int error,
                           bool all);

/* Writes one trace into a file, and leaves what is to be said of it in *m; what went wrong is said
 * at once. */
enum exit_code merge_write_file(struct merge *m, const char *path, struct trace_scope *scope);

/* What is being written to `path` is more than viewers open: said once, early, so that one can stop
 * it and ask for less. */
void merge_say_growing(struct merge *m, const char *path);

/* What was written last: what is left out of it is said, and merge_say_large says which of all are
 * more than viewers open. */
void merge_say_written(struct merge *m, const char *path);
void merge_say_large(const struct merge *m);

/* A trace for each rank, in one archive; or a file for each in a folder, by as many workers as the
 * recording may have. What was found in them is then in m->walk. (merge_ranks.c)
 */
enum exit_code merge_write_archive(struct merge *m, const char *path,
                                   const struct rank_file *files);
enum exit_code merge_write_folder(struct merge *m, const char *folder,
                                  const struct rank_file *files);

#endif
