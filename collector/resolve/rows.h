/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolved events in columns. The resolver follows a walk (event_walk.h) and writes a row for each
 * call, each work of a device, each synchronisation and each overhead: its times, its thread or
 * device, its name, its call. Readers, which are tables of sums (query/sums.h) and analyses, get
 * blocks of rows and loop over their columns; they handle no event that is not complete.
 *
 * Memory: BLOCK_ROWS rows of each table that somebody reads, of 8 bytes a column, which stay in the
 * processor's cache (120 KB a table); and 32 bytes for each kernel's name of a process,
 * KEY_MAP_MAX at most.
 */
#ifndef GPUPROF_COLLECTOR_ROWS_H
#define GPUPROF_COLLECTOR_ROWS_H

#include "base/key_map.h"
#include "resolve/event_walk.h"

#define BLOCK_ROWS  1024 /* of a block */
#define ROWS_RECENT 256  /* kernels whose names were asked for */

enum row_table {
    ROWS_CALLS,
    ROWS_WORK,   /* of devices */
    ROWS_OTHERS, /* synchronisations and overheads */
    ROW_TABLES
};

enum row_column {
    ROW_TYPE,     /* enum row_type */
    ROW_BEGIN,    /* ns, CLOCK_REALTIME */
    ROW_NS,       /* how long it took */
    ROW_PROCESS,  /* index of the process */
    ROW_THREAD,   /* index of the thread that called it, or launched the work */
    ROW_KIND,     /* of a copy, a synchronisation or an overhead; a graph's number */
    ROW_NAME,     /* the kernel: for rows_name_key; 0: none */
    ROW_BYTES,    /* copied, set or allocated by what did not fail */
    ROW_FUNCTION, /* of a call: its index */
    ROW_WEIGHT,   /* how many calls it stands for */
    ROW_FLAGS,    /* enum row_flag */
    ROW_DEVICE,   /* of work */
    ROW_GRID,     /* of a kernel, as its record has it; and so is what follows */
    ROW_BLOCK,
    ROW_CALL_BEGIN, /* of the call that launched the work, if it has ROW_CALLED */
    ROW_CALL_NS,
    ROW_COLUMNS
};

enum row_type {
    ROW_CALL,
    /* A call of a process whose devices have no rows: it launched a kernel; it copied or set. */
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
    ROW_COUNTED = 8, /* likewise: another kernel of the call came before */
    ROW_IS_KERNEL = 16
};

/* Kinds of copies: CUPTI's, those that it has none for are 0, and sets beside them; cudaMemcpyKind
 * where calls alone are known. */
enum { GPU_COPY_KINDS = 11, GPU_COPY_SET = GPU_COPY_KINDS };
enum { HOST_COPY_UNKNOWN = 5, HOST_COPY_SET };

struct resolver;

struct rows {
    const struct resolver *of;
    enum row_table table;
    uint32_t count;
    uint64_t *columns[ROW_COLUMNS];
};

struct rows_reader {
    void *context;
    unsigned columns; /* bits of enum row_column that it reads */
    unsigned types;   /* of enum row_type, of which it wants rows; 0: all. It gets others, too. */
    unsigned tables;  /* bits of enum row_table */
    bool ties;        /* it reads the calls of work */
    int (*take)(void *context, const struct rows *rows); /* 0 or an error */
    int (*end)(void *context);                           /* behind the last block; or NULL */
};

#define ROWS_READERS_MAX 32

/* A kernel's name. */
struct row_name {
    const struct kernel_name *name;
    /* Which calls of libraries launch it, as gpu_report.h has it. */
    uint32_t maker;
    const struct function *maker_function; /* NULL: not one */
    const struct kernel_name *maker_text;  /* NULL: none */
};

struct resolver {
    struct walk *walk;
    struct rows tables[ROW_TABLES];
    uint64_t *memory[ROW_TABLES]; /* owned: the columns */
    struct rows_reader readers[ROWS_READERS_MAX];
    unsigned reader_count;
    bool leaves_work;       /* the user sets it: no work was to be recorded, whatever there is */
    bool *is_host;          /* owned, by process index: its devices have no rows */
    struct row_name *names; /* owned; number n is names[n - 1] */
    uint32_t name_count;
    struct {
        uint64_t number;
        uint32_t process;
        uint32_t name; /* 0: free */
    } recent[ROWS_RECENT];
    struct key_map name_numbers; /* (process, number), or a name -> number in `names` */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; resolver_release in both cases. */
int resolver_init(struct resolver *r, struct walk *walk);
void resolver_release(struct resolver *r);

void resolver_add(struct resolver *r, const struct rows_reader *reader);

/* When all readers are added: the consumer that makes rows of the walk's slices. 0 or
 * GPUPROF_NO_MEMORY. */
int resolver_consumer(struct resolver *r, struct consumer *consumer);

/* For a table's key: the name of that number; 0: it has none. */
static inline uint64_t rows_name_key(const struct rows *rows, uint64_t number)
{
    return number ? (uintptr_t)rows->of->names[number - 1].name : 0;
}

#endif
