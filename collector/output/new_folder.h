/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder that a verb makes for its files. If it made it, and there is no file in it in the end,
 * it goes again: after an error, and when the verb is ended by Ctrl-C or the like.
 */
#ifndef GPUPROF_COLLECTOR_NEW_FOLDER_H
#define GPUPROF_COLLECTOR_NEW_FOLDER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

struct new_folder {
    const char *path; /* a view */
    bool is_made;
    bool is_watched;
    pthread_t thread;
    sigset_t ends;   /* signals that would end us */
    sigset_t before; /* what was blocked before */
};

/* 0, or -1 (errno): EEXIST if there is anything of that name, which is left as it is then. From now
 * on those signals wait. */
int new_folder_make(struct new_folder *f, const char *path);

/* They end us from now on, and the folder with us if it is empty. Not before all processes that do
 * a piece of the work are forked: this starts a thread. */
void new_folder_watch(struct new_folder *f);

/* In a process that was forked: signals are as they were, and the folder is the parent's. */
void new_folder_leave(struct new_folder *f);

/* All is written, or given up. */
void new_folder_end(struct new_folder *f);

#endif
