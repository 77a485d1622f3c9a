/* SPDX-License-Identifier: Apache-2.0 */
/* Complete reads and writes at an offset, unnamed temporary files, and lists of stream files. */
#ifndef GPUPROF_COLLECTOR_FILE_AT_H
#define GPUPROF_COLLECTOR_FILE_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the bytes read, less than `count` only at the file's end; or GPUPROF_IO (errno). */
ssize_t file_read_at(int fd, uint64_t offset, void *data, size_t count);

/* Writes at the file's current offset. Returns 0 or an errno. */
int file_write_next(int fd, const void *data, size_t count);

/* Returns 0 or GPUPROF_IO (errno). */
int file_write_at(int fd, uint64_t offset, const void *data, size_t count);

/* Copies `count` bytes from one file to another. Returns 0 or GPUPROF_IO (errno). */
int file_copy_at(int from, uint64_t offset, int to, uint64_t to_offset, uint64_t count);

/* Closes the file unless `fd` is negative; keeps errno. */
void file_close(int fd);

/* Reads the first bytes of a file that is not open. Returns their number, GPUPROF_IO (errno), or
 * GPUPROF_NOT_OURS if it is not a regular file. */
ssize_t file_head(const char *path, void *data, size_t count);

/* Reads the first line of a regular file, cut to fit. Returns false and "" if there is none. */
bool file_first_line(const char *path, char *line, size_t capacity);

/* Opens an unnamed temporary file in $TMPDIR or /tmp, which the caller closes. Returns -1 on
 * failure (errno). */
int file_unnamed(void);

/* Ends the program after one line: such a file cannot be made, written or read (errno). */
_Noreturn void file_unnamed_failed(void);

/* The stream files of a folder, sorted by name. */

#define PATH_LIST_MAX  65536
#define PATH_BELOW_MAX 4096 /* names in a folder that path_list_below looks at */

struct path_list {
    char **paths; /* owned */
    uint32_t count;
};

/* Returns 0, GPUPROF_IO (errno) or GPUPROF_LIMIT. Release it in every case. */
int path_list_read(struct path_list *list, const char *folder);
void path_list_release(struct path_list *list);

/* Returns how many subfolders of `folder` have stream files, without those whose names begin with a
 * dot. *first is one of them (owned; NULL: none). */
uint32_t path_list_below(const char *folder, char **first);

#endif
