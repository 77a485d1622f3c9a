/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears under its name only when complete, replacing the old one. Until then it has
 * no name and vanishes if we are killed. Without such support in the file system, its temporary
 * name ends in ".tmp-" and our pid.
 */
#ifndef GPUPROF_COLLECTOR_NEW_FILE_H
#define GPUPROF_COLLECTOR_NEW_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct new_file {
    int fd;          /* the caller writes to it; -1: not open */
    char *path;      /* owned; the final name */
    char *temporary; /* owned */
    bool unnamed;    /* it does not even have the temporary name */
};

/* Returns 0 or GPUPROF_IO (errno); there is nothing to drop after an error. */
int new_file_open(struct new_file *f, const char *path, mode_t mode);

/*
 * Names and closes the file; `durable`: once its content is on disk. Returns 0 or GPUPROF_IO
 * (errno); on an error the file is removed. Nothing to drop in any case.
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

#endif
