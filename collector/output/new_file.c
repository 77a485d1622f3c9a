/* SPDX-License-Identifier: Apache-2.0 */
#include "output/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"

static void release(struct new_file *f)
{
    memory_forget_file(f->temporary);
    file_close(f->fd);
    free(f->path);
    free(f->temporary);
    *f = (struct new_file){.fd = -1};
}

/* -1 if the file system has no unnamed files, or they cannot get a name later. */
static int open_unnamed(const char *path, mode_t mode)
{
    char *copy = memory_text(path);
    int fd = -1;
    if (access("/proc/self/fd", X_OK) == 0)
        fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(copy);
    return fd;
}

int new_file_open(struct new_file *f, const char *path, mode_t mode)
{
    *f = (struct new_file){.fd = open_unnamed(path, mode),
                           .path = memory_text(path),
                           .temporary = text_printf("%s.tmp-%d", path, (int)getpid())};
    f->unnamed = f->fd >= 0;
    if (!f->unnamed) {
        unlink(f->temporary); /* of a killed process that had our pid */
        f->fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (f->fd >= 0)
            memory_note_file(f->temporary);
    }
    if (f->fd >= 0)
        return 0;
    release(f);
    return GPUPROF_IO;
}

int new_file_place(struct new_file *f, bool durable)
{
    int fd = f->fd, failed = durable ? fsync(fd) : 0;
    if (failed == 0 && f->unnamed) {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        unlink(f->temporary);
        failed = linkat(AT_FDCWD, link, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW);
        f->unnamed = failed < 0;
    }
    f->fd = -1;
    if (failed < 0)
        file_close(fd);
    else if (close(fd) < 0 || rename(f->temporary, f->path) < 0)
        failed = -1;
    if (failed < 0)
        new_file_drop(f);
    release(f);
    return failed < 0 ? GPUPROF_IO : 0;
}

void new_file_drop(struct new_file *f)
{
    int saved = errno;
    if (f->temporary && !f->unnamed)
        unlink(f->temporary);
    errno = saved;
    release(f);
}

static void keep_owner(const struct new_file *f, const struct stat *old)
{
    if (old->st_uid != geteuid() && fchown(f->fd, old->st_uid, old->st_gid) < 0)
        return; /* as with any copy, we then own it and only we can read it */
    (void)fchmod(f->fd, old->st_mode & 0777);
}

int new_file_replace(const char *path, const struct stat *like, new_file_write_fn *write,
                     void *context)
{
    struct new_file file;
    struct stat old;
    int error = !like && stat(path, &old) < 0 ? GPUPROF_IO : new_file_open(&file, path, 0600);
    if (error < 0)
        return error;
    keep_owner(&file, like ? like : &old);
    int written = write(context, file.fd);
    if (written <= 0) {
        new_file_drop(&file);
        return written;
    }
    error = new_file_place(&file, true);
    return error < 0 ? error : written;
}
