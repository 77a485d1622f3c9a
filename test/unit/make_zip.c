/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_zip large|far FILE: archives beyond the limits of plain ZIP, in little time and space.
 *
 *   large  "small.txt", then "zeros" of 4 GiB + 1 MiB, then "behind.txt"
 *   far    begins behind a hole of 4 GiB, and has 65,600 members "<number>.txt"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "output/zip_writer.h"

#define PART_BYTES (1u << 20)
#define PARTS      4097
#define HOLE_BYTES (1ull << 32)
#define MANY       65600

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void add(struct zip_writer *z, const char *name, const char *text)
{
    struct output member;
    need(zip_writer_begin(z, name, &member) == 0, name);
    output_write(&member, text, strlen(text));
    need(zip_writer_end(z, &member) == 0, name);
}

/* Zeros, deflated in a way that allows to repeat the outcome: each part knows none before it. */
static size_t deflate_part(uint8_t *out, size_t capacity, int flush)
{
    static uint8_t zeros[PART_BYTES];
    z_stream s = {.next_in = zeros, .avail_in = flush == Z_FINISH ? 0 : PART_BYTES};
    need(deflateInit2(&s, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflate");
    s.next_out = out;
    s.avail_out = (uInt)capacity;
    need(deflate(&s, flush) >= Z_OK && s.avail_out, "deflate");
    deflateEnd(&s);
    return capacity - s.avail_out;
}

static void add_zeros(struct zip_writer *z)
{
    static uint8_t zeros[PART_BYTES];
    uint8_t part[1 << 14];
    struct output member;
    struct zstream_sums sums = {.bytes = (uint64_t)PARTS * PART_BYTES};
    need(zip_writer_begin(z, "zeros", &member) == 0, "zeros");
    zstream_end(member.zstream, NULL); /* the member is made by hand */
    member.zstream = NULL;
    need(ftruncate(z->fd, 0) == 0 && lseek(z->fd, 0, SEEK_SET) == 0, "zeros");
    uLong part_crc = crc32(0, zeros, PART_BYTES);
    uLong crc = 0;
    size_t length = deflate_part(part, sizeof part, Z_FULL_FLUSH);
    for (unsigned i = 0; i < PARTS; i++) {
        need(write(z->fd, part, length) == (ssize_t)length, "zeros");
        crc = crc32_combine(crc, part_crc, PART_BYTES);
        sums.compressed += length;
    }
    length = deflate_part(part, sizeof part, Z_FINISH);
    need(write(z->fd, part, length) == (ssize_t)length, "zeros");
    sums.compressed += length;
    sums.crc = (uint32_t)crc;
    z->members[z->count - 1].sums = sums;
    need(zip_writer_end(z, &member) == 0, "zeros");
}

int main(int argc, char **argv)
{
    struct output out;
    struct zip_writer z;
    if (argc != 3 || (strcmp(argv[1], "large") != 0 && strcmp(argv[1], "far") != 0)) {
        fprintf(stderr, "usage: make_zip large|far FILE\n");
        return 2;
    }
    need(output_open(&out, argv[2]) == 0, argv[2]);
    zip_writer_init(&z, &out);
    if (strcmp(argv[1], "large") == 0) {
        add(&z, "small.txt", "small");
        add_zeros(&z);
        add(&z, "behind.txt", "behind");
    } else {
        need(lseek(out.fd, HOLE_BYTES, SEEK_SET) == (off_t)HOLE_BYTES, argv[2]);
        z.length = HOLE_BYTES;
        for (unsigned i = 0; i < MANY; i++) {
            char name[32];
            char text[32];
            snprintf(name, sizeof name, "%u.txt", i);
            snprintf(text, sizeof text, "member %u", i);
            add(&z, name, text);
        }
    }
    zip_writer_finish(&z);
    need(output_finish(&out, 1) == 0, argv[2]);
    zip_writer_release(&z);
    return 0;
}
