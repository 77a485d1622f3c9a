/* SPDX-License-Identifier: Apache-2.0 */
/* The stream files of a folder, in the order of their names. */
#ifndef GPUPROF_COLLECTOR_PATH_LIST_H
#define GPUPROF_COLLECTOR_PATH_LIST_H

#include <stdint.h>

#define PATH_LIST_MAX 65536

struct path_list {
    char **paths; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* 0, GPUPROF_IO (errno), GPUPROF_LIMIT or GPUPROF_NO_MEMORY; path_list_release in every case. */
int path_list_read(struct path_list *list, const char *folder);
void path_list_release(struct path_list *list);

#endif
