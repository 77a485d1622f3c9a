/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that have no name until they are complete (O_TMPFILE, then linkat): a kill in between
 * leaves nothing behind. Some file systems do not support them, and some sandboxes lack /proc:
 * callers need a fallback.
 */
#ifndef GPUPROF_INJECT_UNNAMED_H
#define GPUPROF_INJECT_UNNAMED_H

/* Opens a file (0600, O_RDWR) that will be at `path`. Returns its descriptor, or -1 if that is not
 * possible there. */
int unnamed_open(const char *path);

/* Gives the file its name. Returns 0 if it has one already, and -1 with errno set on failure
 * (EEXIST: the name exists). */
int unnamed_link(int fd, const char *path);

#endif
