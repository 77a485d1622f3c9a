/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stream_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/say.h"
#include "base/unnamed.h"
#include "record/pool.h"
#include "record/state.h"

#define ADVICE "; set GPUPROF_OUT to another folder"

/* Made by the thread that starts a recording; then used by the writer. */
static struct {
    char path[STREAM_PATH_BYTES_MAX + 1];
    int fd;
    dev_t device; /* identifies the file */
    ino_t inode;
    off_t end;                   /* end of the last complete block */
    struct stream_header header; /* as it was written */
} out = {.fd = -1};

/* Has another user put it there, in a folder that everybody may write to (/tmp)? The owner of a
 * folder, or of a link to one, controls the files in it. */
static bool is_planted(const char *path, bool is_shared)
{
    struct stat st;
    return is_shared && lstat(path, &st) == 0 && st.st_uid != 0 && st.st_uid != geteuid();
}

static bool is_shared(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_mode & S_ISVTX && st.st_mode & S_IWOTH;
}

/* Adds to an error text: a process that has given up its user's rights before its first call can no
 * longer create files where that user could. Nothing is created before that call. */
static const char *circumstance(int error)
{
    bool has_changed = geteuid() != getauxval(AT_EUID) || getegid() != getauxval(AT_EGID);
    return error == EACCES && has_changed
               ? ", since the process changed its user or group before its first CUDA call"
               : "";
}

/* mkdir -p; existing folders are fine, also through links. */
bool stream_out_prepare(void)
{
    const char *dir = gp.settings.texts[SETTING_OUT];
    char path[STREAM_PATH_BYTES_MAX + 1];
    size_t length = strlen(dir);
    bool shared = false;
    int error = ENAMETOOLONG;
    if (length == 0 || length >= sizeof path)
        goto fail;
    memcpy(path, dir, length + 1);
    for (char *p = path + 1;; p++) {
        char end = *p;
        if (end != '/' && end)
            continue;
        *p = '\0';
        error = mkdir(path, 0700) == 0 ? 0 : errno;
        if (error && is_planted(path, shared)) {
            say(SAY_START,
                "recording is off: '%s' belongs to another user, in a folder that everybody may "
                "write to; set GPUPROF_OUT to another folder",
                path);
            return false;
        }
        shared = is_shared(path);
        if (!end)
            break;
        *p = end;
    }
    if (error == 0 || error == EEXIST)
        return true;
fail:
    say(SAY_START, "recording is off: cannot create the folder '%s': %s%s" ADVICE, dir,
        error_text(error), circumstance(error));
    return false;
}

static bool stream_out_is_ours(int fd)
{
    return descriptor_is(fd, out.device, out.inode);
}

/* Opens the file again: programs close descriptors that they do not know, and open files under the
 * same numbers. */
static bool reopen(void)
{
    if (stream_out_is_ours(out.fd))
        return true;
    out.fd = descriptor_move_high(open(out.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (out.fd < 0)
        return false;
    if (!stream_out_is_ours(out.fd)) {
        close(out.fd);
        out.fd = -1;
        errno = ESTALE;
        return false;
    }
    return true;
}

static bool write_at(const uint8_t *data, size_t bytes, off_t offset)
{
    while (bytes) {
        ssize_t n = pwrite(out.fd, data, bytes, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = ENOSPC;
            return false;
        }
        data += n;
        bytes -= (size_t)n;
        offset += n;
    }
    return true;
}

/* Was the open file removed? It has no name before its header is written. */
static bool has_gone(void)
{
    struct stat st;
    return out.end && fstat(out.fd, &st) == 0 && st.st_nlink == 0;
}

static bool stream_out_append(const uint8_t *data, size_t bytes)
{
    if (!reopen())
        return false;
    if (has_gone()) {
        pool_unlink(&gp.header); /* without it nobody finds the live file */
        errno = ENOENT;
        return false;
    }
    if (write_at(data, bytes, out.end)) {
        out.end += (off_t)bytes;
        return true;
    }
    int error = errno;
    if (ftruncate(out.fd, out.end) < 0)
        error = errno; /* the reader finds the incomplete last block, and reports it */
    errno = error;
    return false;
}

/* Prepares the new file, which may have no name yet, and writes its header. */
static bool stream_out_own_create(int fd, const uint8_t *head, size_t bytes)
{
    struct stat st;
    out.end = 0;
    out.fd = descriptor_move_high(fd);
    if (out.fd < 0 || fstat(out.fd, &st) < 0)
        return false;
    out.device = st.st_dev;
    out.inode = st.st_ino;
    return stream_out_append(head, bytes);
}

/* Creates the file with its header already in it. */
static bool create_whole(const uint8_t *head, size_t bytes)
{
    int fd = unnamed_open(out.path);
    return fd >= 0 && stream_out_own_create(fd, head, bytes) && unnamed_link(out.fd, out.path) == 0;
}

/* The fallback. A kill between the two steps leaves an empty file. */
static bool create_named(const uint8_t *head, size_t bytes)
{
    int fd = open(out.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (stream_out_own_create(fd, head, bytes))
        return true;
    int error = errno;
    stream_out_remove();
    errno = error;
    return false;
}

bool stream_out_create(void)
{
    const struct stream_header *header = &gp.header;
    const char *dir = gp.settings.texts[SETTING_OUT];
    uint8_t head[STREAM_HEADER_BYTES_MAX];
    int bytes = stream_header_write(header, head, sizeof head);
    int length = snprintf(
        out.path, sizeof out.path, "%s/%.*s.%u.%llu-%02x%02x%02x%02x%s", dir, STREAM_HOST_BYTES_MAX,
        header->host, header->pid, (unsigned long long)header->start_time, header->process_id[0],
        header->process_id[1], header->process_id[2], header->process_id[3], STREAM_SUFFIX);
    out.header = *header;
    errno = ENAMETOOLONG;
    if (bytes > 0 && length > 0 && (size_t)length < sizeof out.path) {
        if (create_whole(head, (size_t)bytes))
            return true;
        stream_out_forget();
        if (create_named(head, (size_t)bytes))
            return true;
    }
    say(SAY_START, "recording is off: cannot create '%s': %s%s" ADVICE, out.path, error_text(errno),
        circumstance(errno));
    return false;
}

static bool append_block(struct block_sink *s, const uint8_t *block, size_t bytes)
{
    (void)s;
    return stream_out_append(block, bytes);
}

uint64_t stream_out_bytes(void)
{
    return (uint64_t)out.end;
}

bool stream_out_cut(uint64_t bytes)
{
    if (!reopen() || ftruncate(out.fd, (off_t)bytes) < 0)
        return false;
    out.end = (off_t)bytes;
    return true;
}

void stream_out_say_where(void)
{
    char in_proc[64], path[STREAM_PATH_BYTES_MAX + 1];
    struct stat st;
    if (!stream_out_is_ours(out.fd) || lstat(out.path, &st) == 0 || errno != ENOENT || has_gone())
        return;
    snprintf(in_proc, sizeof in_proc, "/proc/self/fd/%d", out.fd);
    ssize_t length = readlink(in_proc, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/'); /* a file without a name may have one behind it */
    if (!slash)
        return;
    *slash = '\0';
    say(SAY_WRITE, "the folder '%s' was renamed: the recording is in '%s'",
        gp.settings.texts[SETTING_OUT], path);
}

static void report_end(struct block_sink *s, const uint64_t counters[COUNTER_COUNT])
{
    static uint8_t head[STREAM_HEADER_BYTES_MAX];
    static _Atomic uint32_t busy; /* for threads that end the process at the same time */
    (void)s;
    if (atomic_exchange(&busy, 1))
        return;
    memcpy(out.header.counters, counters, sizeof out.header.counters);
    int bytes = stream_header_write(&out.header, head, sizeof head);
    if (bytes > 0 && reopen())
        write_at(head, (size_t)bytes, 0);
    atomic_store(&busy, 0);
}

struct block_sink stream_out = {.place = out.path, .append = append_block, .end = report_end};

void stream_out_forget(void)
{
    if (stream_out_is_ours(out.fd))
        close(out.fd);
    out.fd = -1;
}

void stream_out_remove(void)
{
    stream_out_forget();
    unlink(out.path);
}
