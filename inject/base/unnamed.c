/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unnamed.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream.h"

#define LINK_BYTES 64

/* linkat of the descriptor itself (AT_EMPTY_PATH) would need a capability. */
static void name_in_proc(int fd, char *path)
{
    snprintf(path, LINK_BYTES, "/proc/self/fd/%d", fd);
}

int unnamed_open(const char *path)
{
    char dir[STREAM_PATH_BYTES_MAX + 1], in_proc[LINK_BYTES];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length == 0 || length >= sizeof dir)
        return -1;
    memcpy(dir, path, length);
    dir[length] = '\0';
    int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    name_in_proc(fd, in_proc);
    if (access(in_proc, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

int unnamed_link(int fd, const char *path)
{
    struct stat st;
    char in_proc[LINK_BYTES];
    if (fstat(fd, &st) < 0)
        return -1;
    if (st.st_nlink > 0)
        return 0;
    name_in_proc(fd, in_proc);
    return linkat(AT_FDCWD, in_proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}
