/* SPDX-License-Identifier: Apache-2.0 */
/* A data folder for `ctl` and `top`: its recording processes, the control and status files. */
#ifndef GPUPROF_COLLECTOR_CTL_FOLDER_H
#define GPUPROF_COLLECTOR_CTL_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "base/options.h"
#include "control_text.h"
#include "rank.h"
#include "stream.h"

/* Common options of verbs that query running processes. */
struct ctl_options {
    uint64_t pid;   /* 0: any */
    uint64_t rank;  /* RANK_NONE: any */
    double timeout; /* seconds; below 0: not given */
};

#define CTL_OPTIONS_USUAL                                                                          \
    {                                                                                              \
        .rank = RANK_NONE, .timeout = -1                                                           \
    }

extern const struct option ctl_options[];

struct ctl_process {
    char *path;                  /* owned; path of the stream file */
    struct stream_header header; /* its host without unusual characters */
    uint64_t rank;               /* RANK_NONE: not known; read if needed, or from the status */
    bool has_ended;
    bool is_meant;
    uint64_t command; /* id of the command that it should answer */
    bool has_answered;
    struct control_status status; /* the newest status that was read, if any */
};

struct ctl_folder {
    const char *path; /* a view */
    bool needs_ranks;
    double watched;                /* time of the last ctl_folder_watch; 0: never */
    struct ctl_process *processes; /* owned */
    uint32_t count;
};

/* Looks for new processes. Those on another machine count as running until their stream says that
 * they ended. Returns 0, GPUPROF_IO (errno) or GPUPROF_LIMIT. */
int ctl_folder_look(struct ctl_folder *f);
void ctl_folder_release(struct ctl_folder *f);

/* Prints one of these errors for that verb. Returns an exit code. */
enum exit_code ctl_folder_failed(const struct ctl_folder *f, const char *verb, int error);

/* Whether the options select the process. */
bool ctl_process_is_named(const struct ctl_process *p, const struct ctl_options *o);

/* Reads its status file. True: it is of this process. */
bool ctl_process_read(struct ctl_process *p);

/* Writes the commands to the control file, unless they are there: two instances may write it at the
 * same time. Returns 0, GPUPROF_IO (errno), or GPUPROF_NOT_OURS if the file there is no control
 * file. */
int ctl_folder_report(const struct ctl_folder *f, const struct control_command *commands,
                      size_t count);

/* Keeps all processes reporting their status; call it regularly. Returns as ctl_folder_report. */
int ctl_folder_watch(struct ctl_folder *f);

#endif
