/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one trace of `merge`, of all processes or of one, within the requested size. */
#ifndef GPUPROF_COLLECTOR_MERGE_TRACE_H
#define GPUPROF_COLLECTOR_MERGE_TRACE_H

#include "base/message.h"
#include "output/output.h"
#include "resolve/selection.h"
#include "trace/trace_writer.h"

extern const struct verb merge_verb;
struct merge;

struct merge_one {
    struct trace_writer *writer;
    struct output *out;
    const char *path; /* NULL: standard output */
    bool weighs;      /* only measures the size */
    bool is_large;    /* too large for most viewers */
    uint64_t bytes;   /* of the trace */
};

/* What --max-size leaves out. */
struct merge_fit {
    struct thinning thinning;
    struct left_out left_out; /* the current slice */
    uint64_t left_out_count;
};

struct merge {
    const struct merge_options *own;
    const struct trace_format *format;
    struct recording rec;
    struct walk walk;
    struct call_tree tree;
    struct steps steps;
    struct select_request request;
    struct selection selection;
    bool split; /* a file per rank */
    bool cut;   /* only the selection */
    bool with_steps;
    bool with_stacks;
    struct merge_one one;
    struct merge_fit fit;
    bool said_large; /* that a trace is too large for viewers */
    uint64_t room;   /* left for the text of all traces */
};

/* Writes the trace of the processes in scope; the caller owns the output. Returns 0, or an error
 * after a message. */
int merge_write_trace(struct merge *m, struct output *out, struct trace_scope *scope);

/* Finishes the output at `path` with that error or 0. Removes an empty trace of a selection if it
 * is all the output. */
enum exit_code merge_close(const struct merge *m, struct output *out, const char *path, int error,
                           bool all);

/* Writes one trace file; reports failures at once. */
enum exit_code merge_write_file(struct merge *m, const char *path, struct trace_scope *scope);

/* Warns once, early, that the trace at `path` is too large for viewers, so that the user can stop
 * and request less. */
void merge_say_large(struct merge *m, const char *path);

/* Reports what the last trace left out. */
void merge_say_left_out(const struct merge *m, const char *path);

/* Writes a trace for each rank: into one archive, or as files in a folder, with the recording's
 * number of workers; `cycle` is the window number for their names, 0: none. Their findings are then
 * in m->walk. (merge_ranks.c) */
enum exit_code merge_write_archive(struct merge *m, const char *path);
enum exit_code merge_write_folder(struct merge *m, const char *folder, uint64_t cycle);

#endif
