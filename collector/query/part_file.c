/* SPDX-License-Identifier: Apache-2.0 */
#include "query/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "base/message.h"
#include "bytes.h"
#include "crc32c.h"
#include "error.h"
#include "read/recording.h"

#define CRC_AT           12u
#define CHECKED_FROM     16u /* the CRC does not cover the bytes before */
#define HEADER_BYTES     (CHECKED_FROM + 68)
#define FIRST_BYTES      4096
#define CHECKED_TOGETHER 65536
#define SPAN_CHUNKS      128 /* written at once */

/* ---- values ---------------------------------------------------------------------------------- */

static void part_file_put(struct part *p, const void *data, size_t length)
{
    if (length > p->capacity - p->length) {
        p->capacity = 2 * p->capacity + length + FIRST_BYTES;
        p->data = memory_resize(p->data, p->capacity, 1);
    }
    if (length)
        memcpy(p->data + p->length, data, length);
    p->length += length;
}

/* Returns a view of the next bytes; NULL, after setting failed, if there are too few. */
static const uint8_t *part_file_get(struct part *p, uint64_t length)
{
    if (p->has_failed || length > p->length - p->at) {
        p->has_failed = true;
        return NULL;
    }
    p->at += length;
    return p->data + p->at - length;
}

void part_number(struct part *p, uint64_t *number)
{
    if (p->is_written) {
        uint8_t bytes[VARINT_BYTES_MAX];
        struct byte_writer w = byte_writer(bytes, sizeof bytes);
        put_varint(&w, *number);
        part_file_put(p, bytes, w.length);
        return;
    }
    struct byte_reader r = byte_reader(p->data + p->at, p->has_failed ? 0 : p->length - p->at);
    *number = get_varint(&r);
    p->has_failed |= r.failed;
    p->at += p->has_failed ? 0 : r.position;
}

void part_u32(struct part *p, uint32_t *number)
{
    uint64_t wide = *number;
    part_number(p, &wide);
    p->has_failed |= wide > UINT32_MAX;
    *number = p->has_failed ? 0 : (uint32_t)wide;
}

void part_flag(struct part *p, bool *flag)
{
    uint64_t wide = *flag;
    part_number(p, &wide);
    p->has_failed |= wide > 1;
    *flag = wide == 1;
}

uint32_t part_count(struct part *p, uint32_t *count, unsigned bytes)
{
    part_u32(p, count);
    if (!p->is_written && *count > (p->length - p->at) / bytes) {
        p->has_failed = true;
        *count = 0;
    }
    return *count;
}

void part_bytes(struct part *p, const uint8_t **data, uint32_t *length)
{
    part_count(p, length, 1);
    if (p->is_written)
        part_file_put(p, *data, *length);
    else
        *data = part_file_get(p, *length);
}

/* The stored text includes its zero, so a reader can use it in place; NULL is stored without
 * bytes. */
void part_text(struct part *p, const char **text)
{
    const uint8_t *data = (const uint8_t *)*text;
    uint32_t length = p->is_written && *text ? (uint32_t)strlen(*text) + 1 : 0;
    part_bytes(p, &data, &length);
    if (p->is_written)
        return;
    p->has_failed |= length && !p->has_failed && strnlen((const char *)data, length) != length - 1;
    *text = length && !p->has_failed ? (const char *)data : NULL;
}

/* Buckets that count something: the number of each from 1, and its count; 0 ends them. */
void part_histogram(struct part *p, struct histogram *h, uint64_t *rows_left)
{
    enum { BUCKETS = HISTOGRAM_ROWS * HISTOGRAM_BUCKETS };
    for (uint64_t i = 0; p->is_written && i < BUCKETS; i++) {
        uint64_t *row = h->rows[i / HISTOGRAM_BUCKETS];
        if (!row || !row[i % HISTOGRAM_BUCKETS])
            continue;
        part_number(p, &(uint64_t){i + 1});
        part_number(p, &row[i % HISTOGRAM_BUCKETS]);
    }
    for (;;) {
        uint64_t number = 0, value = 0;
        part_number(p, &number);
        if (!number)
            return;
        part_number(p, &value);
        p->has_failed |= number > BUCKETS || !value;
        if (p->has_failed)
            return;
        unsigned row = (unsigned)(number - 1) / HISTOGRAM_BUCKETS;
        unsigned bucket = (unsigned)(number - 1) % HISTOGRAM_BUCKETS;
        *(h->rows[row] ? &h->rows[row][bucket] : histogram_make(h, row, bucket, rows_left)) +=
            value;
        h->count += value;
    }
}

/* Returns where the spans end in the file, and the values begin. */
static uint64_t values_at(const struct part *p)
{
    return p->file_at + HEADER_BYTES + p->span_bytes;
}

void part_put_spans(struct part *p, struct spool *b, const struct span_stream *s)
{
    uint8_t chunks[SPAN_CHUNKS * BYTE_CHUNK_BYTES];
    struct byte_place place = byte_stream_begin(&s->bytes);
    part_number(p, &(uint64_t){s->count});
    part_number(p, &(uint64_t){s->bytes.length});
    while (place.left) {
        size_t bytes = 0;
        for (unsigned i = 0; i < SPAN_CHUNKS && place.left; i++)
            bytes += byte_stream_next(b, &place, chunks + bytes);
        if (file_write_at(p->fd, values_at(p), chunks, bytes) < 0)
            file_unnamed_failed();
        p->span_bytes += bytes;
    }
}

void part_get_spans(struct part *p, struct stored_spans *spans)
{
    *spans = (struct stored_spans){.fd = p->fd, .at = p->spans_at};
    part_number(p, &spans->count);
    part_number(p, &spans->length);
    p->has_failed |= spans->length > values_at(p) - p->spans_at;
    p->has_failed |= spans->count > spans->length / SPAN_BYTES;
    if (p->has_failed)
        spans->length = spans->count = 0;
    p->spans_at += spans->length;
}

/* ---- members of structs ---------------------------------------------------------------------- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number's low bytes come first");

static uint64_t joined(enum part_join join, uint64_t there, uint64_t read)
{
    switch (join) {
    case PART_ADD: return there + read;
    case PART_OR: return there | read;
    case PART_FIRST: return there && (!read || there < read) ? there : read;
    case PART_LAST: return there > read ? there : read;
    default: return read;
    }
}

static void carry_number(struct part *p, const struct part_field *f, void *at)
{
    uint64_t there = 0, number;
    memcpy(&there, at, f->bytes);
    number = there;
    uint64_t end = f->kind == PART_FLAG ? 2 : f->bytes < 8 ? 1ull << 8 * f->bytes : 0;
    part_number(p, &number);
    p->has_failed |= (end && number >= end) || (f->below && number >= f->below);
    number = joined(f->join, there, number);
    if (!p->is_written && !p->has_failed)
        memcpy(at, &number, f->bytes);
}

static void carry_numbers(struct part *p, const struct part_field *f, uint64_t *numbers)
{
    for (uint32_t i = 0; i < f->bytes / sizeof *numbers; i++)
        part_number(p, &numbers[i]);
}

static void carry_text(struct part *p, const struct part_field *f, void *at)
{
    const char *text = at;
    char *copy = NULL;
    if (f->kind != PART_CHARS)
        memcpy(&text, at, sizeof text);
    part_text(p, &text);
    p->has_failed |= (f->is_needed || f->kind == PART_CHARS) && !text;
    p->has_failed |= f->kind == PART_CHARS && text && strlen(text) >= f->bytes;
    if (p->is_written || p->has_failed)
        return;
    if (f->kind == PART_OWNED)
        copy = memory_text(text);
    if (f->kind == PART_CHARS)
        memcpy(at, text, strlen(text) + 1);
    else
        memcpy(at, f->kind == PART_OWNED ? (const void *)&copy : &text, sizeof text);
}

static void carry_process(struct part *p, void *at)
{
    const struct process *process;
    memcpy(&process, at, sizeof process);
    uint32_t index = process ? process->index : 0;
    part_u32(p, &index);
    if (p->is_written || (p->has_failed |= index >= p->process_count))
        return;
    memcpy(at, &p->processes[index], sizeof process);
}

static void carry_device(struct part *p, uint32_t *device)
{
    uint32_t there = *device;
    part_u32(p, &there);
    if (!p->is_written)
        *device = part_device(p, there);
}

static void carry_list(struct part *p, const struct part_field *f, uint8_t *of)
{
    uint32_t *there = (uint32_t *)(void *)(of + f->count_at), count = *there;
    uint8_t *list;
    part_rows(p, &count, f->items);
    p->has_failed |= f->below && count >= f->below;
    memcpy(&list, of + f->at, sizeof list);
    if (!p->is_written) {
        list = p->has_failed ? NULL : memory_new(count + 1u, f->item_bytes);
        *there = list ? count : 0;
        memcpy(of + f->at, &list, sizeof list);
    }
    for (uint32_t i = 0; i < count && !p->has_failed; i++)
        part_fields(p, f->items, list + (size_t)i * f->item_bytes);
}

void part_fields(struct part *p, const struct part_field *f, void *of)
{
    for (; f->kind != PART_END && !p->has_failed; f++) {
        void *at = (uint8_t *)of + f->at;
        switch (f->kind) {
        case PART_NUMBER:
        case PART_FLAG: carry_number(p, f, at); break;
        case PART_NUMBERS: carry_numbers(p, f, at); break;
        case PART_PROCESS: carry_process(p, at); break;
        case PART_DEVICE: carry_device(p, at); break;
        case PART_ITEMS: carry_list(p, f, of); break;
        default: carry_text(p, f, at);
        }
    }
}

void part_put_row(struct part *p, const struct part_field *fields, const void *from)
{
    part_flag(p, &(bool){true});
    part_fields(p, fields, (void *)(uintptr_t)from);
}

void part_put_end(struct part *p)
{
    part_flag(p, &(bool){false});
}

bool part_get_row(struct part *p, const struct part_field *fields, void *to)
{
    bool has_row = false;
    part_flag(p, &has_row);
    if (has_row)
        part_fields(p, fields, to);
    return has_row && !p->has_failed;
}

uint32_t part_rows(struct part *p, uint32_t *count, const struct part_field *fields)
{
    uint32_t bytes = 0;
    for (const struct part_field *f = fields; f->kind != PART_END; f++)
        bytes += f->kind == PART_NUMBERS ? f->bytes / 8 : 1;
    return part_count(p, count, bytes);
}

uint32_t part_device(struct part *p, uint32_t device)
{
    p->has_failed |= device >= p->device_count;
    return p->has_failed ? UINT32_MAX : p->devices[device];
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Continues *crc with these bytes of the file. Returns false if they cannot be read. */
static bool add_to_crc(int fd, uint64_t at, uint64_t bytes, uint32_t *crc)
{
    uint8_t buffer[CHECKED_TOGETHER];
    while (bytes) {
        size_t size = bytes < sizeof buffer ? bytes : sizeof buffer;
        if (file_read_at(fd, at, buffer, size) != (ssize_t)size)
            return false;
        *crc = crc32c(*crc, buffer, size);
        at += size;
        bytes -= size;
    }
    return true;
}

void part_begin(struct part *p, int fd, uint64_t at)
{
    *p = (struct part){.is_written = true, .fd = fd, .file_at = at};
}

int part_end(struct part *p)
{
    uint8_t header[HEADER_BYTES] = {0};
    struct byte_writer w = byte_writer(header, sizeof header);
    p->file_bytes = HEADER_BYTES + p->span_bytes + p->length;
    put_u64(&w, PART_MAGIC);
    put_u32(&w, PART_VERSION);
    put_u32(&w, 0);
    put_u64(&w, p->length);
    put_u64(&w, p->span_bytes);
    put_u32(&w, p->index);
    put_u32(&w, p->count);
    put_u64(&w, p->set);
    uint32_t crc = crc32c(0, header + CHECKED_FROM, sizeof header - CHECKED_FROM);
    if (file_write_at(p->fd, values_at(p), p->data, p->length) < 0 ||
        !add_to_crc(p->fd, p->file_at + HEADER_BYTES, p->file_bytes - HEADER_BYTES, &crc))
        return GPUPROF_IO;
    store_u32(header + CRC_AT, crc);
    return file_write_at(p->fd, p->file_at, header, sizeof header);
}

const char *part_open(struct part *p, int fd, uint64_t at, uint64_t bytes, int *error)
{
    static const char damaged[] = "is cut off or damaged; make this part again";
    uint8_t header[HEADER_BYTES];
    *error = 0;
    *p = (struct part){.fd = fd, .file_at = at};
    ssize_t got = file_read_at(fd, at, header, bytes < sizeof header ? bytes : sizeof header);
    struct byte_reader r = byte_reader(header, got < 0 ? 0 : (size_t)got);
    uint64_t magic = get_u64(&r);
    uint32_t version = get_u32(&r), crc = get_u32(&r);
    uint64_t values = get_u64(&r), spans = get_u64(&r);
    p->index = get_u32(&r);
    p->count = get_u32(&r);
    p->set = get_u64(&r);
    if (magic != PART_MAGIC)
        return "is not a part that 'gpuprof report --partial' made, or is empty";
    if (version != PART_VERSION)
        return "is a part of another version of gpuprof; make all parts with this one";
    if ((size_t)got < sizeof header || values > bytes - HEADER_BYTES ||
        spans > bytes - HEADER_BYTES - values)
        return damaged;
    p->spans_at = at + HEADER_BYTES;
    uint32_t found = crc32c(0, header + CHECKED_FROM, sizeof header - CHECKED_FROM);
    if (!add_to_crc(fd, p->spans_at, spans + values, &found) || found != crc ||
        p->index >= p->count || p->count > SHARES_MAX)
        return damaged;
    p->length = values;
    p->span_bytes = spans;
    p->file_bytes = HEADER_BYTES + spans + values;
    p->data = memory_new(values + 1, 1);
    if (file_read_at(fd, values_at(p), p->data, values) != (ssize_t)values)
        *error = GPUPROF_IO;
    return NULL;
}

enum exit_code part_read(struct part *p, const char *path, int to, uint64_t *end)
{
    struct stat status;
    int error = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *p = (struct part){.path = path};
    if (fd < 0 || fstat(fd, &status) < 0) {
        message("%s: %s", path, strerror(errno));
        close(fd);
        return EXIT_USAGE;
    }
    uint64_t bytes = (uint64_t)status.st_size;
    const char *wrong = !S_ISREG(status.st_mode) ? "is not a file"
                        : bytes > PART_BYTES_MAX ? "is too large for a part"
                                                 : NULL;
    if (!wrong && file_copy_at(fd, 0, to, *end, bytes) < 0)
        error = GPUPROF_SPOOL;
    close(fd);
    if (!wrong && error == 0)
        wrong = part_open(p, to, *end, bytes, &error);
    if (!wrong && error == 0 && p->file_bytes != bytes)
        wrong = "has extra bytes after its end; make this part again";
    p->path = path;
    *end += bytes;
    if (wrong)
        message("report: %s %s", path, wrong);
    return wrong ? EXIT_USAGE : say_error(path, error);
}

void part_release(struct part *p)
{
    free(p->data);
    free(p->devices);
    *p = (struct part){0};
}
