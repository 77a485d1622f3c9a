/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears under its name when it is whole, in place of what was there. Until then it
 * has no name and goes by itself if we are killed; where the file system has no such thing, its
 * name ends in ".tmp-" and our pid.
 */
#ifndef GPUPROF_COLLECTOR_NEW_FILE_H
#define GPUPROF_COLLECTOR_NEW_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct new_file {
    int fd;          /* to be written by the caller; -1: not open */
    char *path;      /* owned; the final name */
    char *temporary; /* owned */
    bool unnamed;    /* it has not even the temporary name yet */
};

/* 0, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY; then there is nothing to drop. */
int new_file_open(struct new_file *f, const char *path, mode_t mode);

/*
 * Gives it its name and closes it; `durable`: when both its content and its name are on disk. 0 or
 * GPUPROF_IO (errno): then the file is gone, but for a folder that could not be written to disk.
 * Nothing to drop in any case.
 */
int new_file_place(struct new_file *f, bool durable);

/* Removes it; nothing to do if it is not open. errno stays. */
void new_file_drop(struct new_file *f);

/*
 * Puts in the place of `path` what write(context, fd) makes of it, when it is on disk, with the
 * owner and mode of `like` (NULL: of what is there), if we may: root reads for others, who are to
 * be able to go on with it. What `write` returned, with 0 and less of which all stays as it was, or
 * an error as above.
 */
typedef int new_file_write_fn(void *context, int fd);
int new_file_replace(const char *path, const struct stat *like, new_file_write_fn *write,
                     void *context);

/*
 * A folder that a verb makes for its files. If it made it, and there is no file in it in the end,
 * it goes again: after an error, and when the verb is ended by Ctrl-C or the like.
 */
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
