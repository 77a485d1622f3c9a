/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that have no name until they have their contents (O_TMPFILE, then linkat): a kill in
 * between leaves nothing behind. Not every file system has them, nor every sandbox /proc: callers
 * have another way.
 */
#ifndef GPUPROF_INJECT_UNNAMED_H
#define GPUPROF_INJECT_UNNAMED_H

/* A file (0600) where `path` is to be, opened O_RDWR. Its descriptor; -1: not possible there. */
int unnamed_open(const char *path);

/* Gives it its name; 0 too if the file has one. -1: not done (errno; EEXIST if there is a file). */
int unnamed_link(int fd, const char *path);

#endif
