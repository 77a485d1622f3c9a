/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the NVTX injection ABI (versions 2 and 3) that is used here: how a copy of NVTX
 * inside the program hands out its table of functions, and what those get. Linux; pointers have 64
 * bits.
 */
#ifndef GPUPROF_INJECT_NVTX_ABI_H
#define GPUPROF_INJECT_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH" /* names the library that NVTX loads */

/* The argument of InitializeInjectionNvtx2: returns tables by number. */
typedef const void *(*nvtx_export_fn)(uint32_t table);

#define NVTX_TABLE_CALLBACKS 1

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t struct_size;
    /*
     * Returns an array of `*size` places by function number, into which the functions are written.
     */
    int (*get_functions)(uint32_t module, nvtx_function ***functions, unsigned *size);
};

enum nvtx_module { NVTX_CORE = 1, NVTX_CUDA = 2, NVTX_CUDART = 4, NVTX_CORE2 = 5 };

enum nvtx_core {
    NVTX_MARK_EX = 1,
    NVTX_MARK_A = 2,
    NVTX_MARK_W = 3,
    NVTX_START_EX = 4,
    NVTX_START_A = 5,
    NVTX_START_W = 6,
    NVTX_END = 7,
    NVTX_PUSH_EX = 8,
    NVTX_PUSH_A = 9,
    NVTX_PUSH_W = 10,
    NVTX_POP = 11,
    NVTX_NAME_CATEGORY_A = 12,
    NVTX_NAME_CATEGORY_W = 13,
    NVTX_NAME_THREAD_A = 14,
    NVTX_NAME_THREAD_W = 15,
};

enum nvtx_core2 {
    NVTX_DOMAIN_MARK_EX = 1,
    NVTX_DOMAIN_START_EX = 2,
    NVTX_DOMAIN_END = 3,
    NVTX_DOMAIN_PUSH_EX = 4,
    NVTX_DOMAIN_POP = 5,
    NVTX_DOMAIN_RESOURCE_CREATE = 6,
    NVTX_DOMAIN_RESOURCE_DESTROY = 7,
    NVTX_DOMAIN_NAME_CATEGORY_A = 8,
    NVTX_DOMAIN_NAME_CATEGORY_W = 9,
    NVTX_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_DOMAIN_CREATE_A = 12,
    NVTX_DOMAIN_CREATE_W = 13,
    NVTX_DOMAIN_DESTROY = 14,
    NVTX_INITIALIZE = 15,
};

enum nvtx_cuda {
    NVTX_NAME_CU_DEVICE_A = 1,
    NVTX_NAME_CU_DEVICE_W = 2,
    NVTX_NAME_CU_CONTEXT_A = 3,
    NVTX_NAME_CU_CONTEXT_W = 4,
    NVTX_NAME_CU_STREAM_A = 5,
    NVTX_NAME_CU_STREAM_W = 6,
    NVTX_NAME_CU_EVENT_A = 7,
    NVTX_NAME_CU_EVENT_W = 8,
};

enum nvtx_cudart {
    NVTX_NAME_CUDA_DEVICE_A = 1,
    NVTX_NAME_CUDA_DEVICE_W = 2,
    NVTX_NAME_CUDA_STREAM_A = 3,
    NVTX_NAME_CUDA_STREAM_W = 4,
    NVTX_NAME_CUDA_EVENT_A = 5,
    NVTX_NAME_CUDA_EVENT_W = 6,
};

/* Resource types: class << 16 | number. */
enum nvtx_resource_type {
    NVTX_CU_DEVICE = 0x40001,
    NVTX_CU_CONTEXT = 0x40002,
    NVTX_CU_STREAM = 0x40003,
    NVTX_CU_EVENT = 0x40004,
    NVTX_CUDA_DEVICE = 0x50000,
    NVTX_CUDA_STREAM = 0x50001,
    NVTX_CUDA_EVENT = 0x50002,
};

enum nvtx_message_type { NVTX_ASCII = 1, NVTX_UNICODE = 2, NVTX_REGISTERED = 3 };

enum nvtx_color_type { NVTX_ARGB = 1 };

enum nvtx_payload_type {
    NVTX_UINT64 = 1,
    NVTX_INT64 = 2,
    NVTX_DOUBLE = 3,
    NVTX_UINT32 = 4,
    NVTX_INT32 = 5,
    NVTX_FLOAT = 6,
    /* 0xdfbd0009: `payload` points to nvtx_payloads, `reserved` is their number */
    NVTX_EXTENDED = -541261815,
};

union nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    uint64_t registered;
};

/* nvtxEventAttributes_v1 and _v2 have the same layout; `size` says how much of it there is. */
struct nvtx_event {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    union nvtx_message message;
};

/* nvtxPayloadData_v1 */
struct nvtx_payload {
    uint64_t schema;
    size_t size; /* SIZE_MAX: given by the schema */
    const void *data;
};

/* nvtxResourceAttributes_v0 */
struct nvtx_resource {
    uint16_t version;
    uint16_t size;
    int32_t type;
    uint64_t identifier;
    int32_t message_type;
    union nvtx_message message;
};

_Static_assert(sizeof(struct nvtx_event) == 48 && offsetof(struct nvtx_event, payload) == 24 &&
                   offsetof(struct nvtx_event, message) == 40,
               "nvtxEventAttributes_t");
_Static_assert(sizeof(struct nvtx_resource) == 32 && offsetof(struct nvtx_resource, message) == 24,
               "nvtxResourceAttributes_t");

#endif
