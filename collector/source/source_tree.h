/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of source code below a folder, for those who show lines beside what they cost. A
 * recording may name any path: text comes only from files that were found below the folder by
 * listing it, and no symbolic link below it is followed. Neither are folders of installed packages
 * looked into, nor those whose names begin with a dot. Memory: the paths of at most
 * SOURCE_FILES_MAX files that have a wanted name.
 */
#ifndef GPUPROF_COLLECTOR_SOURCE_TREE_H
#define GPUPROF_COLLECTOR_SOURCE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_FILES_MAX (1u << 17)
#define SOURCE_SEEN_MAX  (1u << 22) /* entries of folders that are looked at */
#define SOURCE_DEPTH_MAX 64
#define SOURCE_BYTES_MAX (4u << 20) /* of a file; larger ones are not shown */

struct source_tree {
    char *folder; /* owned: absolute, without a slash at its end */
    int fd;       /* of it */
    char **paths; /* owned: absolute, sorted from their ends */
    uint32_t count;
    uint32_t seen;
    bool is_cut; /* there were more than the maxima */
};

/* 0, or GPUPROF_IO (errno) if there is no such folder; source_tree_release in both cases. */
int source_tree_open(struct source_tree *t, const char *folder);
void source_tree_release(struct source_tree *t);

/* Lists the files whose last part is one of `names`, sorted by strcmp. 0 or GPUPROF_NO_MEMORY. */
int source_tree_list(struct source_tree *t, const char *const *names, uint32_t count);

enum source_match { SOURCE_NONE, SOURCE_ONE, SOURCE_SEVERAL };

/*
 * The file whose path has the longest tail of parts in common with `recorded`: its index. SEVERAL
 * if others have as long a one: *index is one of them. NONE, too, without memory.
 */
enum source_match source_tree_match(const struct source_tree *t, const char *recorded,
                                    uint32_t *index);

/* Its path below the folder; a view. */
const char *source_tree_path(const struct source_tree *t, uint32_t index);

struct source_text {
    char *bytes; /* owned */
    uint32_t length;
    uint32_t *starts; /* owned: where line n begins is starts[n - 1], and an end behind them */
    uint32_t line_count;
    uint64_t changed_ns; /* since 1970 */
};

/* Reads the file. 0, GPUPROF_IO (errno), GPUPROF_LIMIT if it is too large or no file any more, or
 * GPUPROF_NO_MEMORY; source_text_release in every case. */
int source_text_read(struct source_text *s, const struct source_tree *t, uint32_t index);
void source_text_release(struct source_text *s);

/* Line n, from 1 on, without its end. */
const char *source_line(const struct source_text *s, uint32_t n, size_t *length);

#endif
