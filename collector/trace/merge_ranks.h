/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `merge` share: merge.c writes traces and finds out what is in them,
 * merge_ranks.c one for each rank into a folder.
 */
#ifndef GPUPROF_COLLECTOR_MERGE_RANKS_H
#define GPUPROF_COLLECTOR_MERGE_RANKS_H

#include "trace/rank_files.h"
#include "trace/trace_writer.h"

struct merge {
    struct recording rec;
    struct progress progress;
    struct walk walk;
    struct call_tree tree;
    bool has_stacks;
    bool split;        /* a file per rank */
    bool surveys_each; /* what is known of a process is found out when its file is begun */
    struct steps steps;
    bool has_steps;  /* that are shown */
    bool made_steps; /* at all */
    struct select_wish wish;
    struct selection selection;
    bool is_cut; /* by it */
    bool sync_streams;
    bool counters;
    bool memory_events;
    bool is_hidden;
    uint64_t max_size;         /* of each trace; 0: any */
    struct thinning thinning;  /* of the one being written */
    struct walk_filter filter; /* that, and the selection's */
    enum left_out left_out;    /* what the slice is of, if it is left out by that */
    uint64_t left_out_count;
    bool is_too_small; /* max_size; that is said */
    const struct trace_format *format;
    struct trace_writer *writer; /* of the trace being written, and where it goes */
    struct output *out;
    uint64_t bytes;       /* of the trace that was written last */
    uint64_t room;        /* for the text of all traces */
    uint64_t text_bytes;  /* of the file that was written last */
    uint32_t large_count; /* traces that are more than viewers open */
    uint64_t large_bytes; /* of the largest of them */
    char *large_path;     /* owned: of the first */
    bool begun;
};

/* Writes one trace, and leaves what is to be said of it in *m; what went wrong is said at once. */
enum exit_code merge_write_file(struct merge *m, const char *path, struct trace_scope *scope);
void merge_say_written(struct merge *m, const char *path);

/* A file per process, by as many workers as the recording may have. What was found in them is then
 * in m->walk. */
enum exit_code merge_write_folder(struct merge *m, const char *folder,
                                  const struct rank_file *files);

#endif
