/* SPDX-License-Identifier: Apache-2.0 */
/* What `ctl` knows of a data folder: the processes that record there, and its two kinds of files.
 */
#ifndef GPUPROF_COLLECTOR_CTL_FOLDER_H
#define GPUPROF_COLLECTOR_CTL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/message.h"
#include "base/options.h"
#include "control_text.h"
#include "rank.h"
#include "stream.h"

/* What the options of verbs that ask running processes say alike. */
struct ctl_options {
    uint64_t pid;   /* 0: any */
    uint64_t rank;  /* RANK_NONE: any */
    double timeout; /* seconds; below 0: not said */
};

#define CTL_OPTIONS_USUAL                                                                          \
    {                                                                                              \
        .rank = RANK_NONE, .timeout = -1                                                           \
    }

extern const struct option ctl_options[];

struct ctl_process {
    char *path; /* owned; of the stream file */
    struct stream_header header;
    uint64_t rank; /* RANK_NONE; known where it was asked for, or the status says it */
    bool has_ended;
    bool is_meant;
    uint64_t command; /* the id of what it is to answer */
    bool has_answered;
    struct control_status status; /* the newest that was read, if one was */
};

struct ctl_folder {
    const char *path; /* a view */
    bool needs_ranks;
    double watched;                /* when ctl_folder_watch asked last; 0: never */
    struct ctl_process *processes; /* owned */
    uint32_t count;
};

/*
 * Looks for processes that are not known yet; those that run on another machine count as running
 * until their stream says that they have ended. 0, GPUPROF_IO (errno), GPUPROF_LIMIT or
 * GPUPROF_NO_MEMORY. ctl_folder_release in every case.
 */
int ctl_folder_look(struct ctl_folder *f);
void ctl_folder_release(struct ctl_folder *f);

/* Says what one of these errors was, for that verb; an exit code. */
enum exit_code ctl_folder_failed(const struct ctl_folder *f, const char *verb, int error);

/* Is it one that was asked for? */
bool ctl_process_is_named(const struct ctl_process *p, const struct ctl_options *o);

/* Reads its status. True: there is one of this process. */
bool ctl_process_read(struct ctl_process *p);

/* The same. Has it answered, or ended, by now? */
void ctl_process_look(struct ctl_process *p);

/* Sees to it that these commands stand in the control file: two of us may have written it at the
 * same time. 0, GPUPROF_IO (errno), or GPUPROF_NOT_OURS: what is there is no control file. */
int ctl_folder_report(const struct ctl_folder *f, const struct control_command *commands,
                      size_t count);

/* Has all processes go on saying what they do: who calls this now and then. As ctl_folder_report.
 */
int ctl_folder_watch(struct ctl_folder *f);

/* ---- what `top` prints (top_print.c) ---- */

enum top_format { TOP_TEXT, TOP_JSON, TOP_OPENMETRICS }; /* in the order of --format */

enum top_state {
    TOP_RECORDING,
    TOP_STOPPED, /* by the program or gpuprof ctl */
    TOP_BETWEEN, /* its windows */
    TOP_SILENT,  /* it has not answered, lately or ever */
    TOP_ENDED,
};

struct top_row {
    const struct ctl_process *process; /* its status counts unless the state is TOP_SILENT, ... */
    enum top_state state;              /* ... or it has ended */
    /* Since the answer before this one; NAN: not known. */
    double calls_per_second;
    double launches_per_second;
    double busy_share; /* of its devices' time */
};

/* Rows stand by rank, then by process; `width` of a terminal in columns and `height` in lines, 0:
 * any. */
void top_print(FILE *out, enum top_format format, const struct top_row *rows, uint32_t count,
               uint32_t width, uint32_t height);

#endif
