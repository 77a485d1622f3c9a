/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run --on-cycle: a command for each window of the job's, once it is whole in the data of all
 * processes that have steps. The processes say which one that is while they run (control_text.h),
 * and their files afterwards. One command at a time; the job does not wait for it.
 */
#ifndef GPUPROF_COLLECTOR_CYCLES_H
#define GPUPROF_COLLECTOR_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

#include "run/child.h"
#include "run/ctl_folder.h"

struct cycles {
    const char *command; /* for sh -c; NULL: nothing here is of use */
    const char *out;     /* the data folder; a view, as is the next */
    char **environment;  /* of the command, but for GPUPROF_OUT and GPUPROF_CYCLE */
    struct ctl_folder folder;
    uint64_t asked_s; /* when the processes were asked last; 0: never */
    uint64_t begun;   /* the number of the window whose command was started last */
    bool has_failed;  /* one did; later ones are not told of */
};

/* While the program runs, about once a second: starts what is due, by child_begin_helper. */
void cycles_tick(struct cycles *c, struct child *child);

/* After its end, `paths` are the recordings of this run: what is still due, one after another. */
void cycles_end(struct cycles *c, struct child *child, char **paths, uint32_t path_count);

#endif
