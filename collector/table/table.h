/* SPDX-License-Identifier: Apache-2.0 */
/* A table of the report: a description in data, and functions that fill its rows. table_print.c
 * prints text, JSON and csv; no table prints itself. */
#ifndef GPUPROF_COLLECTOR_TABLE_H
#define GPUPROF_COLLECTOR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_text.h"
#include "base/options.h"
#include "output/output.h"

/* What rows of kernels and calls are grouped by, in the order of --by. */
enum report_by {
    BY_NAME,
    BY_GRID,
    BY_SHAPE,
    BY_RANGE,
    BY_STACK,
    BY_PYTHON_LINE,
    BY_THREAD, /* the words of --by end here */
    BY_SOURCE  /* --source=DIR */
};

#define TABLE_COLUMNS_MAX 32
#define TABLE_TEXT_MAX    16 /* columns shown in text, and a final 0 */

/* The type of a column's numbers decides how each format writes them. */
enum column_type {
    COLUMN_TEXT,
    COLUMN_LINES,      /* clean text with further lines below it */
    COLUMN_COUNT,      /* 1,234 */
    COLUMN_NS,         /* 1.234 us */
    COLUMN_BYTES,      /* 1.2 KiB */
    COLUMN_AMOUNT,     /* 1.234 G */
    COLUMN_POWER,      /* mW: 312.5 W */
    COLUMN_ENERGY,     /* mJ: 1.234 kJ */
    COLUMN_SHARE,      /* fraction of 1: 12.3% */
    COLUMN_FINE_SHARE, /* 12.34% */
    COLUMN_RATE,       /* bytes per nanosecond, which is GB/s */
    COLUMN_NUMBER,     /* unformatted: a process, an error number */
    COLUMN_BOOL,
    COLUMN_JSON, /* a text that already is JSON */
    COLUMN_LIST, /* a list of such texts */
};

/* What a column of a table of sums (query/sums.h) shows by itself: a fact about key `of`, or a
 * figure from value `of`. */
enum column_shows {
    SHOWS_NOTHING, /* filled by the table; no column if it has no doc */
    SHOWS_KEY,     /* text, name, title */
    SHOWS_TEXT,    /* the key's own text, for rows with another name */
    SHOWS_HOST,    /* of a process, or of a thread's process */
    SHOWS_PID,
    SHOWS_TID, /* of a thread */
    SHOWS_THREAD,
    SHOWS_KEYS, /* those above show keys */
    SHOWS_VALUE,
    SHOWS_MOMENT,   /* time since the report's begin */
    SHOWS_MEAN,     /* value / value `by`; by value 0 unless given */
    SHOWS_RATE,     /* value / value `by` */
    SHOWS_MEDIAN,   /* of the histogram from value `by` (or 0) to this value */
    SHOWS_P95,      /* likewise */
    SHOWS_SHARE,    /* of the sum of all rows; empty for rows that have some of `by` */
    SHOWS_PART,     /* of the total that shares refer to, perhaps of another table */
    SHOWS_FLOPS,    /* FLOPs; next two values: calls with FLOPs, calls expected to */
    SHOWS_RECORDED, /* if value 0 is estimated: the recorded count */
};

/* A column's member initialisers: what it shows of key or value OF. */
#define SHOW(WHAT, OF) .shows = SHOWS_##WHAT, .of = OF

struct table;

/* What a column of a table of members (struct table_rows) shows by itself. */
enum column_from {
    FROM_TABLE,   /* filled by the table */
    FROM_MEMBER,  /* a number, a text, ... */
    FROM_POINTER, /* from the struct a pointer refers to; empty if NULL */
    FROM_SHARE,   /* of two numbers */
    FROM_HOST,    /* of the process a pointer refers to */
    FROM_RANK,
    FROM_JOB, /* if there are several */
    FROM_PID,
};

/* The values of a member that mean nothing. */
enum column_lacks {
    LACKS_NONE,
    LACKS_ZERO, /* 0, NULL */
    LACKS_MAX,  /* the type's largest number */
};

/* The location of member NAME of struct TYPE, of its pointer's struct, or of its process. */
#define MEMBER(TYPE, NAME)                                                                         \
    .from = FROM_MEMBER, .at = offsetof(TYPE, NAME), .bytes = sizeof(((TYPE *)0)->NAME)
#define MEMBER_OF(TYPE, POINTER, NAME)                                                             \
    .from = FROM_POINTER, .at = offsetof(TYPE, POINTER),                                           \
    .to = offsetof(__typeof__(*((TYPE *)0)->POINTER), NAME),                                       \
    .bytes = sizeof(((TYPE *)0)->POINTER->NAME)
#define MEMBER_SHARE(TYPE, PART, WHOLE)                                                            \
    .from = FROM_SHARE, .at = offsetof(TYPE, PART), .to = offsetof(TYPE, WHOLE)
#define COLUMN_HOST(TYPE, NAME)                                                                    \
    {                                                                                              \
        "host", .from = FROM_HOST, .at = offsetof(TYPE, NAME), .doc = "the host of the process"    \
    }
#define COLUMN_RANK(TYPE, NAME)                                                                    \
    {                                                                                              \
        "rank", .from = FROM_RANK, .at = offsetof(TYPE, NAME), .doc = "the rank of the process"    \
    }
#define COLUMN_JOB(TYPE, NAME)                                                                     \
    {                                                                                              \
        "job", NULL, COLUMN_NUMBER, .ascending = true, .from = FROM_JOB,                           \
                                    .at = offsetof(TYPE, NAME), .doc = "its job, of several"       \
    }
#define COLUMN_PID(TYPE, NAME)                                                                     \
    {                                                                                              \
        "pid", NULL, COLUMN_NUMBER, .ascending = true, .from = FROM_PID,                           \
                                    .at = offsetof(TYPE, NAME), .doc = "the number of the process" \
    }

struct column {
    const char *key;   /* in JSON; NULL: not there */
    const char *label; /* in text; NULL: not there. --sort accepts key and label */
    enum column_type type;
    uint8_t width;   /* in text, without the space before */
    bool ascending;  /* sort order: smallest first, as for texts; others largest first */
    uint8_t spare;   /* narrow terminals drop it, 1 first; 0: never */
    bool is_filled;  /* shown in text only if a visible row has a value */
    bool hides_zero; /* text leaves 0 empty */
    enum column_shows shows;
    uint8_t of, by;    /* keys or values, in the table's numbering */
    uint8_t where;     /* text leaves it empty in rows without this value */
    uint8_t only;      /* likewise in all formats */
    bool is_estimated; /* estimated where value 0 is */
    const char *doc;   /* for manual and page; NULL: no column of this table of sums */
    enum column_from from;
    uint16_t at, to; /* offset of the member, and in the struct it refers to */
    uint8_t bytes;   /* size of the member: a pointer's size for a text, or an array's */
    enum column_lacks lacks;
};

/* The location of rows: a list of structs in the source, or in what `of` returns. */
struct table_rows {
    uint16_t list, count; /* members: the list, or a pointer to it; a uint32_t count */
    uint16_t total;       /* a uint64_t that includes rows not stored; 0: none */
    uint16_t bytes;       /* per row; 0: the table finds its rows itself */
    bool is_inside;       /* the list itself, not a pointer */
    const void *(*of)(const struct table *t);
};

#define TABLE_COLUMNS(LIST) .columns = LIST, .column_count = sizeof LIST / sizeof LIST[0]

#define ROWS_IN(TYPE, LIST, COUNT)                                                                 \
    .list = offsetof(TYPE, LIST), .count = offsetof(TYPE, COUNT),                                  \
    .bytes = sizeof *((TYPE *)0)->LIST, .is_inside = sizeof(((TYPE *)0)->LIST) != sizeof(void *)

enum cell_kind { CELL_NONE, CELL_NULL, CELL_NUMBER, CELL_REAL, CELL_TEXT };

/* A cell. NONE has no value; NULL is null in JSON. Both are empty in csv. Text output accepts TEXT
 * in any column. */
struct cell {
    enum cell_kind kind;
    bool estimated; /* "~" before it in text */
    bool at_least;  /* likewise ">" */
    uint64_t number;
    double real;
    const char *text;
    char *memory; /* owned; freed with the row */
};

struct cell cell_number(uint64_t number);
struct cell cell_known(bool is_known, uint64_t number); /* null if not known */
struct cell cell_real(double real);
struct cell cell_share(uint64_t part, uint64_t whole); /* 0 if `whole` is 0 */
struct cell cell_text(const char *text); /* a view that outlives the row; NULL: CELL_NULL */
struct cell cell_owned(char *text);      /* takes `text`; NULL: "?" */
struct cell cell_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct cell cell_more(uint64_t count); /* "... and 3 more": for a foot, rows not stored */

/* The order in text: important tables first. */
enum table_place {
    PLACE_ASKED, /* only with --full or by name */
    PLACE_URGENT,
    PLACE_IDLE,
    PLACE_STEPS,
    PLACE_OPERATORS,
    PLACE_KERNELS,
    PLACE_COPIES,
    PLACE_GRAPHS,
    PLACE_FUNCTIONS,
    PLACE_RANGES,
    PLACE_MEMORY,
    PLACES
};

/* Results that parts cannot hold, since they need several processes at one moment or are no sums. A
 * part notes which of these the recording has. */
enum part_missing {
    PART_HANGS = 1,       /* calls that had not returned, and unfinished work */
    PART_COLLECTIVES = 2, /* collectives that some ranks did not call, or called differently */
    PART_LIBRARIES = 4,   /* more collectives than a part holds */
    PART_COUNTERS = 8,    /* counters and energy of devices */
    PART_MEMORY = 16,     /* a memory problem */
    PART_ALL = 31,
    PART_OVERVIEW = PART_HANGS | PART_COUNTERS | PART_MEMORY, /* those in the JSON's overview */
    PART_OF_HANG = PART_OVERVIEW | PART_COLLECTIVES /* a report that needs these shows hangs */
};

struct table_info {
    const char *name;             /* for --table; tables of one name belong together */
    const char *old_name;         /* its name in old versions; NULL: the same */
    const char *key;              /* in JSON; NULL: not there */
    const char *csv_name;         /* in csv; NULL: the key */
    const char *about;            /* in help; NULL: the title */
    const char *title;            /* in text; NULL: none */
    const struct column *columns; /* in JSON order; the first is the row's name */
    uint8_t column_count;
    uint8_t text[TABLE_TEXT_MAX]; /* column indices in text order; 0, the name, is last. Empty: all
                                   * with a label and a width */
    struct table_rows rows;
    uint8_t name_width;     /* minimum width of names before columns are dropped; 0:
                             * NAME_WIDTH_MIN */
    uint8_t order;          /* default sort column; 0: keep the rows' order */
    bool is_bare;           /* text without a line of labels */
    enum table_place place; /* in text */
    bool is_summary;        /* a few rows that ignore --limit and --sort */
    bool is_further;        /* only the first table of a name reports that it is empty */
    enum report_by by;      /* other than BY_NAME: only with this --by */
    unsigned needs;        /* it is not in parts of recordings that have these: enum part_missing */
    uint32_t text_limit;   /* default limit of rows in text; 0: all */
    const char *text_none; /* after "none": how to get some */

    /* Sets count and is_there. NULL: all `rows`, and JSON always has it. */
    void (*begin)(struct table *t);
    /* Returns true if the format includes row `index`. NULL: all. */
    bool (*has)(const struct table *t, uint32_t index);
    /* Fills the cells of row `index`; they are CELL_NONE, except those of members. NULL: none to
     * fill. */
    void (*row)(const struct table *t, uint32_t index, struct cell *cells);
    /* Fills a text row that always comes last; false: none. NULL: counts the rows not stored, if
     * known. */
    bool (*foot)(const struct table *t, struct cell *cells);
    /* Print notes around its text, or further members of JSON. NULL: none */
    void (*text_before)(const struct table *t, FILE *out);
    void (*text_behind)(const struct table *t, FILE *out);
    void (*json_before)(const struct table *t, FILE *out);
    void (*json_behind)(const struct table *t, FILE *out);
};

#define ROWS_UNLIMITED UINT64_MAX

/* Options of verbs that show tables: a struct table_options in the verb's own struct. */
enum colour_use { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER }; /* in the order of --color */

struct table_options {
    enum report_format format; /* FORMAT_BY_NAME: by the file's name */
    const char *names;         /* comma-separated; NULL: all */
    const char *sort;          /* a column; NULL: default order */
    uint64_t limit;            /* rows per table; ROWS_UNLIMITED: not given */
    bool is_full;              /* nothing is cut to the terminal's width */
    enum colour_use colour;
};

#define TABLE_OPTIONS_USUAL                                                                        \
    {                                                                                              \
        .format = FORMAT_BY_NAME, .limit = ROWS_UNLIMITED                                          \
    }

extern const struct option table_options[]; /* in two parts: */
#define TABLE_ROWS   (1u << 0)              /* --sort, --limit, --full */
#define TABLE_COLOUR (1u << 1)              /* --color */

/* The user's choices about tables. */
struct table_view {
    const char *sort; /* a column, for tables that have it; NULL: default order */
    uint64_t limit;   /* rows per table; ROWS_UNLIMITED: not given */
    uint32_t rows;    /* default rows in text; 0: the table's own limit */
    uint32_t width;   /* terminal columns; 0: unlimited */
    bool is_named;    /* named: reports that it is empty */
    bool has_colour;
};

/* Reports an error if `output` is a folder and the format is not csv. */
enum exit_code table_output_check(const char *verb, enum report_format format, const char *output);

/* Makes a view from the options and the destination `output`; `rows` as above, unless the options
 * say otherwise. */
struct table_view table_view_of(const struct table_options *o, const char *output, uint32_t rows);

/* A table: its description, its source and, once begun, its rows. */
struct table {
    const struct table_info *info;
    const void *source;
    enum report_format format; /* that it is printed in */
    unsigned parts;            /* what it is made of (enum report_part); 0: not told */
    const char *none;          /* set by begin: replaces text_none; NULL: not set */
    bool is_there;             /* the recording has this table, perhaps without rows */
    uint32_t without;          /* set by begin: a bit for each missing column */
    uint32_t count;
    uint32_t *order; /* owned: indices in display order */
    uint32_t shown;  /* of `rows`, to be printed */
    uint32_t rows;   /* rows in this format */
};

/* Returns the column with that key or label; -1: none that can sort. LINES and LIST columns cannot:
 * a million such texts would not fit in memory, so they are made one by one. */
int table_column(const struct table_info *info, const char *name);

/* Returns EXIT_OK if one of `count` tables has the column, or NULL is given. Else reports which
 * columns they have. */
enum exit_code table_sort_check(const char *verb, const char *name,
                                const struct table_info *const *infos, unsigned count);

/* Returns true if the default limit `view->rows` applies, which it does not to tables of --by. */
bool table_is_short(const struct table_info *info, const struct table_view *view);

/* Returns row `index` of `rows`. */
const void *table_item(const struct table *t, uint32_t index);

/* Begins a table of members, as `begin` = NULL does. */
void members_begin(struct table *t);

/* Fills the cells that columns take from the members of `item`, as for a row. */
void members_show(const struct table *t, const void *item, struct cell *cells);

/* Counts, sorts and limits the rows, until table_end. */
void table_begin(struct table *t, const struct table_view *view, enum report_format format);
void table_end(struct table *t);

/* Fills row `place` of the `shown` ones, or the foot if place == shown. Returns false if there is
 * none. Always call cells_release on the cells. */
bool table_row(const struct table *t, uint32_t place, struct cell cells[static TABLE_COLUMNS_MAX]);
void cells_release(struct cell cells[static TABLE_COLUMNS_MAX]);

/* Prints the value of a cell as JSON, and a text by `put`. */
void cell_print_json(const struct column *c, const struct cell *cell, json_put_fn *put, FILE *out);

/* Print a begun table, or nothing if it is missing and was not named. JSON is a member with a comma
 * before it, and one about rows left out, if any. */
void table_print_text(struct table *t, const struct table_view *view, FILE *out);
void table_print_json(struct table *t, const struct table_view *view, FILE *out);

/*
 * Writes csv with JSON's columns and values to the file `path` (NULL or "-": standard output). A
 * single named table is a heading and its rows; otherwise each table that has rows or was named is
 * a block: "# NAME", heading, rows, empty line. If `path` is a folder or ends in a slash, each
 * table is a file NAME.csv in it. Reports errors.
 */
enum exit_code tables_write_csv(struct table *tables, unsigned count, const struct table_view *view,
                                const char *path, uint64_t *room);

#endif
