/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream file: one per process. It begins with the stream header, a zstd skippable frame that
 * identifies the process and its clock; blocks (block.h) follow. The live file begins with the same
 * header, so that it is readable without the stream file.
 */
#ifndef GPUPROF_FORMATS_STREAM_H
#define GPUPROF_FORMATS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "clock_scale.h"
#include "record.h"

#define STREAM_FRAME_MAGIC      0x184D2A5Au /* the skippable frame that holds the header */
#define STREAM_MAGIC            0x00464F5250555047ull /* "GPUPROF\0" */
#define STREAM_VERSION          1
#define STREAM_HEADER_BYTES_MAX 2048
#define STREAM_HOST_BYTES_MAX   64
#define STREAM_PATH_BYTES_MAX   1024
#define STREAM_SUFFIX           ".gpuprof" /* of a stream file */
#define STREAM_LIVE_SUFFIX      ".live"    /* of a live file kept beside its stream file */

struct stream_header {
    uint8_t process_id[16]; /* random: identifies the process for ever, whatever its pid */
    uint8_t boot_id[16];    /* of the host's running kernel: equal means the same CLOCK_MONOTONIC */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid; 0: unknown */
    uint64_t start_time;    /* of the process, clock ticks since boot (field 22 of its stat) */
    uint32_t pid;           /* in that namespace */
    uint32_t parent_pid;
    uint32_t api_crc; /* api_table_crc() of the writer */
    struct clock_scale scale;
    uint64_t monotonic_zero_ns;                /* CLOCK_MONOTONIC at scale.ticks_zero */
    uint64_t realtime_zero_ns;                 /* CLOCK_REALTIME then, since 1970 */
    char host[STREAM_HOST_BYTES_MAX + 1];      /* terminated */
    char live_path[STREAM_PATH_BYTES_MAX + 1]; /* of the live file; "": memory without a file */
    int64_t monotonic_shift_ns; /* offset of its CLOCK_MONOTONIC in a time namespace; 0: none */
    /* written when the recording ended before its process; otherwise 0 */
    uint64_t counters[COUNTER_COUNT];
};

/* Writes the header's frame; returns its size, or GPUPROF_LIMIT. */
int stream_header_write(const struct stream_header *h, uint8_t *out, size_t capacity);

/* Reads the frame at `data`; returns its size, GPUPROF_EMPTY, GPUPROF_NOT_OURS, GPUPROF_VERSION,
 * GPUPROF_TRUNCATED or GPUPROF_DAMAGED. Strings are terminated. */
int stream_header_read(struct stream_header *h, const uint8_t *data, size_t length);

#endif
