/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolved events in columns. The resolver follows a walk (event_walk.h) and writes a row for each
 * call, each GPU activity, each synchronisation and each overhead: times, thread or device, name,
 * call. Readers (tables of sums in query/sums.h, and analyses) get blocks of rows and loop over the
 * columns. Only complete events get there.
 *
 * Memory: BLOCK_ROWS rows of 8 bytes a column for each table that is read, which stay in the
 * processor's cache (128 KB a table).
 */
#ifndef GPUPROF_COLLECTOR_ROWS_H
#define GPUPROF_COLLECTOR_ROWS_H

#include "base/key_map.h"
#include "resolve/event_walk.h"

#define BLOCK_ROWS  1024 /* rows of a block */
#define ROWS_RECENT 256  /* recently used kernel names */

enum row_table {
    ROWS_CALLS,
    ROWS_WORK,   /* GPU work */
    ROWS_OTHERS, /* synchronisations and overheads */
    ROW_TABLES
};

enum row_column {
    ROW_TYPE,     /* enum row_type */
    ROW_BEGIN,    /* ns, CLOCK_REALTIME */
    ROW_NS,       /* duration */
    ROW_PROCESS,  /* index of the process */
    ROW_THREAD,   /* index of the thread that made the call, or launched the work */
    ROW_KIND,     /* kind of copy, synchronisation or overhead; a graph's number */
    ROW_NAME,     /* address of the kernel's struct kernel_name; 0: none */
    ROW_BYTES,    /* bytes copied, set or allocated, if the call succeeded */
    ROW_FUNCTION, /* function index of a call */
    ROW_WEIGHT,   /* number of calls that it represents */
    ROW_FLAGS,    /* enum row_flag */
    ROW_DEVICE,   /* device of the work */
    ROW_GRID,     /* of a kernel, as recorded, like ROW_BLOCK */
    ROW_BLOCK,
    ROW_CALL_BEGIN, /* begin of the launching call, with ROW_CALLED */
    ROW_CALL_NS,
    ROW_COLUMNS
};

enum row_type {
    ROW_CALL,
    /* Calls of a process without GPU rows: a kernel launch; a copy or set. */
    ROW_HOST_KERNEL,
    ROW_HOST_COPY,
    ROW_KERNEL,
    ROW_GRAPH,
    ROW_COPY, /* or a set */
    ROW_SYNC,
    ROW_OVERHEAD
};

enum row_flag {
    ROW_NESTED = 1, /* a call inside another */
    ROW_FAILED = 2,
    ROW_CALLED = 4,  /* work whose call is known */
    ROW_COUNTED = 8, /* likewise: an earlier kernel of the same call was counted */
    ROW_IS_KERNEL = 16
};

/* Kinds of copies: CUPTI's, or 0, and sets after them; cudaMemcpyKind if only calls are known. */
enum { GPU_COPY_KINDS = 11, GPU_COPY_SET = GPU_COPY_KINDS };
enum { HOST_COPY_UNKNOWN = 5, HOST_COPY_SET };

struct rows {
    enum row_table table;
    uint32_t count;
    uint64_t *columns[ROW_COLUMNS]; /* zeros where the table has none; one block of memory */
};

struct rows_reader {
    void *context;
    unsigned tables;                                     /* bits of enum row_table */
    bool ties;                                           /* it uses the calls of work */
    int (*take)(void *context, const struct rows *rows); /* 0 or an error */
    int (*end)(void *context);                           /* called after the last block; or NULL */
};

#define ROWS_READERS_MAX 32

struct resolver {
    struct walk *walk;
    struct rows tables[ROW_TABLES];
    struct rows_reader readers[ROWS_READERS_MAX];
    unsigned reader_count;
    bool leaves_work; /* set by the user: ignores GPU work, as none was to be recorded */
    bool *is_host;    /* owned, by process index: it has no GPU rows */
    struct recent_kernel {
        uint64_t number;
        const struct process *process;
        const struct kernel_name *name; /* NULL: free */
    } recent[ROWS_RECENT];
};

/* `walk` must stay. */
void resolver_init(struct resolver *r, struct walk *walk);
void resolver_release(struct resolver *r);

void resolver_add(struct resolver *r, const struct rows_reader *reader);

/* After all readers were added: the consumer that makes rows of the slices. */
struct consumer resolver_consumer(struct resolver *r);

/* Returns the name of a process's kernel; a kernel without a name is called by its number. NULL:
 * there are too many names. */
const struct kernel_name *resolver_kernel(struct resolver *r, const struct process *p,
                                          uint64_t number);

#endif
