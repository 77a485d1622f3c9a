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
    zip_writer_begin(z, name, &member);
    output_write(&member, text, strlen(text));
    need(zip_writer_end(z, &member) == 0, name);
}

static void add_zeros(struct zip_writer *z)
{
    static char zeros[PART_BYTES];
    struct output member;
    zip_writer_begin(z, "zeros", &member);
    for (unsigned i = 0; i < PARTS; i++)
        output_write(&member, zeros, PART_BYTES);
    need(zip_writer_end(z, &member) == 0, "zeros");
}

int main(int argc, char **argv)
{
    struct output out;
    struct zip_writer z = {.out = &out};
    if (argc != 3 || (strcmp(argv[1], "large") != 0 && strcmp(argv[1], "far") != 0)) {
        fprintf(stderr, "usage: make_zip large|far FILE\n");
        return 2;
    }
    need(output_open(&out, argv[2]) == 0, argv[2]);
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
