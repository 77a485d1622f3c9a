/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing at an offset, to the last byte, and files without a name. */
#ifndef GPUPROF_COLLECTOR_FILE_AT_H
#define GPUPROF_COLLECTOR_FILE_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The bytes read, less than `count` only at the file's end; or GPUPROF_IO (errno). */
ssize_t file_read_at(int fd, uint64_t offset, void *data, size_t count);

/* Where the file stands. 0 or an errno. */
int file_write_next(int fd, const void *data, size_t count);

/* 0 or GPUPROF_IO (errno). */
int file_write_at(int fd, uint64_t offset, const void *data, size_t count);

/* The first line of a regular file, or what of it there is room for, without its end; "" if there
 * is none. True: something was read. */
bool file_first_line(const char *path, char *line, size_t capacity);

/* $TMPDIR or /tmp: a view. */
const char *file_unnamed_folder(void);

/* Opens a file without a name there, to be closed; -1: errno. */
int file_unnamed(void);

#endif
