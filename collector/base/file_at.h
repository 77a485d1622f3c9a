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

/* Copies `count` bytes from one file to another. 0 or GPUPROF_IO (errno). */
int file_copy_at(int from, uint64_t offset, int to, uint64_t to_offset, uint64_t count);

/* The first line of a regular file, or what of it there is room for, without its end; "" if there
 * is none. True: something was read. */
bool file_first_line(const char *path, char *line, size_t capacity);

/* $TMPDIR or /tmp: a view. */
const char *file_unnamed_folder(void);

/* Opens a file without a name there, to be closed; -1: errno. */
int file_unnamed(void);

/* The stream files of a folder, in the order of their names. */

#define PATH_LIST_MAX  65536
#define PATH_BELOW_MAX 4096 /* names in a folder that are looked at for folders of recordings */

struct path_list {
    char **paths; /* owned */
    uint32_t count;
};

/* 0, GPUPROF_IO (errno), GPUPROF_LIMIT or GPUPROF_NO_MEMORY; path_list_release in every case. */
int path_list_read(struct path_list *list, const char *folder);
void path_list_release(struct path_list *list);

/*
 * How many of the folders in `folder` have stream files; *newest is the one that changed last
 * (owned; NULL: none). Those with a dot in front, and what cannot be read, do not count. Is there
 * anything else in it? *is_used.
 */
uint32_t path_list_below(const char *folder, char **newest, bool *is_used);

#endif
