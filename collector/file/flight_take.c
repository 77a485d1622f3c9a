/* SPDX-License-Identifier: Apache-2.0 */
#include "file/live_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "block.h"
#include "bytes.h"
#include "error.h"
#include "file/stream_file.h"
#include "flight.h"
#include "live.h"
#include "output/new_file.h"

struct segment {
    uint64_t number, bytes, state_bytes, begin_ns, first;
    uint64_t offset; /* in the live file */
};

struct taker {
    const struct live_file *live;
    const char *path; /* of the stream file */
    uint64_t stream_bytes, dumps, dumped, dumped_ns;
    struct segment segments[FLIGHT_SEGMENTS]; /* in time order, without a gap */
    unsigned count;
    int fd; /* the new file */
    uint64_t size;
};

static int compare_segments(const void *left, const void *right)
{
    const struct segment *a = left, *b = right;
    return ORDER(a->number, b->number);
}

/* Reads the recorder's page. Returns 1, 0 without a recorder, or an error. */
static int read_page(struct taker *t)
{
    uint8_t page[FLIGHT_PAGE_BYTES];
    uint64_t base = t->live->flight;
    if (base > INT64_MAX / 2) /* the program may have overwritten it */
        return GPUPROF_DAMAGED;
    ssize_t got = base ? file_read_at(t->live->fd, base, page, sizeof page) : 0;
    if (got < (ssize_t)sizeof page || load_u64(page + FLIGHT_OFFSET_MAGIC) != FLIGHT_MAGIC)
        return got < 0 ? GPUPROF_IO : 0;
    uint64_t room = load_u64(page + FLIGHT_OFFSET_SEGMENT_BYTES);
    if (room > FLIGHT_BYTES_MAX)
        return GPUPROF_DAMAGED;
    uint64_t which = load_u64(page + FLIGHT_OFFSET_WRITTEN) & 1;
    const uint8_t *done = page + FLIGHT_OFFSET_DONE + which * FLIGHT_DONE_ENTRY;
    t->stream_bytes = load_u64(done + FLIGHT_DONE_STREAM_BYTES);
    t->dumps = load_u64(done + FLIGHT_DONE_DUMPS);
    t->dumped = load_u64(done + FLIGHT_DONE_NEXT);
    t->dumped_ns = load_u64(done + FLIGHT_DONE_NS);
    for (unsigned i = 0; i < FLIGHT_SEGMENTS; i++) {
        const uint8_t *entry = page + FLIGHT_OFFSET_SEGMENTS + i * FLIGHT_SEGMENT_ENTRY;
        struct segment s = {.number = load_u64(entry + FLIGHT_SEGMENT_NUMBER),
                            .bytes = load_u64(entry + FLIGHT_SEGMENT_BYTES),
                            .state_bytes = load_u64(entry + FLIGHT_SEGMENT_STATE_BYTES),
                            .begin_ns = load_u64(entry + FLIGHT_SEGMENT_BEGIN_NS),
                            .first = load_u64(entry + FLIGHT_SEGMENT_FIRST),
                            .offset = base + FLIGHT_PAGE_BYTES + i * room};
        if (s.number && (s.bytes > room || s.state_bytes > s.bytes || s.begin_ns > INT64_MAX / 4))
            return GPUPROF_DAMAGED;
        if (s.number)
            t->segments[t->count++] = s;
    }
    qsort(t->segments, t->count, sizeof *t->segments, compare_segments);
    return t->count ? 1 : 0;
}

static int flight_take_put(struct taker *t, const void *data, size_t bytes)
{
    int error = file_write_at(t->fd, t->size, data, bytes);
    t->size += bytes;
    return error;
}

/* Copies a truncated file as far as it goes. */
static int copy(struct taker *t, int from, uint64_t offset, uint64_t bytes)
{
    struct stat status;
    if (fstat(from, &status) < 0)
        return GPUPROF_IO;
    uint64_t end = min_of(offset + bytes, (uint64_t)status.st_size);
    bytes = end > offset ? end - offset : 0;
    int error = file_copy_at(from, offset, t->fd, t->size, bytes);
    t->size += bytes;
    return error;
}

/* Writes the records that the process could not write: the opened window and the dump. */
static int put_statements(struct taker *t, uint64_t begin_ns, uint64_t sequence)
{
    uint64_t alive_ns = live_file_alive_ns(t->live);
    uint8_t raw[4 * 8 * (RECORD_HEAD_WORDS + RECORD_ARGS_MAX)] __attribute__((aligned(8)));
    struct record records[] = {
        {RECORD_WITH(WINDOW, [WINDOW_STATE] = WINDOW_IS_CLOSED)},
        {RECORD_WITH(WINDOW, [WINDOW_NUMBER] = t->dumps + 1, [WINDOW_STATE] = WINDOW_IS_OPEN),
         .begin = begin_ns},
        {RECORD_WITH(DUMP, [DUMP_NUMBER] = t->dumps + 1, [DUMP_REASON] = DUMP_KILL,
                     [DUMP_BEGIN_NS] = begin_ns),
         .begin = alive_ns > begin_ns ? alive_ns : begin_ns}};
    struct block_encoder *e = memory_from(malloc(sizeof *e));
    struct zstandard codec = {0};
    struct block_header h = {.sequence = sequence, .flags = BLOCK_AFTER_GAP | BLOCK_OF_STATE};
    uint8_t head[BLOCK_HEADER_BYTES], *stored = NULL;
    size_t used = 0;
    block_encoder_reset(e);
    for (unsigned i = t->dumps || !begin_ns; i < sizeof records / sizeof records[0]; i++) {
        int bytes = record_write(&records[i], raw + used, sizeof raw - used);
        if (bytes > 0 && block_encoder_add(e, raw + used, (size_t)bytes) > 0)
            used += (size_t)bytes;
    }
    int error = block_store(&codec, e, NULL, &h, &stored);
    if (error == 0) {
        block_header_write(&h, head);
        error = flight_take_put(t, head, sizeof head);
    }
    if (error == 0)
        error = flight_take_put(t, stored, h.stored_bytes);
    free(stored);
    zstandard_release(&codec);
    free(e);
    return error;
}

/* Returns where blocks begin in this segment that no dump has. Only valid blocks count. */
static uint64_t behind_dumped(const struct taker *t, const struct segment *s)
{
    uint64_t at = s->state_bytes;
    while (at < s->bytes) {
        uint8_t head[BLOCK_HEADER_BYTES_MAX];
        struct block_header h;
        ssize_t got = file_read_at(t->live->fd, s->offset + at, head, sizeof head);
        int size = got > 0 ? block_header_read(&h, head, (size_t)got) : 0;
        if (size <= 0 || h.sequence >= t->dumped)
            break;
        at += (uint64_t)size + h.stored_bytes;
    }
    return at < s->bytes ? at : s->bytes;
}

static int put_dump(struct taker *t)
{
    unsigned first = 0;
    while (first + 1 < t->count && t->segments[first + 1].first <= t->dumped && t->dumps)
        first++; /* an earlier segment is in a dump already */
    const struct segment *s = &t->segments[first];
    bool follows = s->first <= t->dumped && (t->dumps || s->number == 1);
    uint64_t begin_ns = t->dumps && follows ? t->dumped_ns + 1 : s->begin_ns;
    int error = put_statements(t, begin_ns, s->first);
    for (unsigned i = first; error == 0 && i < t->count; i++) {
        s = &t->segments[i];
        uint64_t from = i > first ? s->state_bytes : follows ? behind_dumped(t, s) : 0;
        error = copy(t, t->live->fd, s->offset + from, s->bytes - from);
    }
    return error;
}

/* A kill before this repeats the dump next time. */
static int report_taken(struct live_file *l)
{
    uint8_t none[8] = {0};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", l->fd); /* exactly the file that was read */
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int error = fd < 0 ? GPUPROF_IO : file_write_at(fd, LIVE_OFFSET_FLIGHT, none, sizeof none);
    file_close(fd);
    if (error == 0)
        l->flight = 0;
    return error;
}

/* Writes the stream file with the dump to `fd`. Returns as flight_take does. */
static int write_taken(void *context, int fd)
{
    struct taker *t = context;
    t->fd = fd;
    int error = read_page(t);
    if (error <= 0)
        return error;
    int stream = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (stream < 0)
        return GPUPROF_IO;
    error = copy(t, stream, 0, t->stream_bytes);
    if (error == 0)
        error = put_dump(t);
    close(stream);
    return error < 0 ? error : 1;
}

int flight_copy(const struct live_file *l, const char *stream_path, int fd)
{
    return write_taken(&(struct taker){.live = l, .path = stream_path}, fd);
}

int flight_take(struct live_file *l, const char *stream_path)
{
    struct taker t = {.live = l, .path = stream_path};
    int error = l->flight ? new_file_replace(stream_path, NULL, write_taken, &t) : 0;
    int reported = error > 0 ? report_taken(l) : 0;
    return reported < 0 ? reported : error;
}
