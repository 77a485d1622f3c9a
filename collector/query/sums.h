/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sums is a declaration (struct sums_info): what tells its rows apart (keys), what each
 * of them adds up (values), the columns that show these, and where the events come from. Where each
 * row adds up times, a declaration is enough (sums_from); others have a loop over resolved events
 * (resolve/rows.h) or, of what these do not have yet, a consumer of the walk. Order, cells, parts
 * and merging follow from the declaration. analyse/analyses.def lists all such tables of the
 * report; analyse/threads.c is a small one to begin with.
 *
 * One consumer may feed several tables. The `consumer` of each of them has no functions then, and
 * who feeds them sets `owner` and calls sums_finish.
 *
 * Memory: 100 bytes a row, 8 a value, and a histogram if the table has them. There are as many rows
 * as the recording has functions or threads, or at most `rows_max`.
 */
#ifndef GPUPROF_COLLECTOR_SUMS_H
#define GPUPROF_COLLECTOR_SUMS_H

#include "base/histogram.h"
#include "base/key_map.h"
#include "query/part_file.h"
#include "read/recording.h"
#include "resolve/rows.h"
#include "table/table.h"

#define SUMS_KEYS   3
#define SUMS_VALUES 32
#define SUMS_RECENT 64

/* A table with `rows_max`, which may be SUMS_ROWS_MAX, has no more than SUMS_ROWS_FREE rows and one
 * for each SUMS_FILE_BYTES of the recording either: a key that is really there takes more bytes. */
#define SUMS_ROWS_MAX   65536
#define SUMS_ROWS_FREE  4096
#define SUMS_FILE_BYTES 16

#define SUMS_NAME_BYTES (KERNEL_NAME_BYTES_MAX + 128)

/* A key is a number of 64 bits that stands for one of these. */
enum sums_key {
    KEY_NONE,
    KEY_FUNCTION, /* of sums_function() */
    KEY_THREAD,   /* its index over all processes. Such tables are in no part. */
    KEY_TEXT,     /* a struct kernel_name of the walk, or of sums_text(); 0: none */
    KEY_NUMBER,
    KEY_PROCESS,  /* its index */
    KEY_THREAD_AT /* of a value only: a struct thread, whose process is the value before it */
};

/* Each key of the row that has what found no room (rows_max). */
#define SUMS_OTHERS UINT64_MAX

/* In a column's `of`, for what keys show: not key v, but value v (sums_info.is). */
#define SUMS_OF_VALUE(v) (SUMS_KEYS + (v))

/* How the values of two rows become one. */
enum sums_join {
    JOIN_NONE,
    JOIN_ADD,
    JOIN_MOST,
    JOIN_LEAST, /* UINT64_MAX: nothing yet */
    JOIN_WITH,  /* taken from the row that the last MOST or LEAST before it was taken from */
    JOIN_FIRST, /* all values of this kind come from one row: the one that has the lesser of the
                   first that differs (a time, say, and then what happened at it) */
    JOIN_OWN    /* as sums_info.join does it */
};

struct sums_row {
    uint64_t keys[SUMS_KEYS];
    uint64_t *values;            /* a view */
    struct histogram *durations; /* owned; NULL: it has none */
};

struct sums;

/* A declaration. Value 0 counts what the row is about; a row in which it is 0 is not shown. */
/*
 * Resolved events that are added up as they are: those of these types, in a row for each value of
 * the column `key`. The values of the table then begin with SUMS_COUNT to SUMS_BYTES.
 */
struct sums_from {
    unsigned types; /* bits of enum row_type; 0: not declared */
    enum row_table table;
    enum row_column key;
    enum row_column ns; /* what is added up; 0: ROW_NS */
};

enum { SUMS_COUNT, SUMS_TOTAL, SUMS_MIN, SUMS_MAX, SUMS_BYTES, SUMS_OWN };

struct sums_info {
    enum sums_key keys[SUMS_KEYS];      /* as many as are not KEY_NONE */
    enum sums_join values[SUMS_VALUES]; /* likewise */
    enum sums_key is[SUMS_VALUES];      /* of a value that stands for a process, a thread ... */
    uint32_t rows_max;  /* one row more has all others; 0: as many rows as there are */
    bool has_durations; /* a histogram, for quantiles */
    uint8_t order;      /* the value by which rows are sorted, the largest first (a JOIN_FIRST: the
                           least first), or SUMS_BY_KEYS ... */
    uint8_t then[3];    /* ... and the values that decide between equal rows; 0: no more; at last
                           the keys do */
    uint8_t part_of;    /* what SHOWS_PART is a part of: this value of all rows (sums.all) */
    bool keeps_hidden;  /* rows that are not shown count in sums of all, and are in parts */
    bool is_left_out;   /* where no row is shown, the JSON does not have the table */
    uint8_t recorded;   /* the value that counts records; if value 0 is more, that is estimated from
                           them (--overhead-max); 0: nothing is estimated */
    unsigned parts;     /* enum report_part: what it is made of */
    /* The functions may all be NULL. What a row is called whose first key does not say so; perhaps
     * in `text`, of SUMS_NAME_BYTES. */
    const char *(*name)(const struct sums *s, const struct sums_row *row, char *text);
    const char *(*number_name)(uint64_t key);                /* likewise, where the key says all */
    void (*join)(uint64_t *values, const uint64_t *from);    /* of the values that are JOIN_OWN */
    struct sums_row *(*row)(struct sums *s, struct key key); /* for a part's rows; as sums_row */
    /* When all rows are there, perhaps from parts. 0 or an error. */
    int (*complete)(struct sums *s);
    /* The cells that columns do not say how to fill. */
    void (*fill)(const struct sums *s, const struct sums_row *row, enum report_format format,
                 struct cell *cells);
    struct sums_from from;
    struct rows_reader rows;  /* its context is the struct sums, and so is */
    struct consumer consumer; /* that of this */
    struct table_info table;  /* of a struct sums; rows by SUMS_TABLE */
};

static inline bool sums_is_others(const struct sums_row *row)
{
    return row->keys[0] == SUMS_OTHERS && row->keys[1] == SUMS_OTHERS &&
           row->keys[2] == SUMS_OTHERS;
}

#define SUMS_BY_KEYS SUMS_VALUES

#define SUMS_TABLE .begin = sums_begin, .row = sums_show

struct sums_recent {
    struct key key;
    uint64_t place; /* 0: free */
};

struct sums {
    const struct sums_info *info;
    struct walk *walk; /* a view, and so is this */
    const struct recording *rec;
    struct sums_row *rows; /* owned */
    uint32_t count, capacity, rows_max;
    struct key_map places; /* of rows + 1 */
    struct sums_recent recent[SUMS_RECENT];
    uint64_t *values; /* owned: of the rows, before they are in order */
    unsigned value_count;
    uint32_t shown;              /* so many of the rows, once they are in order */
    uint64_t *histogram_rows;    /* a view */
    uint64_t whole[SUMS_VALUES]; /* of all rows, once they are in order */
    const uint64_t *all;         /* a view of what shares are of, perhaps in another table */
    enum report_by by;           /* what rows are by, and are names that differ in numbers one? */
    bool groups;
    void *owner; /* a view: of who feeds it, if somebody else does; NULL: parts do */
    /* Functions of one name and domain are one: forms of a stream, variants of the ABI, builds. */
    const struct function **functions; /* owned */
    uint32_t function_count;
    struct number_set function_names;
    uint32_t *function_of; /* owned: index of a function -> place + 1 */
    uint32_t function_of_count;
    struct function *made;       /* owned; a list by `text` of those that parts name */
    struct sums_thread *threads; /* owned, likewise */
    uint64_t begin_ns;           /* moments are shown as they are behind it */
    struct kernel_names texts;   /* of sums_text: a table has room for its names */
};

/* `walk` and *histogram_rows, of which histograms take theirs, must stay. */
void sums_init(struct sums *s, const struct sums_info *info, struct walk *walk,
               uint64_t *histogram_rows);
void sums_release(struct sums *s);

/* Is it asked for, and has it a consumer of its own? */
bool sums_has_consumer(const struct sums *s);
struct consumer sums_consumer(struct sums *s);

/* Adds the table to the readers of resolved events, if it is one of them. */
void sums_read_rows(struct sums *s, struct resolver *r);

/* Is it made of these alone? Perhaps by another reader: `rows` then has only tables. */
static inline bool sums_is_of_rows(const struct sums_info *info)
{
    return info->rows.tables || info->from.types;
}

/* The key of a function; 0: no memory. */
uint64_t sums_function(struct sums *s, const struct function *f);

/* The key of a text, which need not stay; 0: no memory, or no room. Not for each event. */
uint64_t sums_text(struct sums *s, const char *text);
static inline uint64_t sums_name_key(const struct kernel_name *name)
{
    return (uintptr_t)name;
}

struct sums_row *sums_row_make(struct sums *s, struct key key);

static inline struct sums_row *sums_recent_row(struct sums *s, struct key key,
                                               struct sums_recent **recent)
{
    *recent = &s->recent[(key.a >> 4 ^ key.a ^ key.b >> 4 ^ key.c) % SUMS_RECENT];
    return (*recent)->place && key_same((*recent)->key, key) ? &s->rows[(*recent)->place - 1]
                                                             : NULL;
}

/* The row of these keys, of which those that the table does not have are 0. A view until the next
 * one is made; NULL: no memory. */
static inline struct sums_row *sums_row(struct sums *s, uint64_t a, uint64_t b, uint64_t c)
{
    struct key key = {a, b, c};
    struct sums_recent *recent;
    struct sums_row *row = sums_recent_row(s, key, &recent);
    if (row)
        return row;
    row = sums_row_make(s, key);
    if (row)
        *recent = (struct sums_recent){key, (uint64_t)(row - s->rows) + 1};
    return row;
}

/* The same, if it is there. */
static inline struct sums_row *sums_find(struct sums *s, struct key key)
{
    struct sums_recent *recent;
    struct sums_row *row = sums_recent_row(s, key, &recent);
    uint64_t place = row ? 0 : key_map_get(&s->places, key);
    if (place)
        *recent = (struct sums_recent){key, place};
    return place ? &s->rows[place - 1] : row;
}

/* One that took so long, `weight` times, in the row's histogram. 0 or GPUPROF_NO_MEMORY. */
static inline int sums_took(struct sums *s, struct sums_row *row, uint64_t ns, uint64_t weight)
{
    return histogram_add(row->durations, ns, weight, s->histogram_rows);
}

/* `count` more in a row of sums_from's values, alike; it may be NULL. 0 or GPUPROF_NO_MEMORY. */
static inline int sums_count(struct sums *s, struct sums_row *row, uint64_t ns, uint64_t bytes,
                             uint64_t count)
{
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->values[SUMS_COUNT] += count;
    row->values[SUMS_TOTAL] += ns * count;
    row->values[SUMS_BYTES] += bytes * count;
    if (ns < row->values[SUMS_MIN])
        row->values[SUMS_MIN] = ns;
    if (ns > row->values[SUMS_MAX])
        row->values[SUMS_MAX] = ns;
    return sums_took(s, row, ns, count);
}

/* Adds these values to the row of these keys. 0 or GPUPROF_NO_MEMORY. */
int sums_row_add(struct sums *s, struct key key, const uint64_t *values);

/* All that `from` has is in `into`, and `from`, which has nothing then, is not shown. */
void sums_join(struct sums *s, struct sums_row *into, struct sums_row *from);

/*
 * For a consumer's `end`, where keys were numbers of something that only now has a name: empties
 * the table and has `remake` add again (sums_row_add) what each of its rows becomes. The row of
 * others stays. 0 or an error of `remake`.
 */
typedef int sums_remake_fn(struct sums *s, struct sums_row *row, void *context);
int sums_remake(struct sums *s, sums_remake_fn *remake, void *context);

/* All is there: completes the rows and puts them in order. 0 or an error. */
int sums_finish(struct sums *s);

/* What a key of a row says, perhaps in `text`, of SUMS_NAME_BYTES; NULL: it is no text, or none. */
const char *sums_name(const struct sums *s, const struct sums_row *row, unsigned key, char *text);

/* Into a part, and what a part has added to what is there. 0 or GPUPROF_NO_MEMORY; the part says
 * itself what is wrong with it. */
void sums_put(struct sums *s, struct part *p);
int sums_add(struct sums *s, struct part *p);

/* Of SUMS_TABLE. (sums_table.c) */
void sums_begin(struct table *t, enum report_format format);
void sums_show(const struct table *t, uint32_t index, enum report_format format,
               struct cell *cells);

#endif
