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

#define API_ARGS_MAX     10 /* of a CALL */
#define LIBRARY_ARGS_MAX 14 /* of a call of an enclosing library */

/* Libraries whose calls are hooked, by the rows of api.def. */
enum api_domain {
#define API_DOMAIN(NAME, ...) API_##NAME,
#include "api/api.def"
    API_DOMAIN_COUNT
};

/* The result of theirs that is no failure, as 0 is not. */
enum api_pending {
#define API_DOMAIN(NAME, name, prefix, soname, layer, bound, pending, ...)                         \
    API_PENDING_OF_##NAME = (pending),
#include "api/api.def"
};

/* Whose event is a call inside another call? */
enum api_layer {
    /* The outermost call is the event; calls that the library makes inside it are part of it. */
    API_OWNER,
    /*
     * The outermost of its own library; OWNERs' calls inside it stay events, and are tied to it by
     * time on the thread. It is a begin and an end record, as a range is: none is open in
     * thread.open, and the short way knows nothing of them.
     */
    API_ENCLOSING,
};

/* Are several such libraries in a process? */
enum api_bound { API_EACH, API_ONE };

struct api_library {
    const char *name;
    const char *prefix;
    const char *soname;
    uint8_t layer; /* enum api_layer */
    uint8_t bound; /* enum api_bound */
    uint8_t cupti; /* CUPTI's number of its callbacks' domain; 0: none */
    const char *category;
    uint8_t within; /* enum api_domain: whose calls those inside of them are part of */
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
    API_LIBRARY, /* of a library that uses CUDA */
    API_CLASS_COUNT
};

/* What a call that succeeds means for stream captures. */
enum api_capture {
    API_CAPTURE_NONE,
    API_CAPTURE_BEGIN,
    API_CAPTURE_END,
    API_CAPTURE_EVENT_RECORD,
    API_CAPTURE_EVENT_WAIT,
};

/*
 * What a call that succeeds means for who holds which memory. What is got is found again by the
 * argument `ptr`, an address or an array's handle; physical memory and imports by `handle`.
 */
enum api_memory {
    API_MEMORY_NONE,
    API_MEMORY_GET_DEVICE,
    API_MEMORY_GET_MANAGED,
    API_MEMORY_GET_POOLED,   /* in the order of a stream; captured, it is a graph's node */
    API_MEMORY_GET_PHYSICAL, /* without an address; it has one reference, by its handle */
    API_MEMORY_GET_ARRAY,
    API_MEMORY_GET_HOST,
    API_MEMORY_REGISTER_HOST, /* the program's own memory, pinned */
    API_MEMORY_OPEN_FOREIGN,  /* others' memory (IPC, imports): no bytes of the process's own */
    API_MEMORY_RETAIN,        /* one more reference to the physical memory at an address */
    API_MEMORY_MAP,           /* physical memory at an address: no bytes more */
    API_MEMORY_UNMAP,         /* all that is mapped within a range of addresses */
    API_MEMORY_FREE,          /* device, managed or pooled: what is at that address */
    API_MEMORY_FREE_HOST,
    API_MEMORY_FREE_ARRAY,
    API_MEMORY_UNREGISTER_HOST,
    /* One reference less. Its bytes go when none is left and nothing of it is mapped. */
    API_MEMORY_RELEASE_PHYSICAL,
    API_MEMORY_CLOSE_FOREIGN,
    API_MEMORY_RESET,     /* all of this process's on a device, or in a context, goes */
    API_MEMORY_POOL,      /* a pool, and which device's it is */
    API_MEMORY_POOL_END,  /* that pool goes, when nothing is left that was got from it */
    API_MEMORY_NODE_GET,  /* not now, but at each launch of the graph, and at that address */
    API_MEMORY_NODE_FREE, /* likewise */
    API_MEMORY_INFO,      /* how much of the device is free, whoever holds the rest */
    API_MEMORY_COUNT
};

/* Does such a call get memory of the process's own, whose bytes count? */
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

/* A flag of cuGetProcAddress: the form for a default stream per thread. */
#define API_PER_THREAD 2

struct api_arg {
    uint8_t kind; /* enum arg_kind */
    const char *label;
};

struct api_function {
    const char *symbol;
    const char *name;    /* as people know it */
    uint8_t domain;      /* enum api_domain */
    uint8_t does;        /* enum api_role; and its columns: */
    uint8_t class;       /* enum api_class */
    uint8_t cost;        /* enum cost_class */
    uint8_t capture;     /* enum api_capture */
    uint8_t memory;      /* enum api_memory */
    bool for_own_stream; /* its default stream is the thread's own */
    uint8_t arg_count;
    struct api_arg args[LIBRARY_ARGS_MAX];
};

/* The place of each row, in table order: what the `code` of a CALL or LIBRARY record says within
 * one version. */
enum api_code {
#define API(id, ...)         API_CODE_##id,
#define API_VARIANT(id, ...) API_CODE_##id,
#define LIBRARY(symbol, ...) API_CODE_##symbol,
#include "api/api.def"
    API_FUNCTION_COUNT
};

extern const struct api_function api_functions[API_FUNCTION_COUNT];

/* CRC-32C over symbols, classes and labels: two builds with the same value share their indexes. */
uint32_t api_table_crc(void);

const char *api_domain_name(unsigned domain); /* "runtime", ...; "?" if out of range */
const char *api_class_name(unsigned class);   /* "launch", "alloc", ... */

/* The library that a symbol of this name would be of; API_DOMAIN_COUNT: of none. */
enum api_domain api_domain_of(const char *symbol);

/* Does this result of that library's mean that the call failed? "Not ready yet" does not. */
bool api_has_failed(unsigned domain, int result);

#endif
