/* SPDX-License-Identifier: Apache-2.0 */
#include "output/zip_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "bytes.h"
#include "error.h"

#define LOCAL_MAGIC     0x04034b50u
#define CENTRAL_MAGIC   0x02014b50u
#define END_MAGIC       0x06054b50u
#define END64_MAGIC     0x06064b50u
#define LOCATOR64_MAGIC 0x07064b50u
#define EXTRA64_ID      1
#define VERSION_64      45
#define METHOD_DEFLATE  8
#define FLAG_UTF8       0x800
#define DATE_1980                                                                                  \
    0x21 /* a fixed date, the earliest possible: equal content gives equal                         \
          * files */
#define MODE_FILE    (0100644u << 16)
#define MADE_ON_UNIX (3u << 8)
#define FIELD_64     0xffffffffu
#define COUNT_64     0xffffu
#define COPY_BYTES   65536

void zip_writer_release(struct zip_writer *z)
{
    for (uint32_t i = 0; i < z->count; i++)
        free(z->members[i].name);
    free(z->members);
}

static void zip_writer_put_data(struct zip_writer *z, const void *data, size_t length)
{
    output_write(z->out, data, length);
    z->length += length;
}

void zip_writer_begin(struct zip_writer *z, const char *name, struct output *member)
{
    struct zip_member its = {.name = memory_text(name)};
    ARRAY_PUSH(z->members, z->count, &its);
    z->fd = file_unnamed();
    if (z->fd < 0)
        file_unnamed_failed();
    output_open_member(member, z->fd);
}

/* If any size is large, the extra field has them all. */
static bool is_large(const struct zip_member *m)
{
    return m->sums.bytes >= FIELD_64 || m->sums.compressed >= FIELD_64 || m->offset >= FIELD_64;
}

/* Writes numbers of 2, 4 or 8 bytes, one digit of `widths` for each. */
static void zip_writer_put_numbers(struct zip_writer *z, const char *widths,
                                   const uint64_t *numbers)
{
    uint8_t bytes[8];
    for (; *widths; widths++) {
        store_u64(bytes, *numbers++);
        zip_writer_put_data(z, bytes, (size_t)(*widths - '0'));
    }
}

/* Writes the header before a member's data, or its entry in the final directory. */
static void zip_writer_put_head(struct zip_writer *z, const struct zip_member *m, bool is_central)
{
    bool large = is_large(m);
    uint64_t version = large ? VERSION_64 : 20, extra_bytes = is_central ? 28 : 20;
    if (is_central)
        zip_writer_put_numbers(z, "42", (uint64_t[]){CENTRAL_MAGIC, MADE_ON_UNIX | version});
    else
        zip_writer_put_numbers(z, "4", (uint64_t[]){LOCAL_MAGIC});
    zip_writer_put_numbers(z, "2222244422",
                           (uint64_t[]){version, FLAG_UTF8, METHOD_DEFLATE, 0, DATE_1980,
                                        m->sums.crc, large ? FIELD_64 : m->sums.compressed,
                                        large ? FIELD_64 : m->sums.bytes, strlen(m->name),
                                        large ? extra_bytes : 0});
    if (is_central)
        zip_writer_put_numbers(z, "22244",
                               (uint64_t[]){0, 0, 0, MODE_FILE, large ? FIELD_64 : m->offset});
    zip_writer_put_data(z, m->name, strlen(m->name));
    if (large)
        zip_writer_put_numbers(z, is_central ? "22888" : "2288",
                               (uint64_t[]){EXTRA64_ID, extra_bytes - 4, m->sums.bytes,
                                            m->sums.compressed, m->offset});
}

static void copy_data(struct zip_writer *z)
{
    char buffer[COPY_BYTES];
    uint64_t at = 0;
    ssize_t got;
    while ((got = file_read_at(z->fd, at, buffer, sizeof buffer)) > 0) {
        zip_writer_put_data(z, buffer, (size_t)got);
        at += (uint64_t)got;
    }
    if (got < 0)
        file_unnamed_failed();
}

int zip_writer_end(struct zip_writer *z, struct output *member)
{
    struct zip_member *m = &z->members[z->count - 1];
    member->sums = &m->sums;
    int error = output_finish(member, 1);
    if (error == GPUPROF_IO)
        file_unnamed_failed();
    m->offset = z->length;
    zip_writer_put_head(z, m, false);
    copy_data(z);
    file_close(z->fd);
    return error;
}

void zip_writer_finish(struct zip_writer *z)
{
    uint64_t begin = z->length, count = min_of(z->count, COUNT_64);
    for (uint32_t i = 0; i < z->count; i++)
        zip_writer_put_head(z, &z->members[i], true);
    uint64_t end = z->length, bytes = end - begin;
    if (begin >= FIELD_64 || bytes >= FIELD_64 || count == COUNT_64) {
        zip_writer_put_numbers(z, "4822448888",
                               (uint64_t[]){END64_MAGIC, 44, MADE_ON_UNIX | VERSION_64, VERSION_64,
                                            0, 0, z->count, z->count, bytes, begin});
        zip_writer_put_numbers(z, "4484", (uint64_t[]){LOCATOR64_MAGIC, 0, end, 1});
    }
    zip_writer_put_numbers(z, "42222442",
                           (uint64_t[]){END_MAGIC, 0, 0, count, count, min_of(bytes, FIELD_64),
                                        min_of(begin, FIELD_64), 0});
}
