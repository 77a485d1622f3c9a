/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZIP archive, written from front to back. Each member is compressed into a file without a name
 * first, so that its head can say its sizes: not every reader takes them from behind the data.
 * Above 4 GiB the fields of ZIP64 are used. Memory: a name and 40 bytes per member.
 */
#ifndef GPUPROF_COLLECTOR_ZIP_WRITER_H
#define GPUPROF_COLLECTOR_ZIP_WRITER_H

#include <stdint.h>

#include "output/output.h"

struct zip_member {
    char *name; /* owned */
    struct zstream_sums sums;
    uint64_t offset;
};

struct zip_writer {
    struct output *out;         /* not compressed */
    struct zip_member *members; /* owned */
    uint32_t count;
    uint64_t length; /* of the archive so far */
    int fd;          /* of the member being made; -1: none */
};

void zip_writer_init(struct zip_writer *z, struct output *out);
void zip_writer_release(struct zip_writer *z);

/* Begins a member: what is written into *member is its content. 0, GPUPROF_SPOOL,
 * GPUPROF_NO_MEMORY.
 */
int zip_writer_begin(struct zip_writer *z, const char *name, struct output *member);

/* Finishes *member and puts it into the archive. 0, GPUPROF_SPOOL (errno) or GPUPROF_NO_MEMORY. */
int zip_writer_end(struct zip_writer *z, struct output *member);

/* The directory at the archive's end. */
void zip_writer_finish(struct zip_writer *z);

#endif
