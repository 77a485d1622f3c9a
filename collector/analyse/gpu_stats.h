/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the tables of devices and ranges, by a key of their table: how many there were of
 * something and how long they took. Memory depends on the number of different keys, at most
 * GPU_STATS_MAX, and on the size of the files, not on the number of events.
 */
#ifndef GPUPROF_COLLECTOR_GPU_STATS_H
#define GPUPROF_COLLECTOR_GPU_STATS_H

#include <stdbool.h>

#include "base/histogram.h"
#include "base/key_map.h"
#include "read/process.h"
#include "symbol/kernel_names.h"

#define GPU_STATS_MAX 65536 /* rows: one for all others is the last of each table */

/* So many for free, and one for so many bytes of the files: a real name takes more. */
#define GPU_STATS_FREE       4096
#define GPU_STATS_FILE_BYTES 16
#define GPU_STATS_RECENT     64

#define GPU_STATS_TABLE_SHIFT 56 /* of the table in a key's `a` */

/* Which calls of libraries launched the kernels of a name; of two the larger one holds. */
enum kernel_maker {
    MAKER_UNKNOWN, /* of no kernel it is known */
    MAKER_KIND,    /* calls of one function and shape */
    MAKER_FUNCTION,
    MAKER_SEVERAL, /* functions */
    MAKER_NONE     /* some or all were launched in no call */
};

struct kernel_made {
    enum kernel_maker maker;
    uint8_t domain;       /* of the function */
    const char *function; /* its name, and the shape's text, which may be NULL: views */
    const char *text;
};

enum gpu_table {
    TABLE_KERNELS,
    TABLE_COPIES,
    TABLE_SIZES, /* of the same, in bytes */
    TABLE_GRAPHS,
    TABLE_SYNCS,
    TABLE_LAUNCHES, /* from call to kernel */
    TABLE_RANGES,
    TABLE_PROJECTIONS,
    TABLE_OVERHEADS,
    TABLE_DEVICES,
    TABLE_MEMORY,
    TABLE_HOST_LAUNCHES, /* host_rows.h */
    TABLE_HOST_COPIES,
    TABLE_COUNT
};

struct gpu_stat {
    enum gpu_table table; /* TABLE_COUNT: none, another row has what it had */
    char *name;           /* owned */
    uint64_t order;       /* of rows that are not ordered by their time */
    uint64_t count;
    uint64_t total_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t bytes; /* in all; of TABLE_MEMORY the largest sum at a time */
    uint64_t of_ns; /* of TABLE_DEVICES: what total_ns is a part of; 0: of nothing */
    const struct process
        *unnamed; /* of a kernel whose name is not known yet; NULL: it is, or none */
    uint64_t number, grid, block;     /* of that kernel */
    const struct kernel_name *kernel; /* a view; of a kernel whose name is known, or NULL */
    const char *domain;               /* a view; of a range in a domain of NVTX, or NULL */
    bool is_group;                    /* of ranges: '*' in its name stands for numbers */
    uint32_t next[2];                 /* of range_rows.c: another row of its group + 1 */
    uint32_t into;                    /* likewise: the row that has what it had + 1; 0: itself */
    struct kernel_made made;          /* of a kernel in a combination of parts */
    struct histogram durations;
};

struct gpu_stats_recent {
    struct key key;
    uint64_t place; /* 0: free */
};

struct gpu_stats {
    struct gpu_stat *rows; /* owned */
    uint32_t count;
    uint32_t count_max;
    uint32_t capacity;
    struct key_map places;                            /* of rows + 1 */
    struct gpu_stats_recent recent[GPU_STATS_RECENT]; /* most are of rows that were asked for */
    uint64_t *histogram_rows;                         /* a view */
};

/* For files of so many bytes; *histogram_rows, of which histograms take theirs, must stay. */
void gpu_stats_init(struct gpu_stats *s, uint64_t bytes, uint64_t *histogram_rows);
void gpu_stats_release(struct gpu_stats *s);

/* The row of that key, whose `a` is below 2^56, or NULL. A view until the next row is made. */
static inline struct gpu_stat *gpu_stats_find(struct gpu_stats *s, enum gpu_table table,
                                              struct key key)
{
    key.a |= (uint64_t)table << GPU_STATS_TABLE_SHIFT;
    struct gpu_stats_recent *recent =
        &s->recent[(key.a >> 4 ^ key.a ^ table << 3 ^ key.b ^ key.c) % GPU_STATS_RECENT];
    if (!recent->place || !key_same(recent->key, key)) {
        recent->key = key;
        recent->place = key_map_get(&s->places, key);
    }
    return recent->place ? &s->rows[recent->place - 1] : NULL;
}

/* The same, made with a copy of `name` if need be; beyond the maximum one for all others. NULL: no
 * memory. */
struct gpu_stat *gpu_stats_row(struct gpu_stats *s, enum gpu_table table, struct key key,
                               const char *name);

/* `count` more in that row, alike; it may be NULL. 0 or GPUPROF_NO_MEMORY. */
static inline int gpu_stats_count_several(struct gpu_stats *s, struct gpu_stat *row,
                                          uint64_t duration_ns, uint64_t bytes, uint64_t count)
{
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->count += count;
    row->total_ns += duration_ns * count;
    row->bytes += bytes * count;
    if (duration_ns < row->min_ns)
        row->min_ns = duration_ns;
    if (duration_ns > row->max_ns)
        row->max_ns = duration_ns;
    return histogram_add(&row->durations, duration_ns, count, s->histogram_rows);
}

/* One more. */
static inline int gpu_stats_count(struct gpu_stats *s, struct gpu_stat *row, uint64_t duration_ns,
                                  uint64_t bytes)
{
    return gpu_stats_count_several(s, row, duration_ns, bytes, 1);
}

/* All that `from` has is in `into`; it is in no table then. */
void gpu_stats_join(struct gpu_stat *into, struct gpu_stat *from);

#endif
