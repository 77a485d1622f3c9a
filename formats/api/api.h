/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intercepted functions as data: names, classes and argument labels, expanded from api.def.
 * The library writes this table into every stream file (record type API), so that a reader of
 * another version needs no copy of it; the collector falls back to its own only for a live file
 * whose process died before the table was written.
 */
#ifndef GPUPROF_FORMATS_API_H
#define GPUPROF_FORMATS_API_H

#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"
#include "argument_kind.h"
#include "block.h"

#define API_ARGS_MAX     10 /* of a CALL record */
#define LIBRARY_ARGS_MAX 14 /* of a call of an enclosing library */

/* Libraries whose calls are hooked, by the rows of api.def. */
enum api_domain {
#define API_DOMAIN(NAME, ...) API_##NAME,
#include "api/api.def"
    API_DOMAIN_COUNT
};

/* The result of a library that is not a failure, besides 0. */
enum api_pending {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, ...)                         \
    API_PENDING_OF_##NAME = (pending),
#include "api/api.def"
};

/* Which call is the event when one call is inside another. */
enum api_layer {
    /* The outermost call is the event; calls that the library makes inside it are part of it. */
    API_OWNER,
    /*
     * The outermost call of its own library is an event. OWNERs' calls inside it stay events,
     * correlated by time on the thread. It has a begin and an end record like a range, is not in
     * thread.open, and does not concern the fast path.
     */
    API_ENCLOSING,
};

/* Whether a process may have several copies of the library. */
enum api_bound { API_EACH, API_ONE };

struct api_library {
    const char *name;
    const char *prefix;
    const char *soname;
    uint8_t layer; /* enum api_layer */
    uint8_t bound; /* enum api_bound */
    uint8_t cupti; /* CUPTI's number for the domain of its callbacks; 0: none */
    const char *category;
    uint8_t within; /* enum api_domain: calls inside calls of that library are part of them */
};

extern const struct api_library api_libraries[API_DOMAIN_COUNT];

/* What a call does; reports group by it. GRAPH: capture, instantiate, destroy (no device work). */
enum api_class {
    API_LAUNCH,
    API_ALLOC,
    API_COPY,
    API_SYNC,
    API_GRAPH_LAUNCH,
    API_GRAPH,
    API_LIBRARY, /* a call of a library that uses CUDA */
    API_CLASS_COUNT
};

/* What a successful call means for stream captures. */
enum api_capture {
    API_CAPTURE_NONE,
    API_CAPTURE_BEGIN,
    API_CAPTURE_END,
    API_CAPTURE_EVENT_RECORD,
    API_CAPTURE_EVENT_WAIT,
};

/*
 * What a successful call means for the memory ledger. Memory is identified by the argument `ptr`,
 * an address or an array's handle; physical memory and imports by `handle`.
 */
enum api_memory {
    API_MEMORY_NONE,
    API_MEMORY_GET_DEVICE,
    API_MEMORY_GET_MANAGED,
    API_MEMORY_GET_POOLED,   /* in stream order; if captured, a node of a graph */
    API_MEMORY_GET_PHYSICAL, /* without an address; it has one reference, its handle */
    API_MEMORY_GET_ARRAY,
    API_MEMORY_GET_HOST,
    API_MEMORY_REGISTER_HOST, /* the program's own memory becomes pinned */
    API_MEMORY_OPEN_FOREIGN,  /* memory of others (IPC, imports): no bytes of this process */
    API_MEMORY_RETAIN,        /* another reference to the physical memory at an address */
    API_MEMORY_MAP,           /* maps physical memory at an address: no additional bytes */
    API_MEMORY_UNMAP,         /* unmaps everything within a range of addresses */
    API_MEMORY_FREE,          /* device, managed or pooled memory at that address */
    API_MEMORY_FREE_HOST,
    API_MEMORY_FREE_ARRAY,
    API_MEMORY_UNREGISTER_HOST,
    /* Drops a reference. The bytes are freed when no reference and no mapping is left. */
    API_MEMORY_RELEASE_PHYSICAL,
    API_MEMORY_CLOSE_FOREIGN,
    API_MEMORY_RESET,     /* frees everything of this process on a device, or in a context */
    API_MEMORY_POOL,      /* makes a pool on a device */
    API_MEMORY_POOL_END,  /* destroys the pool, once nothing allocated from it is left */
    API_MEMORY_NODE_GET,  /* not now, but at each launch of the graph, at that address */
    API_MEMORY_NODE_FREE, /* the same for freeing */
    API_MEMORY_INFO,      /* reads how much of the device is free */
    API_MEMORY_COUNT
};

/* Returns whether such a call allocates memory of the process itself, which counts in bytes. */
static inline bool api_gets_memory(unsigned memory)
{
    return memory >= API_MEMORY_GET_DEVICE && memory <= API_MEMORY_GET_HOST;
}

static inline __attribute__((always_inline)) bool api_bounds_capture(unsigned capture)
{
    return capture == API_CAPTURE_BEGIN || capture == API_CAPTURE_END;
}

enum api_role {
#define API_ROLE(NAME, ...) API_DOES_##NAME,
#include "api/api_roles.def"
    API_ROLE_COUNT
};

/* The columns of a role as constants. */
enum api_role_column {
#define API_ROLE(NAME, class, cost, capture, memory)                                               \
    API_CLASS_OF_##NAME = API_##class, API_COST_OF_##NAME = COST_##cost,                           \
    API_CAPTURE_OF_##NAME = API_CAPTURE_##capture, API_MEMORY_OF_##NAME = API_MEMORY_##memory,
#include "api/api_roles.def"
};

static inline bool api_is_copy(unsigned does)
{
    return does == API_DOES_COPY || does == API_DOES_COPY_PIECE;
}

/* A flag of cuGetProcAddress: the variant for per-thread default streams. */
#define API_PER_THREAD 2

struct api_arg {
    uint8_t kind; /* enum arg_kind */
    const char *label;
};

struct api_function {
    const char *symbol;
    const char *name;    /* as shown to people */
    uint8_t domain;      /* enum api_domain */
    uint8_t does;        /* enum api_role; its columns follow */
    uint8_t class;       /* enum api_class */
    uint8_t cost;        /* enum cost_class */
    uint8_t capture;     /* enum api_capture */
    uint8_t memory;      /* enum api_memory */
    bool for_own_stream; /* its default stream is per thread */
    uint8_t arg_count;
    struct api_arg args[LIBRARY_ARGS_MAX];
};

/* The index of each row in table order: the `code` of a CALL or LIBRARY record of one version. */
enum api_code {
#define API(id, ...)         API_CODE_##id,
#define API_VARIANT(id, ...) API_CODE_##id,
#define LIBRARY(symbol, ...) API_CODE_##symbol,
#include "api/api.def"
    API_FUNCTION_COUNT
};

extern const struct api_function api_functions[API_FUNCTION_COUNT];

/* Returns a CRC-32C of symbols, classes and labels; equal values mean equal indexes. */
uint32_t api_table_crc(void);

const char *api_domain_name(unsigned domain); /* "runtime", ...; "?" if out of range */
const char *api_class_name(unsigned class);   /* "launch", "alloc", ... */

/* Returns the library of a symbol by its prefix; API_DOMAIN_COUNT: none. */
enum api_domain api_domain_of(const char *symbol);

/* Returns whether calls of that class launch, copy, fill or wait. */
static inline bool api_class_is_plain(unsigned class)
{
    return class == API_LAUNCH || class == API_COPY || class == API_SYNC;
}

/* Returns whether the calls in the encoder, made by this version, allow BLOCK_PLAIN_CALLS. */
bool api_calls_are_plain(const struct block_encoder *e);

/* Returns whether the result means that the call failed. "Not ready yet" is not a failure. */
bool api_has_failed(unsigned domain, int result);

#endif
