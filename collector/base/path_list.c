/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "stream.h"

static int path_add(struct path_list *list, const char *folder, const char *name)
{
    if (list->count == PATH_LIST_MAX)
        return GPUPROF_LIMIT;
    char **paths = array_room(list->paths, list->count, &list->capacity, sizeof *paths, 64);
    if (!paths)
        return GPUPROF_NO_MEMORY;
    list->paths = paths;
    char *path = NULL;
    size_t length = strlen(folder);
    if (asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name) < 0)
        return GPUPROF_NO_MEMORY;
    list->paths[list->count++] = path;
    return 0;
}

void path_list_release(struct path_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
}

static int compare_paths(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

int path_list_read(struct path_list *list, const char *folder)
{
    *list = (struct path_list){0};
    DIR *dir = opendir(folder);
    if (!dir)
        return GPUPROF_IO;
    int error = 0;
    errno = 0;
    for (struct dirent *entry; error == 0 && (entry = readdir(dir)); errno = 0) {
        size_t length = strlen(entry->d_name);
        size_t end = strlen(STREAM_SUFFIX);
        if (length > end && strcmp(entry->d_name + length - end, STREAM_SUFFIX) == 0)
            error = path_add(list, folder, entry->d_name);
    }
    if (error == 0 && errno)
        error = GPUPROF_IO;
    int saved = errno;
    closedir(dir);
    errno = saved;
    if (list->count)
        qsort(list->paths, list->count, sizeof *list->paths, compare_paths);
    return error;
}
