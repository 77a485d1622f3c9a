/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears under its name only when complete, replacing the old one. Until then it has
 * no name and vanishes if we are killed. Without such support in the file system, its temporary
 * name ends in ".tmp-" and our pid.
 */
#ifndef GPUPROF_COLLECTOR_NEW_FILE_H
#define GPUPROF_COLLECTOR_NEW_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct new_file {
    int fd;          /* the caller writes to it; -1: not open */
    char *path;      /* owned; the final name */
    char *temporary; /* owned */
    bool unnamed;    /* it does not even have the temporary name */
};

/* Returns 0, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY; there is nothing to drop after an error. */
int new_file_open(struct new_file *f, const char *path, mode_t mode);

/*
 * Names and closes the file; `durable`: after content and name are on disk. Returns 0 or GPUPROF_IO
 * (errno); on an error the file is removed, unless only the folder could not be synced. Nothing to
 * drop in any case.
 */
int new_file_place(struct new_file *f, bool durable);

/* Removes the file; does nothing if it is not open. Preserves errno. */
void new_file_drop(struct new_file *f);

/*
 * Replaces `path` durably by what write(context, fd) writes. Keeps owner and mode of `like` (NULL:
 * of the old file) if permitted, since root may read for other users. Returns what `write` returned
 * (0 or less: nothing changed), or an error as above.
 */
typedef int new_file_write_fn(void *context, int fd);
int new_file_replace(const char *path, const struct stat *like, new_file_write_fn *write,
                     void *context);

/* A folder that a verb creates for its files. If it created the folder and the folder stays empty,
 * after an error or Ctrl-C and the like, it removes it. */
struct new_folder {
    const char *path; /* a view */
    bool is_made;
    bool is_watched;
    pthread_t thread;
    sigset_t ends;   /* signals that would end us */
    sigset_t before; /* signal mask before */
};

/* Returns 0, or -1 (errno): EEXIST if the name exists, which leaves it alone. Blocks the signals
 * from now on. */
int new_folder_make(struct new_folder *f, const char *path);

/* From now on, the signals end us and remove an empty folder. Starts a thread, so all workers must
 * be forked before. */
void new_folder_watch(struct new_folder *f);

/* In a forked process: restores the signals; the folder stays the parent's. */
void new_folder_leave(struct new_folder *f);

/* Call it when everything is written, or given up. */
void new_folder_end(struct new_folder *f);

#endif
