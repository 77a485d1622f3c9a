/* SPDX-License-Identifier: Apache-2.0 */
#include "output/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static void release(struct new_file *f)
{
    int saved = errno;
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->temporary);
    *f = (struct new_file){.fd = -1};
    errno = saved;
}

/* -1 if the file system has no unnamed files, or they cannot get a name later. */
static int open_unnamed(const char *path, mode_t mode)
{
    char *folder = folder_of(path);
    int fd = -1;
    if (folder && access("/proc/self/fd", X_OK) == 0)
        fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(folder);
    return fd;
}

int new_file_open(struct new_file *f, const char *path, mode_t mode)
{
    *f = (struct new_file){.fd = -1, .path = strdup(path)};
    if (!f->path || asprintf(&f->temporary, "%s.tmp-%d", path, (int)getpid()) < 0) {
        f->temporary = NULL;
        release(f);
        return GPUPROF_NO_MEMORY;
    }
    f->fd = open_unnamed(path, mode);
    f->unnamed = f->fd >= 0;
    if (!f->unnamed) {
        unlink(f->temporary); /* of a killed process that had our pid */
        f->fd = open(f->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    }
    if (f->fd >= 0)
        return 0;
    release(f);
    return GPUPROF_IO;
}

static int name_unnamed(struct new_file *f)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", f->fd);
    unlink(f->temporary);
    int failed = linkat(AT_FDCWD, link, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW);
    f->unnamed = failed < 0;
    return failed < 0 ? GPUPROF_IO : 0;
}

/* Writes the folder entry to disk. Some file systems cannot. */
static int sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = !folder ? GPUPROF_NO_MEMORY : fd < 0 ? GPUPROF_IO : 0;
    if (fd >= 0 && fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        error = GPUPROF_IO;
    if (fd >= 0)
        close(fd);
    free(folder);
    return error;
}

int new_file_place(struct new_file *f, bool durable)
{
    int error = durable && fsync(f->fd) < 0 ? GPUPROF_IO : 0;
    if (error == 0 && f->unnamed)
        error = name_unnamed(f);
    int fd = f->fd;
    f->fd = -1;
    if (error < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    } else if (close(fd) < 0 || rename(f->temporary, f->path) < 0) {
        error = GPUPROF_IO;
    } else if (durable) {
        error = sync_folder(f->path);
    }
    if (error < 0) /* after the rename, the temporary name is gone */
        new_file_drop(f);
    release(f);
    return error;
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

/* ---- folders --------------------------------------------------------------------------------- */

/* Signals that are ignored (nohup) stay ignored. */
static void find_ends(sigset_t *ends)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now;
    sigemptyset(ends);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaddset(ends, numbers[i]);
}

int new_folder_make(struct new_folder *f, const char *path)
{
    *f = (struct new_folder){.path = path};
    find_ends(&f->ends);
    pthread_sigmask(SIG_BLOCK, &f->ends, &f->before);
    f->is_made = mkdir(path, 0777) == 0;
    if (f->is_made)
        return 0;
    pthread_sigmask(SIG_SETMASK, &f->before, NULL);
    return -1;
}

static void *wait_for_end(void *context)
{
    const struct new_folder *f = context;
    int number;
    if (sigwait(&f->ends, &number) != 0)
        return NULL;
    rmdir(f->path);
    pthread_sigmask(SIG_UNBLOCK, &f->ends, NULL);
    raise(number); /* the parent process must see the signal that ended us */
    return NULL;
}

void new_folder_watch(struct new_folder *f)
{
    if (!f->is_made)
        return;
    f->is_watched = pthread_create(&f->thread, NULL, wait_for_end, f) == 0;
    if (!f->is_watched)
        pthread_sigmask(SIG_SETMASK, &f->before, NULL);
}

void new_folder_leave(struct new_folder *f)
{
    if (f->is_made)
        pthread_sigmask(SIG_SETMASK, &f->before, NULL);
    f->is_made = false;
}

void new_folder_end(struct new_folder *f)
{
    if (!f->is_made)
        return;
    if (f->is_watched) {
        pthread_cancel(f->thread);
        pthread_join(f->thread, NULL);
    }
    rmdir(f->path);
    pthread_sigmask(SIG_SETMASK, &f->before, NULL);
}
