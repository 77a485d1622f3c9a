/* SPDX-License-Identifier: Apache-2.0 */
#include "output/zip_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "bytes.h"
#include "error.h"

#define LOCAL_MAGIC     0x04034b50u
#define CENTRAL_MAGIC   0x02014b50u
#define END_MAGIC       0x06054b50u
#define END64_MAGIC     0x06064b50u
#define LOCATOR64_MAGIC 0x07064b50u
#define LOCAL_BYTES     30
#define CENTRAL_BYTES   46
#define END_BYTES       22
#define END64_BYTES     56
#define LOCATOR64_BYTES 20
#define EXTRA64_LOCAL   20 /* id, length, two sizes */
#define EXTRA64_CENTRAL 28 /* and the offset */
#define EXTRA64_ID      1
#define VERSION_64      45
#define METHOD_DEFLATE  8
#define FLAG_UTF8       0x800
#define DATE_1980       0x21 /* the first day that there is: the same content, the same file */
#define MODE_FILE       (0100644u << 16)
#define MADE_ON_UNIX    (3u << 8)
#define FIELD_64        0xffffffffu
#define COUNT_64        0xffffu
#define COPY_BYTES      65536

void zip_writer_init(struct zip_writer *z, struct output *out)
{
    *z = (struct zip_writer){.out = out, .fd = -1};
}

void zip_writer_release(struct zip_writer *z)
{
    for (uint32_t i = 0; i < z->count; i++)
        free(z->members[i].name);
    free(z->members);
    if (z->fd >= 0)
        close(z->fd);
    *z = (struct zip_writer){.fd = -1};
}

static void put_data(struct zip_writer *z, const void *data, size_t length)
{
    output_write(z->out, data, length);
    z->length += length;
}

int zip_writer_begin(struct zip_writer *z, const char *name, struct output *member)
{
    struct zip_member its = {.name = strdup(name)};
    int error = its.name ? 0 : GPUPROF_NO_MEMORY;
    if (error == 0 && (z->fd = file_unnamed()) < 0)
        error = GPUPROF_SPOOL;
    if (error == 0)
        error = ARRAY_PUSH(z->members, z->count, &its);
    if (error < 0)
        free(its.name);
    return error < 0 ? error : output_open_member(member, z->fd, NULL);
}

/* All sizes stand in the extra field then, whichever of them is large. */
static bool is_large(const struct zip_member *m)
{
    return m->sums.bytes >= FIELD_64 || m->sums.compressed >= FIELD_64 || m->offset >= FIELD_64;
}

/* What a local and a central head have alike, from the version needed on. */
static void fill_common(const struct zip_member *m, uint8_t *out, uint16_t extra_bytes)
{
    bool large = is_large(m);
    store_u16(out, large ? VERSION_64 : 20);
    store_u16(out + 2, FLAG_UTF8);
    store_u16(out + 4, METHOD_DEFLATE);
    store_u16(out + 6, 0);
    store_u16(out + 8, DATE_1980);
    store_u32(out + 10, m->sums.crc);
    store_u32(out + 14, large ? FIELD_64 : (uint32_t)m->sums.compressed);
    store_u32(out + 18, large ? FIELD_64 : (uint32_t)m->sums.bytes);
    store_u16(out + 22, (uint16_t)strlen(m->name));
    store_u16(out + 24, extra_bytes);
}

static void put_extra(struct zip_writer *z, const struct zip_member *m, uint16_t bytes)
{
    uint8_t extra[EXTRA64_CENTRAL];
    store_u16(extra, EXTRA64_ID);
    store_u16(extra + 2, (uint16_t)(bytes - 4));
    store_u64(extra + 4, m->sums.bytes);
    store_u64(extra + 12, m->sums.compressed);
    store_u64(extra + 20, m->offset);
    if (bytes)
        put_data(z, extra, bytes);
}

static int copy_data(struct zip_writer *z)
{
    char buffer[COPY_BYTES];
    uint64_t at = 0;
    ssize_t got;
    while ((got = file_read_at(z->fd, at, buffer, sizeof buffer)) > 0) {
        put_data(z, buffer, (size_t)got);
        at += (uint64_t)got;
    }
    return got < 0 ? GPUPROF_IO : 0;
}

int zip_writer_end(struct zip_writer *z, struct output *member)
{
    uint8_t head[LOCAL_BYTES];
    struct zip_member *m = &z->members[z->count - 1];
    member->sums = &m->sums;
    int error = output_finish(member, 1);
    if (error == GPUPROF_IO)
        error = GPUPROF_SPOOL;
    m->offset = z->length;
    if (error == 0) {
        uint16_t extra_bytes = is_large(m) ? EXTRA64_LOCAL : 0;
        store_u32(head, LOCAL_MAGIC);
        fill_common(m, head + 4, extra_bytes);
        put_data(z, head, sizeof head);
        put_data(z, m->name, strlen(m->name));
        put_extra(z, m, extra_bytes);
        error = copy_data(z);
    }
    int saved = errno;
    close(z->fd);
    z->fd = -1;
    errno = saved;
    return error;
}

static void put_central(struct zip_writer *z, const struct zip_member *m)
{
    uint8_t head[CENTRAL_BYTES] = {0};
    uint16_t extra_bytes = is_large(m) ? EXTRA64_CENTRAL : 0;
    store_u32(head, CENTRAL_MAGIC);
    store_u16(head + 4, MADE_ON_UNIX | (is_large(m) ? VERSION_64 : 20));
    fill_common(m, head + 6, extra_bytes);
    store_u32(head + 38, MODE_FILE);
    store_u32(head + 42, is_large(m) ? FIELD_64 : (uint32_t)m->offset);
    put_data(z, head, sizeof head);
    put_data(z, m->name, strlen(m->name));
    put_extra(z, m, extra_bytes);
}

static void put_end64(struct zip_writer *z, uint64_t begin, uint64_t bytes)
{
    uint8_t end[END64_BYTES] = {0};
    uint8_t locator[LOCATOR64_BYTES] = {0};
    uint64_t at = z->length;
    store_u32(end, END64_MAGIC);
    store_u64(end + 4, END64_BYTES - 12);
    store_u16(end + 12, MADE_ON_UNIX | VERSION_64);
    store_u16(end + 14, VERSION_64);
    store_u64(end + 24, z->count);
    store_u64(end + 32, z->count);
    store_u64(end + 40, bytes);
    store_u64(end + 48, begin);
    put_data(z, end, sizeof end);
    store_u32(locator, LOCATOR64_MAGIC);
    store_u64(locator + 8, at);
    store_u32(locator + 16, 1);
    put_data(z, locator, sizeof locator);
}

void zip_writer_finish(struct zip_writer *z)
{
    uint8_t end[END_BYTES] = {0};
    uint64_t begin = z->length;
    for (uint32_t i = 0; i < z->count; i++)
        put_central(z, &z->members[i]);
    uint64_t bytes = z->length - begin;
    bool large = begin >= FIELD_64 || bytes >= FIELD_64 || z->count >= COUNT_64;
    if (large)
        put_end64(z, begin, bytes);
    store_u32(end, END_MAGIC);
    store_u16(end + 8, z->count < COUNT_64 ? (uint16_t)z->count : COUNT_64);
    store_u16(end + 10, z->count < COUNT_64 ? (uint16_t)z->count : COUNT_64);
    store_u32(end + 12, bytes < FIELD_64 ? (uint32_t)bytes : FIELD_64);
    store_u32(end + 16, begin < FIELD_64 ? (uint32_t)begin : FIELD_64);
    put_data(z, end, sizeof end);
}
