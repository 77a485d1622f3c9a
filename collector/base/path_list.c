/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "error.h"
#include "stream.h"

static int path_add(struct path_list *list, const char *folder, const char *name)
{
    if (list->count == PATH_LIST_MAX)
        return GPUPROF_LIMIT;
    char *path = NULL;
    size_t length = strlen(folder);
    if (asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name) < 0)
        return GPUPROF_NO_MEMORY;
    int error = ARRAY_PUSH(list->paths, list->count, &path);
    if (error < 0)
        free(path);
    return error;
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

static bool is_stream(const char *name)
{
    size_t length = strlen(name), end = strlen(STREAM_SUFFIX);
    return length > end && strcmp(name + length - end, STREAM_SUFFIX) == 0;
}

static bool has_stream(const char *folder)
{
    bool found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = is_stream(entry->d_name);
    if (dir)
        closedir(dir);
    return found;
}

uint32_t path_list_below(const char *folder, char **newest, bool *is_used)
{
    uint32_t found = 0;
    struct timespec latest = {0};
    size_t length = strlen(folder);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    *newest = NULL;
    *is_used = false;
    for (uint32_t i = 0; dir && i < PATH_BELOW_MAX && (entry = readdir(dir)); i++) {
        char *path;
        struct stat st;
        if (entry->d_name[0] == '.')
            continue;
        *is_used = true;
        if (asprintf(&path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/",
                     entry->d_name) < 0)
            break;
        bool is_data = stat(path, &st) == 0 && S_ISDIR(st.st_mode) && has_stream(path);
        bool is_later =
            is_data &&
            (!*newest || st.st_mtim.tv_sec > latest.tv_sec ||
             (st.st_mtim.tv_sec == latest.tv_sec && st.st_mtim.tv_nsec > latest.tv_nsec));
        found += is_data;
        if (is_later) {
            free(*newest);
            *newest = path;
            latest = st.st_mtim;
        } else {
            free(path);
        }
    }
    if (dir)
        closedir(dir);
    return found;
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
        if (is_stream(entry->d_name))
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
