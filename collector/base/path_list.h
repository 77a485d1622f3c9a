/* SPDX-License-Identifier: Apache-2.0 */
/* The stream files of a folder, in the order of their names. */
#ifndef GPUPROF_COLLECTOR_PATH_LIST_H
#define GPUPROF_COLLECTOR_PATH_LIST_H

#include <stdbool.h>
#include <stdint.h>

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
