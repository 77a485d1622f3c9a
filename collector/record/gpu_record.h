/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of the device and of NVTX hold: CUPTI's and NVTX's numbers, in words as Kineto
 * writes them.
 */
#ifndef GPUPROF_COLLECTOR_GPU_RECORD_H
#define GPUPROF_COLLECTOR_GPU_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* Of gpuprof's own threads whose blocks hold these records, and readings of counters. */
#define GPU_THREAD_NAME    "gpuprof-gpu"
#define DEVICE_THREAD_NAME "gpuprof-device"
#define HOST_THREAD_NAME   "gpuprof-host" /* which looks at the others */

enum sync_kind { SYNC_EVENT_HOST = 1, SYNC_STREAM_WAIT, SYNC_STREAM_HOST, SYNC_CONTEXT_HOST };
enum overhead_kind {
    OVERHEAD_COMPILER = 1,
    OVERHEAD_MODULE_LOADING = 4 << 16,
    OVERHEAD_LAZY_LOADING = 5 << 16,
};
enum object_kind { OBJECT_THREAD = 2 }; /* of an overhead, among others */
enum memory_operation { MEMORY_ALLOCATE = 1, MEMORY_RELEASE = 2 };
enum pool_operation { POOL_CREATED = 1, POOL_DESTROYED = 2, POOL_TRIMMED = 3 };
enum pool_kind { POOL_LOCAL = 1 }; /* others are of another process */

#define GPU_STREAM_NONE    0xffffffffu /* CUPTI's word for "no stream": a whole context */
#define GPU_STREAM_DEFAULT 7           /* how consumers know the default stream */

/* An argument that the record does not have is 0. */
static inline uint64_t record_arg(const struct record *r, unsigned index)
{
    return index < r->arg_count ? r->args[index] : 0;
}

/* Work that runs on a stream: KERNEL, COPY, SET or GRAPH. Their first three arguments are alike. */
static inline bool is_stream_work(uint8_t type)
{
    return event_shows[type] == EVENT_WORK;
}

/* What of a block (block_type_bit) is calls, and what is work, with what is told beside it. */
#define CALL_TYPES     (UINT64_C(1) << RECORD_CALL)
#define OVERHEAD_TYPES (UINT64_C(1) << RECORD_OVERHEAD)
#define WORK_TYPES                                                                                 \
    (UINT64_C(1) << RECORD_KERNEL | UINT64_C(1) << RECORD_COPY | UINT64_C(1) << RECORD_SET |       \
     UINT64_C(1) << RECORD_GRAPH | UINT64_C(1) << RECORD_SYNC | OVERHEAD_TYPES)

/* The device of such work, or of memory; UINT64_MAX: the record says none. */
uint64_t record_device(const struct record *r);

/* What ranges, marks and their names are made of. */
static inline bool is_range_record(unsigned type)
{
    return type >= RECORD_PUSH && type <= RECORD_LABEL;
}

/* What the host did that is no call: samples, what waited, the interpreter. */
static inline bool is_host_record(unsigned type)
{
    return type == RECORD_SAMPLE || type == RECORD_OS_CALL || type == RECORD_GIL ||
           type == RECORD_GC;
}

/* Does the record show in a trace? The others only describe. */
static inline bool event_is_visible(uint8_t type)
{
    return event_shows[type] != EVENT_FACT;
}

/* As Kineto has them; never NULL. */
const char *copy_kind_text(uint64_t kind);     /* "HtoD" */
const char *memory_kind_text(uint64_t kind);   /* "Pageable" */
const char *sync_kind_text(uint64_t kind);     /* "Stream Sync" */
const char *overhead_kind_text(uint64_t kind); /* "Lazy Function Loading" */
const char *memory_operation_text(uint64_t operation);
const char *pool_operation_text(uint64_t operation);
const char *object_kind_text(uint64_t kind);
const char *payload_type_text(uint64_t type);
const char *label_kind_text(uint64_t kind);

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"; returns `text`. */
#define GPU_TITLE_BYTES 96
char *copy_title(uint64_t kind, uint64_t source, uint64_t destination, char *text);
char *set_title(uint64_t kind, char *text);

/* What a record that has no text of its own is called, perhaps in `text`; NULL: it has no name. Of
 * a kernel, what it is called where its name is not known. */
const char *record_title(const struct record *r, char text[GPU_TITLE_BYTES]);

/* The threads of a dim3 (x | y << 32 | z << 48), cut at 2^62. */
uint64_t dim3_volume(uint64_t dim3);

/* What a thread did while it made no call, as a SILENCE record has it. */

struct record;

#define SILENCE_ALL 1000000u

/* What a thread did in a time without a call, in millionths of it; the rest of the time it ran, or
 * nobody knows. */
struct silence_look {
    uint32_t waiting;
    uint32_t preempted;
    uint32_t unknown; /* one of these two, and nobody knows which */
    bool is_known;    /* the rest it ran */
};

/* The record's times are of the silence and of the calls between it and the reading before. False:
 * nobody can tell. */
bool silence_look_of(const struct record *r, struct silence_look *look);

#endif
