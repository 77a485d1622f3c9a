/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intercepted functions as data: names, classes and argument labels, expanded from api.def.
 * The library writes this table into every stream file (record type API), so that a reader of
 * another version needs no copy of it; the collector falls back to its own only for a live file
 * whose process died before the table was written.
 */
#ifndef GPUPROF_FORMATS_API_H
#define GPUPROF_FORMATS_API_H

#include <stdint.h>

#define API_ARGS_MAX 10

enum api_domain { API_RUNTIME, API_DRIVER, API_DOMAIN_COUNT };

/* What a call does; reports group by it. GRAPH: capture, instantiate, destroy (no device work). */
enum api_class {
    API_LAUNCH,
    API_ALLOC,
    API_COPY,
    API_SYNC,
    API_GRAPH_LAUNCH,
    API_GRAPH,
    API_CLASS_COUNT
};

/*
 * How an argument word is to be shown.
 *   ADDRESS  host or device address            hex string
 *   HANDLE   opaque handle (graph, pool, ...)  hex string
 *   STREAM   cudaStream_t/CUstream             hex string; 0, 1, 2 are the default streams
 *   EVENT    cudaEvent_t/CUevent               hex string
 *   KERNEL   function handle or host symbol    the kernel's name (NAME records), else hex
 *   BYTES    bytes that the call moves, sets or allocates (several of one call add up)
 *   COUNT    a plain unsigned number
 *   KIND     enum cudaMemcpyKind               HtoD, DtoH, ...
 *   DIM3     x | y << 32 | z << 48, saturated at 65535 in y and z
 *   DIM3_XY  x | y << 32; the next is a DIM3_Z: shown as one DIM3, with this one's label
 *   DEVICE   device ordinal                    -1 (all bits set) is the host
 *   FLAGS    bit mask                          hex string
 */
enum api_arg_kind {
    API_ADDRESS,
    API_HANDLE,
    API_STREAM,
    API_EVENT,
    API_KERNEL,
    API_BYTES,
    API_COUNT,
    API_KIND,
    API_DIM3,
    API_DEVICE,
    API_FLAGS,
    API_DIM3_XY,
    API_DIM3_Z,
    API_ARG_KIND_COUNT
};

struct api_arg {
    uint8_t kind; /* enum api_arg_kind */
    const char *label;
};

struct api_function {
    const char *symbol;
    uint8_t domain; /* enum api_domain */
    uint8_t class;  /* enum api_class */
    uint8_t arg_count;
    struct api_arg args[API_ARGS_MAX];
};

/* Index of each API row, in table order: what a CALL record's `code` says within one version. */
enum api_index {
#define API(id, ...)         API_INDEX_##id,
#define API_VARIANT(id, ...) API_INDEX_##id,
#include "api/api.def"
    API_FUNCTION_COUNT
};

extern const struct api_function api_functions[API_FUNCTION_COUNT];

/* CRC-32C over symbols, classes and labels: two builds with the same value share their indexes. */
uint32_t api_table_crc(void);

const char *api_domain_name(unsigned domain);     /* "runtime", "driver"; "?" if out of range */
const char *api_class_name(unsigned class);       /* "launch", "alloc", ... */
const char *api_arg_kind_name(unsigned arg_kind); /* "address", ... */

#endif
