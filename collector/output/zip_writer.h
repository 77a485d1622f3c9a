/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZIP archive, written from front to back. Each member is first compressed into an unnamed file,
 * so that its header has its sizes: some readers need them there. Uses ZIP64 above 4 GiB. Memory: a
 * name and 40 bytes per member.
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

/* Starts zeroed, except for `out`. */
struct zip_writer {
    struct output *out;         /* not compressed */
    struct zip_member *members; /* owned */
    uint32_t count;
    uint64_t length; /* of the archive so far */
    int fd;          /* of the current member, between its begin and end */
};

void zip_writer_release(struct zip_writer *z);

/* Begins a member; write its content to *member. */
void zip_writer_begin(struct zip_writer *z, const char *name, struct output *member);

/* Appends *member to the archive. Returns 0, or GPUPROF_LIMIT if its text exceeded its `room`. */
int zip_writer_end(struct zip_writer *z, struct output *member);

/* Writes the directory at the archive's end. */
void zip_writer_finish(struct zip_writer *z);

#endif
