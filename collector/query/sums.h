/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sums is a declaration (struct sums_info): keys that distinguish its rows, values that
 * rows add up, columns that show them, and the source of events. For sums of times a declaration is
 * enough (sums_from). Other tables have a loop over resolved events (resolve/rows.h), or a consumer
 * of the walk for what those lack. Order, cells, parts and merging follow from the declaration.
 * analyse/analyses.def lists the report's tables; analyse/threads.c is a small example.
 * One consumer may feed several tables. Their own `consumer` then has no functions; the feeding one
 * sets `owner` and calls sums_finish.
 * Memory: 100 bytes a row, 8 a value, and histograms. A table has a row per function, thread or the
 * like, at most `rows_max`.
 */
#ifndef GPUPROF_COLLECTOR_SUMS_H
#define GPUPROF_COLLECTOR_SUMS_H

#include "base/array.h"
#include "base/histogram.h"
#include "base/key_map.h"
#include "query/part_file.h"
#include "read/recording.h"
#include "resolve/rows.h"
#include "table/table.h"

#define SUMS_KEYS   3
#define SUMS_VALUES 32
#define SUMS_RECENT 64

/* A table with `rows_max` (at most SUMS_ROWS_MAX) has at most SUMS_ROWS_FREE rows plus one per
 * SUMS_FILE_BYTES of the recording: each real key takes more bytes. */
#define SUMS_ROWS_MAX   65536
#define SUMS_ROWS_FREE  4096
#define SUMS_FILE_BYTES 16

#define SUMS_NAME_BYTES (KERNEL_NAME_BYTES_MAX + 128)

/* What a key, a 64-bit number, stands for. */
enum sums_key {
    KEY_NONE,
    KEY_THREAD, /* index among all processes' threads; never in parts */
    KEY_TEXT,   /* a struct kernel_name of the walk or sums_text(); 0: none */
    KEY_DOMAIN, /* of a function: enum api_domain */
    KEY_NUMBER,
    KEY_PROCESS /* index */
};

/* All keys of the row that collects what exceeds rows_max. */
#define SUMS_OTHERS UINT64_MAX

/* In a column's `of`: shows value v like a key (sums_info.is). */
#define SUMS_OF_VALUE(v) (SUMS_KEYS + (v))

/* How two rows' values combine. */
enum sums_join {
    JOIN_NONE,
    JOIN_ADD,
    JOIN_MOST,
    JOIN_LEAST, /* UINT64_MAX: no value yet */
    JOIN_WITH,  /* from the row that decided the last MOST or LEAST */
    JOIN_OWN    /* by sums_info.join */
};

struct sums_row {
    uint64_t keys[SUMS_KEYS];
    uint64_t *values;            /* a view */
    struct histogram *durations; /* owned; NULL: none */
};

struct sums;

/* Sums of resolved events of these types, in a row per value of column `key`. The table's values
 * begin with SUMS_COUNT to SUMS_BYTES. */
struct sums_from {
    unsigned types; /* bits of enum row_type; 0: not used */
    enum row_table table;
    enum row_column key;
    enum row_column ns; /* the time to add up; 0: ROW_NS */
};

enum { SUMS_COUNT, SUMS_TOTAL, SUMS_MIN, SUMS_MAX, SUMS_BYTES, SUMS_OWN };

/* A declaration. Value 0 counts the row's events; rows where it is 0 are not shown. */
struct sums_info {
    enum sums_key keys[SUMS_KEYS];      /* used up to the first KEY_NONE */
    enum sums_join values[SUMS_VALUES]; /* likewise */
    enum sums_key is[SUMS_VALUES];      /* what a value stands for: a process, a thread ... */
    uint32_t rows_max;                  /* more go to the row of others; 0: no limit */
    bool has_durations;                 /* a histogram, for quantiles */
    uint8_t order;   /* sort value, largest first (JOIN_LEAST: least first), or SUMS_BY_KEYS ... */
    uint8_t then[3]; /* ... and values for ties; 0: none. Last come the keys */
    uint8_t part_of; /* the value whose total (sums.all) SHOWS_PART refers to */
    bool keeps_filtered; /* hidden rows count in totals and go to parts */
    bool is_left_out;    /* JSON omits the table if no row is shown */
    uint8_t recorded;    /* the value that counts records; with a larger value 0, sums are estimated
                          * from them (--overhead-max); 0: never estimated */
    uint8_t marks;       /* the value that marks rows of grouped names (range_rows.h) */
    unsigned parts;      /* enum report_part: the parts it needs */
    /* All functions may be NULL. Returns the row's name if its first key is not enough, perhaps in
     * `text`, of SUMS_NAME_BYTES. */
    const char *(*name)(const struct sums *s, const struct sums_row *row, char *text);
    const char *(*number_name)(uint64_t key);                /* likewise, if the key is enough */
    void (*join)(uint64_t *values, const uint64_t *from);    /* for JOIN_OWN values */
    struct sums_row *(*row)(struct sums *s, struct key key); /* for rows from parts; like
                                                              * sums_row */
    void (*complete)(struct sums *s); /* called when all rows exist, perhaps from parts */
    /* Fills the cells that columns do not describe. */
    void (*fill)(const struct table *t, const struct sums_row *row, struct cell *cells);
    struct sums_from from;
    struct rows_reader rows;  /* its context is the struct sums */
    struct consumer consumer; /* likewise */
    struct table_info table;  /* for a struct sums; rows by SUMS_TABLE */
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
    struct key_map places; /* index in rows + 1 */
    struct sums_recent recent[SUMS_RECENT];
    uint64_t *values; /* owned: values of all rows, in their unsorted order */
    unsigned value_count;
    uint32_t shown;              /* rows to show, once sorted */
    uint64_t *histogram_rows;    /* a view */
    uint64_t whole[SUMS_VALUES]; /* totals of all rows, once sorted */
    const uint64_t *all;         /* a view of the totals for shares, perhaps another table's */
    enum report_by by;           /* how rows are grouped, and whether numbered names are joined */
    bool groups;
    bool is_unseen;           /* only whether it has rows is shown */
    struct key_map groups_of; /* range_rows.h: (pattern, domain) -> rows of their own */
    void *owner;              /* a view: the feeding consumer if another one; NULL: parts */
    uint64_t *function_of;    /* owned: index of a function -> its name's key; 0: not used yet */
    uint32_t function_of_count;
    uint64_t begin_ns;         /* times are shown relative to this */
    struct kernel_names texts; /* for sums_text: each table limits its own names */
};

/* `walk` and *histogram_rows, the limit for histograms, must outlive it. */
void sums_init(struct sums *s, const struct sums_info *info, struct walk *walk,
               uint64_t *histogram_rows);
void sums_release(struct sums *s);

/* Returns true if the table is wanted and has a consumer of its own. */
bool sums_has_consumer(const struct sums *s);
struct consumer sums_consumer(struct sums *s);

/* Adds the table to the readers of resolved events, if it needs them. */
void sums_read_rows(struct sums *s, struct resolver *r);

/* Returns true if it only needs resolved events, perhaps through another table's reader (`rows`
 * then only names tables). */
static inline bool sums_is_of_rows(const struct sums_info *info)
{
    return info->rows.tables || info->from.types;
}

/* Returns the key of a function's name; 0: no room. Variants and builds of one function have the
 * same name and domain. */
uint64_t sums_function(struct sums *s, const struct function *f);

/* Returns the key of a text, which it copies; 0: no room. Too slow for every event. */
uint64_t sums_text(struct sums *s, const char *text);
static inline uint64_t sums_name_key(const struct kernel_name *name)
{
    return (uintptr_t)name;
}

/* Returns the text of such a key; NULL: none. */
static inline const char *sums_shown(uint64_t key)
{
    return key ? ((const struct kernel_name *)(uintptr_t)key)->shown : NULL;
}

struct sums_row *sums_row_make(struct sums *s, struct key key);

static inline struct sums_row *sums_recent_row(struct sums *s, struct key key,
                                               struct sums_recent **recent)
{
    *recent = &s->recent[(key.a >> 4 ^ key.a ^ key.b >> 4 ^ key.c) % SUMS_RECENT];
    return (*recent)->place && key_same((*recent)->key, key) ? &s->rows[(*recent)->place - 1]
                                                             : NULL;
}

/* Returns the row with these keys (0 for unused ones), made if necessary; a view until the next row
 * is made. */
static inline struct sums_row *sums_row(struct sums *s, uint64_t a, uint64_t b, uint64_t c)
{
    struct key key = {a, b, c};
    struct sums_recent *recent;
    struct sums_row *row = sums_recent_row(s, key, &recent);
    if (row)
        return row;
    row = sums_row_make(s, key);
    *recent = (struct sums_recent){key, (uint64_t)(row - s->rows) + 1};
    return row;
}

/* Returns the row if it exists, else NULL. */
static inline struct sums_row *sums_find(struct sums *s, struct key key)
{
    struct sums_recent *recent;
    struct sums_row *row = sums_recent_row(s, key, &recent);
    uint64_t place = row ? 0 : key_map_get(&s->places, key);
    if (place)
        *recent = (struct sums_recent){key, place};
    return place ? &s->rows[place - 1] : row;
}

/* Adds a duration, `weight` times, to the row's histogram. */
static inline void sums_took(struct sums *s, struct sums_row *row, uint64_t ns, uint64_t weight)
{
    histogram_add(row->durations, ns, weight, s->histogram_rows);
}

/* Adds `count` equal events to a row with sums_from's values. */
static inline void sums_count(struct sums *s, struct sums_row *row, uint64_t ns, uint64_t bytes,
                              uint64_t count)
{
    row->values[SUMS_COUNT] += count;
    row->values[SUMS_TOTAL] += ns * count;
    row->values[SUMS_BYTES] += bytes * count;
    row->values[SUMS_MIN] = min_of(row->values[SUMS_MIN], ns);
    row->values[SUMS_MAX] = max_of(row->values[SUMS_MAX], ns);
    sums_took(s, row, ns, count);
}

/* Adds these values to the row of these keys. */
void sums_row_add(struct sums *s, struct key key, const uint64_t *values);

/* Adds all of `from` to `into` and empties `from`, which is then not shown. */
void sums_join(struct sums *s, struct sums_row *into, struct sums_row *from);

/*
 * For a consumer's `end`, if keys get their names only then: empties the table; `remake` adds each
 * old row again (sums_row_add) under new keys. The row of others stays.
 */
typedef void sums_remake_fn(struct sums *s, struct sums_row *row, void *context);
void sums_remake(struct sums *s, sums_remake_fn *remake, void *context);

/* Completes the rows and sorts them. */
void sums_finish(struct sums *s);

/* Returns the text of a row's key, perhaps in `text`, of SUMS_NAME_BYTES; NULL: not a text, or
 * none. */
const char *sums_name(const struct sums *s, const struct sums_row *row, unsigned key, char *text);

/* Write the table to a part, and add a part's rows; the part stores what is wrong with it. */
void sums_put(struct sums *s, struct part *p);
void sums_add(struct sums *s, struct part *p);

/* The functions of SUMS_TABLE. */
void sums_begin(struct table *t);
void sums_show(const struct table *t, uint32_t index, struct cell *cells);

/* The parts of a report that need a consumer of their own and that not every table uses. */

enum report_part {
    REPORT_IDLE = 1, /* also findings, steps, and remarks about memory */
    REPORT_OPS = 2,
    REPORT_LIBRARIES = 4,
    REPORT_CALLS = 8,       /* rows by function; failed and open calls */
    REPORT_WORK = 16,       /* rows of device activities */
    REPORT_CORRELATED = 32, /* and of their launches */
    REPORT_MEMORY = 64,     /* the ledger of memory */
    REPORT_MAKERS = 128,    /* the library call that launched each kernel */
    REPORT_USE = 256,       /* how busy devices were */
    REPORT_UNSEEN = 512,    /* numbers shown only with --full (not their presence) */
    REPORT_HOST = 1024,     /* host activities: samples, system calls, Python's lock */
};

#define REPORT_EVERYTHING                                                                          \
    (REPORT_IDLE | REPORT_OPS | REPORT_LIBRARIES | REPORT_CALLS | REPORT_WORK |                    \
     REPORT_CORRELATED | REPORT_MEMORY | REPORT_MAKERS | REPORT_USE | REPORT_HOST)

#endif
