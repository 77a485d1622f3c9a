/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of GPU and NVTX records: CUPTI's and NVTX's numbers, with the words that Kineto uses;
 * and text and JSON of the arguments of calls and records. */
#ifndef GPUPROF_COLLECTOR_GPU_RECORD_H
#define GPUPROF_COLLECTOR_GPU_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "record.h"

/* Names of gpuprof's own threads, which write these records and readings of counters. */
#define GPU_THREAD_NAME    "gpuprof-gpu"
#define DEVICE_THREAD_NAME "gpuprof-device"
#define HOST_THREAD_NAME   "gpuprof-host" /* samples the other threads */

enum sync_kind { SYNC_EVENT_HOST = 1, SYNC_STREAM_WAIT, SYNC_STREAM_HOST, SYNC_CONTEXT_HOST };
enum overhead_kind {
    OVERHEAD_COMPILER = 1,
    OVERHEAD_MODULE_LOADING = 4 << 16,
    OVERHEAD_LAZY_LOADING = 5 << 16,
};
enum object_kind { OBJECT_THREAD = 2 }; /* object of an overhead, among others */
enum memory_operation { MEMORY_ALLOCATE = 1, MEMORY_RELEASE = 2 };
enum pool_operation { POOL_CREATED = 1, POOL_DESTROYED = 2, POOL_TRIMMED = 3 };
enum pool_kind { POOL_LOCAL = 1 }; /* others belong to another process */

#define GPU_STREAM_NONE    0xffffffffu /* CUPTI's value for "no stream": a whole context */
#define GPU_STREAM_DEFAULT 7           /* number of the default stream for consumers */

/* An argument; 0 if the record does not have it. */
static inline uint64_t record_arg(const struct record *r, unsigned index)
{
    return index < r->arg_count ? r->args[index] : 0;
}

/* Work that runs on a stream: KERNEL, COPY, SET or GRAPH. Their first three arguments are alike. */
static inline bool is_stream_work(uint8_t type)
{
    return event_shows[type] == EVENT_WORK;
}

/* Record types (block_type_bit) of calls, and of GPU work with the records beside it. */
#define CALL_TYPES     (UINT64_C(1) << RECORD_CALL)
#define OVERHEAD_TYPES (UINT64_C(1) << RECORD_OVERHEAD)
#define WORK_TYPES                                                                                 \
    (UINT64_C(1) << RECORD_KERNEL | UINT64_C(1) << RECORD_COPY | UINT64_C(1) << RECORD_SET |       \
     UINT64_C(1) << RECORD_GRAPH | UINT64_C(1) << RECORD_SYNC | OVERHEAD_TYPES)

/* The device of such work, or of memory; UINT64_MAX: none. */
uint64_t record_device(const struct record *r);

/* Whether it describes ranges, marks or their names. */
static inline bool is_range_record(unsigned type)
{
    return type >= RECORD_PUSH && type <= RECORD_LABEL;
}

/* Whether it is a host record other than a call: samples, waits, the interpreter. */
static inline bool is_host_record(unsigned type)
{
    return type == RECORD_SAMPLE || type == RECORD_OS_CALL || type == RECORD_GIL ||
           type == RECORD_GC;
}

/* Whether the record is an event in a trace; others only describe. */
static inline bool event_is_visible(uint8_t type)
{
    return event_shows[type] != EVENT_FACT;
}

/* Defines NAME_text: the words of values from 0 on, and `other` for those without a word. */
#define WORDS(name, other, ...)                                                                    \
    const char *name##_text(uint64_t value)                                                        \
    {                                                                                              \
        static const char *const words[] = {__VA_ARGS__};                                          \
        bool has_word = value < sizeof words / sizeof words[0] && words[value];                    \
        return has_word ? words[value] : other;                                                    \
    }

/* As Kineto has them; never NULL. */
const char *copy_kind_text(uint64_t kind);     /* "HtoD" */
const char *sync_kind_text(uint64_t kind);     /* "Stream Sync" */
const char *overhead_kind_text(uint64_t kind); /* "Lazy Function Loading" */
const char *object_kind_text(uint64_t kind);

/* Types and modes of matrix libraries: "bf16", "f32-fast-tf32". NULL: an unknown value. */
const char *cuda_type_text(uint64_t type);       /* cudaDataType */
const char *compute_type_text(uint64_t compute); /* cublasComputeType_t */

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"; returns `text`. */
#define GPU_TITLE_BYTES 96
char *copy_title(uint64_t kind, uint64_t source, uint64_t destination, char *text);
char *set_title(uint64_t kind, char *text);

/* The title of a record without a text, or of a nameless kernel, perhaps in `text`; NULL: none. */
const char *record_title(const struct record *r, char text[GPU_TITLE_BYTES]);

/* The threads of a dim3 (x | y << 32 | z << 48), cut at 2^62. */
uint64_t dim3_volume(uint64_t dim3);

/* Prints the value of an argument; `kind` is its enum arg_kind. */
void argument_print(unsigned kind, uint64_t value, FILE *out);

/* The same as JSON: words and hexadecimal bits as strings, a dim3 as a list, anything else as a
 * number, or as a string if JavaScript would round it. Writes at most ARGUMENT_JSON_BYTES to `out`;
 * returns the end. */
#define ARGUMENT_JSON_BYTES 128
char *argument_json(unsigned kind, uint64_t value, char *out);

/* The same for the payload of a range of an nvtxPayloadType_t. Signed and floating-point values of
 * 64 bits are strings, as JSON has no infinity. */
char *payload_json(uint64_t type, uint64_t value, char *out);

/* Thread states during a time without calls, from a SILENCE record. */

struct record;

#define SILENCE_ALL 1000000u

/* Parts of a time without calls, in millionths. For the rest it ran, or its state is not known. */
struct silence_look {
    uint32_t waiting;
    uint32_t preempted;
    uint32_t unknown; /* one of the two above, not known which */
    bool is_known;    /* it ran for the rest */
};

/* Reads a SILENCE record, which includes the calls since the reading before. False: not known. */
bool silence_look_of(const struct record *r, struct silence_look *look);

#endif
