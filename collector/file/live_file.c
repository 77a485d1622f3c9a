/* SPDX-License-Identifier: Apache-2.0 */
#include "file/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "bytes.h"
#include "error.h"
#include "file/stream_file.h"
#include "live.h"
#include "output/new_file.h"

#define OPEN_BYTES_MAX    ((size_t)LIVE_OPEN_MASK * 8 * (RECORD_HEAD_WORDS + 1 + RECORD_ARGS_MAX))
#define CLOCK_SET_SECONDS 86400

static bool is_this_boot(const struct stream_header *h)
{
    char text[64], wanted[64];
    size_t at = 0;
    for (unsigned i = 0; i < sizeof h->boot_id; i++)
        at += (size_t)snprintf(wanted + at, sizeof wanted - at, "%s%02x",
                               i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", h->boot_id[i]);
    file_first_line("/proc/sys/kernel/random/boot_id", text, sizeof text);
    return strcmp(text, wanted) == 0;
}

/* Returns true if /proc shows our own pid namespace, and `h` is from it. */
static bool is_this_namespace(const struct stream_header *h)
{
    struct stat status;
    char text[32] = "";
    ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    return length > 0 && strtol(text, NULL, 10) == getpid() &&
           stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == h->pid_namespace;
}

/* Returns a field of /proc/PID/stat behind the command's name; NULL if missing. */
static const char *stat_field(const char *behind, int number)
{
    for (int field = 2; field < number && behind; field++)
        behind = strchr(behind + 1, ' ');
    return behind ? behind + 1 : NULL;
}

/* Unknown if in doubt: a running process's live file must stay. */
enum live_owner live_owner(const struct stream_header *h)
{
    if (!is_this_boot(h) || !is_this_namespace(h))
        return LIVE_OWNER_UNKNOWN;
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", h->pid);
    file_first_line(path, text, sizeof text);
    const char *p = strrchr(text, ')'); /* the command's name may contain anything */
    if (!p)                             /* /proc may hide processes (hidepid) */
        return kill((pid_t)h->pid, 0) < 0 && errno == ESRCH ? LIVE_OWNER_ENDED : LIVE_OWNER_UNKNOWN;
    const char *state = stat_field(p, 3), *threads = stat_field(p, 20), *start = stat_field(p, 22);
    if (!state || !threads || !start)
        return LIVE_OWNER_UNKNOWN;
    /* A zombie's memory is gone, unless only its first thread has ended. */
    if ((*state == 'Z' || *state == 'X') && strtoul(threads, NULL, 10) <= 1)
        return LIVE_OWNER_ENDED;
    if (strtoull(start, NULL, 10) == h->start_time)
        return *state == 'T' || *state == 't' ? LIVE_OWNER_STOPPED : LIVE_OWNER_RUNNING;
    return LIVE_OWNER_ENDED;
}

/* Returns 0, unknown, for a time in the future by the wall clock, which may be set. */
static uint64_t believable_ticks(const struct stream_header *h, uint64_t ticks)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = ((uint64_t)now.tv_sec + CLOCK_SET_SECONDS) * 1000000000;
    uint64_t ns = clock_scale_ns(&h->scale, ticks);
    return ns < now_ns && ns + h->realtime_zero_ns < now_ns ? ticks : 0;
}

/* Checks the first page. Returns 0, GPUPROF_DAMAGED or GPUPROF_IO. */
static int read_head(struct live_file *l)
{
    uint8_t head[LIVE_HEAD_BYTES];
    struct stat status;
    ssize_t got = file_read_at(l->fd, 0, head, sizeof head);
    if (got < 0 || fstat(l->fd, &status) < 0)
        return GPUPROF_IO;
    if (got < (ssize_t)sizeof head || load_u64(head + LIVE_OFFSET_MAGIC) != LIVE_MAGIC ||
        load_u32(head + LIVE_OFFSET_VERSION) != LIVE_VERSION)
        return GPUPROF_DAMAGED;
    if (stream_header_read(&l->header, head, STREAM_HEADER_BYTES_MAX) < 0)
        return GPUPROF_DAMAGED;
    l->chunk_bytes = load_u32(head + LIVE_OFFSET_CHUNK_BYTES);
    l->chunk_count = load_u32(head + LIVE_OFFSET_CHUNK_COUNT);
    l->chunks_offset = load_u32(head + LIVE_OFFSET_CHUNKS);
    if (l->chunk_bytes < LIVE_CHUNK_BYTES_MIN || l->chunk_bytes > LIVE_CHUNK_BYTES_MAX ||
        l->chunk_bytes % 8 != 0 || l->chunk_count > LIVE_CHUNK_COUNT_MAX ||
        l->chunks_offset < LIVE_HEAD_BYTES)
        return GPUPROF_DAMAGED;
    uint64_t room = (uint64_t)status.st_size;
    uint64_t bytes = load_u64(head + LIVE_OFFSET_BYTES);
    l->head_damaged = bytes > l->chunks_offset + (uint64_t)l->chunk_count * LIVE_CHUNK_BYTES_MAX;
    l->cut_bytes = bytes > room && !l->head_damaged ? bytes - room : 0;
    room = room > l->chunks_offset ? room - l->chunks_offset : 0;
    uint64_t there = (room + l->chunk_bytes - 1) / l->chunk_bytes;
    if (there < l->chunk_count)
        l->chunk_count = (uint32_t)there;
    l->flight = load_u64(head + LIVE_OFFSET_FLIGHT);
    l->alive = believable_ticks(&l->header, load_u64(head + LIVE_OFFSET_ALIVE));
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        l->counters[i] = load_u64(head + LIVE_OFFSET_COUNTERS + 8 * i);
    return 0;
}

static int open_at(struct live_file *l, const char *path, bool own)
{
    struct stat status;
    l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (l->fd < 0)
        return 0;
    uid_t uid = geteuid();
    int error = GPUPROF_NOT_OURS;
    if (fstat(l->fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (!own || status.st_uid == uid || uid == 0))
        error = read_head(l);
    if (error < 0) {
        close(l->fd);
        l->fd = -1;
    }
    return error < 0 ? error : 1;
}

/* Writes the path for a place. False: the place has none, or it is too long. */
static bool place_path(enum live_place place, char *path, const char *stream_path,
                       const struct stream_header *h)
{
    const char *name = STREAM_LIVE_SUFFIX, *slash = strrchr(stream_path, '/');
    size_t length = strlen(stream_path), end = strlen(STREAM_SUFFIX);
    if (place != LIVE_BESIDE) {
        if (!h || h->live_path[0] != '/')
            return false;
        bool is_in_folder = place == LIVE_IN_FOLDER;
        name = is_in_folder ? strrchr(h->live_path, '/') + 1 : h->live_path;
        length = is_in_folder && slash ? (size_t)(slash + 1 - stream_path) : 0;
    } else if (length > end && strcmp(stream_path + length - end, STREAM_SUFFIX) == 0) {
        length -= end;
    }
    int put = snprintf(path, LIVE_PATH_BYTES_MAX, "%.*s%s", (int)length, stream_path, name);
    return put >= 0 && put < LIVE_PATH_BYTES_MAX;
}

int live_file_open(struct live_file *l, const char *stream_path, const struct stream_header *h)
{
    bool is_damaged = false;
    for (enum live_place place = LIVE_BESIDE; place <= LIVE_AS_RECORDED; place++) {
        *l = (struct live_file){.fd = -1, .place = place};
        if (!place_path(place, l->path, stream_path, h))
            continue;
        int found = open_at(l, l->path, place == LIVE_AS_RECORDED);
        if (found > 0 &&
            (!h || memcmp(l->header.process_id, h->process_id, sizeof h->process_id) == 0)) {
            l->owner = live_owner(&l->header);
            /* Only an ended process's file is moved there, even from another machine. */
            if (place == LIVE_BESIDE && l->owner == LIVE_OWNER_UNKNOWN)
                l->owner = LIVE_OWNER_ENDED;
            return 1;
        }
        /* Damage at the header's path does not count: another process may have reused the name. */
        is_damaged |= place == LIVE_BESIDE && found == GPUPROF_DAMAGED;
        live_file_release(l);
    }
    return is_damaged ? GPUPROF_DAMAGED : 0;
}

void live_file_release(struct live_file *l)
{
    file_close(l->fd);
    l->fd = -1;
}

int live_chunk_read(const struct live_file *l, uint32_t index, struct live_chunk *chunk)
{
    uint8_t head[LIVE_CHUNK_HEAD_BYTES];
    *chunk = (struct live_chunk){.state = LIVE_FREE};
    ssize_t got =
        file_read_at(l->fd, l->chunks_offset + (uint64_t)index * l->chunk_bytes, head, sizeof head);
    if (got < (ssize_t)sizeof head)
        return got < 0 ? GPUPROF_IO : 0;
    chunk->state = load_u32(head + LIVE_CHUNK_STATE);
    chunk->thread = load_u32(head + LIVE_CHUNK_THREAD);
    chunk->tid = load_u32(head + LIVE_CHUNK_TID);
    chunk->position = load_u64(head + LIVE_CHUNK_POSITION);
    uint64_t committed = load_u64(head + LIVE_CHUNK_COMMITTED);
    chunk->open = (unsigned)committed & LIVE_OPEN_MASK;
    uint64_t passed = load_u64(head + LIVE_CHUNK_PASSED);
    uint64_t counted = load_u64(head + LIVE_CHUNK_COUNTED);
    chunk->passed = passed > counted ? passed - counted : 0;
    chunk->open_stack = load_u64(head + LIVE_CHUNK_OPEN_STACK);
    chunk->committed = min_of(committed - chunk->open, l->chunk_bytes - LIVE_CHUNK_HEAD_BYTES);
    chunk->sealed = min_of(load_u64(head + LIVE_CHUNK_SEALED), chunk->committed);
    return 0;
}

/* Returns the bytes of a chunk's records, including open ones. */
static size_t used_bytes(const struct live_file *l, const struct live_chunk *chunk)
{
    uint64_t bytes = chunk->committed + (chunk->open ? OPEN_BYTES_MAX : 0);
    return min_of(bytes, l->chunk_bytes - LIVE_CHUNK_HEAD_BYTES);
}

ssize_t live_chunk_records(const struct live_file *l, uint32_t index,
                           const struct live_chunk *chunk, uint8_t *data)
{
    uint64_t offset = l->chunks_offset + (uint64_t)index * l->chunk_bytes + LIVE_CHUNK_HEAD_BYTES;
    return file_read_at(l->fd, offset, data, used_bytes(l, chunk));
}

/* Copies the first page and the used chunks, without those recycled meanwhile: they are stored. */
static int copy_chunks(const struct live_file *l, int to)
{
    uint8_t *data = memory_from(malloc(l->chunk_bytes));
    ssize_t got = file_read_at(l->fd, 0, data, LIVE_HEAD_BYTES);
    int error = got < 0 ? GPUPROF_IO : file_write_at(to, 0, data, (size_t)got);
    uint64_t size = l->chunks_offset;
    for (uint32_t i = 0; error == 0 && i < l->chunk_count; i++) {
        struct live_chunk before;
        struct live_chunk after;
        uint64_t offset = l->chunks_offset + (uint64_t)i * l->chunk_bytes;
        error = live_chunk_read(l, i, &before);
        if (error < 0 || before.state == LIVE_FREE)
            continue;
        got = file_read_at(l->fd, offset, data, LIVE_CHUNK_HEAD_BYTES + used_bytes(l, &before));
        if (got < LIVE_CHUNK_HEAD_BYTES)
            error = got < 0 ? GPUPROF_IO : 0;
        else if ((error = live_chunk_read(l, i, &after)) == 0 && after.thread == before.thread &&
                 after.position == before.position && after.state != LIVE_FREE) {
            uint64_t whole = (uint64_t)got - LIVE_CHUNK_HEAD_BYTES;
            if (whole >= before.committed)
                whole = before.committed | before.open;
            store_u64(data + LIVE_CHUNK_COMMITTED, whole);
            error = file_write_at(to, offset, data, (size_t)got);
            size = offset + l->chunk_bytes;
        }
    }
    free(data);
    /* Trailing free chunks would be holes, which scp copies as zeros. */
    if (error == 0 && ftruncate(to, (off_t)size) < 0)
        error = GPUPROF_IO;
    uint8_t bytes[8];
    store_u64(bytes, size + l->cut_bytes);
    return error < 0 ? error : file_write_at(to, LIVE_OFFSET_BYTES, bytes, sizeof bytes);
}

int live_file_snapshot(struct live_file *l)
{
    if (l->owner == LIVE_OWNER_ENDED)
        return 0;
    int fd = file_unnamed();
    if (fd < 0)
        return GPUPROF_IO;
    int error = copy_chunks(l, fd);
    if (error < 0) {
        file_close(fd);
        return error;
    }
    close(l->fd);
    l->fd = fd;
    return 0;
}

static int copy_beside(void *context, int fd)
{
    int error = copy_chunks(context, fd);
    return error < 0 ? error : 1;
}

int live_adopt(const char *stream_path)
{
    struct stream_header h;
    struct live_file l;
    char path[LIVE_PATH_BYTES_MAX];
    int error = stream_header_of(stream_path, &h);
    if (error < 0)
        return error;
    if (!place_path(LIVE_BESIDE, path, stream_path, &h))
        return GPUPROF_LIMIT;
    if (live_file_open(&l, stream_path, &h) <= 0)
        return 0;
    int done = 0;
    /* Never replaces an existing file of another process. */
    if (l.place != LIVE_BESIDE && l.owner == LIVE_OWNER_ENDED && access(path, F_OK) != 0) {
        struct stat like;
        done = flight_take(&l, stream_path);
        if (done >= 0)
            done = fstat(l.fd, &like) < 0 ? GPUPROF_IO
                                          : new_file_replace(path, &like, copy_beside, &l);
        if (done > 0) /* with several readers, the first one removes it */
            done = live_file_remove(&l) < 0 ? GPUPROF_IO : 1;
    }
    live_file_release(&l);
    return done;
}

int live_file_remove(const struct live_file *l)
{
    return unlink(l->path) < 0 && errno != ENOENT ? GPUPROF_IO : 0;
}
