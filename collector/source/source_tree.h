/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files below a folder, to show lines beside their costs. A recording may name any path, so
 * only files found by listing the folder are read, and symbolic links below it are not followed.
 * Folders of installed packages and names that begin with a dot are skipped. Memory: paths of at
 * most SOURCE_FILES_MAX files with a wanted name.
 */
#ifndef GPUPROF_COLLECTOR_SOURCE_TREE_H
#define GPUPROF_COLLECTOR_SOURCE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_FILES_MAX (1u << 17)
#define SOURCE_SEEN_MAX  (1u << 22) /* folder entries examined */
#define SOURCE_DEPTH_MAX 64
#define SOURCE_BYTES_MAX (4u << 20) /* of a file; larger ones are not shown */

struct source_tree {
    char *folder; /* owned: absolute, without a slash at its end */
    int fd;       /* of the folder */
    char **paths; /* owned: absolute */
    uint32_t count;
    uint32_t seen;
    bool is_cut; /* a maximum was reached */
};

/* Returns 0 or GPUPROF_IO (errno); call source_tree_release in both cases. */
int source_tree_open(struct source_tree *t, const char *folder);
void source_tree_release(struct source_tree *t);

/* Lists the files with a name in the sorted `names`. */
void source_tree_list(struct source_tree *t, const char *const *names, uint32_t count);

enum source_match { SOURCE_NONE, SOURCE_ONE, SOURCE_SEVERAL };

/* Sets *index to the file that shares the most trailing parts. SEVERAL: others share as many. */
enum source_match source_tree_match(const struct source_tree *t, const char *recorded,
                                    uint32_t *index);

/* Returns the path relative to the folder, a view. */
const char *source_tree_path(const struct source_tree *t, uint32_t index);

struct source_text {
    char *bytes; /* owned */
    uint32_t length;
    uint32_t *starts; /* owned: line n begins at starts[n - 1]; one more entry for the end */
    uint32_t line_count;
    uint64_t changed_ns; /* since 1970 */
};

/* Reads the file. Returns 0, GPUPROF_IO (errno), or GPUPROF_LIMIT if it is too large or no longer
 * a regular file; call source_text_release in every case. */
int source_text_read(struct source_text *s, const struct source_tree *t, uint32_t index);
void source_text_release(struct source_text *s);

/* Returns line n, from 1, without its newline. */
const char *source_line(const struct source_text *s, uint32_t n, size_t *length);

/*
 * Finds where functions of a source file begin and end, from its text alone: by indentation in
 * Python, by braces in C-like languages. It is used to group lines, and guesses in other files or
 * after errors.
 */

struct source_span {
    uint32_t first; /* line; includes decorators */
    uint32_t last;
};

struct source_functions {
    struct source_span *spans; /* owned */
    uint32_t count;
    uint32_t *of_line; /* owned: index + 1 of line n's innermost function; 0: none */
};

void source_functions_find(struct source_functions *f, const struct source_text *text,
                           bool is_python);
void source_functions_release(struct source_functions *f);

#endif
