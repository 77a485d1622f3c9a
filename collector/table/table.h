/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of the report: a description, which is data, and a way to ask for its rows. The text is
 * printed from that by table_text.c, JSON and csv by table_rows.c, and so is every further form: no
 * table prints itself.
 */
#ifndef GPUPROF_COLLECTOR_TABLE_H
#define GPUPROF_COLLECTOR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "output/verb_output.h"

/* What the rows of kernels and of calls are, in the order of --by. */
enum report_by {
    BY_NAME,
    BY_GRID,
    BY_SHAPE,
    BY_RANGE,
    BY_STACK,
    BY_PYTHON_LINE,
    BY_THREAD, /* so far in the order of the option */
    BY_SOURCE  /* --source=DIR */
};

#define TABLE_COLUMNS_MAX 32
#define TABLE_TEXT_MAX    16 /* columns that the text shows, and a 0 */

/* What the numbers of a column are, and with that how each form writes them. */
enum column_type {
    COLUMN_TEXT,
    COLUMN_LINES,      /* a text whose further lines stand below it; clean already */
    COLUMN_COUNT,      /* 1,234 */
    COLUMN_NS,         /* 1.234 us */
    COLUMN_BYTES,      /* 1.2 KiB */
    COLUMN_AMOUNT,     /* 1.234 G */
    COLUMN_POWER,      /* of mW: 312.5 W */
    COLUMN_ENERGY,     /* of mJ: 1.234 kJ */
    COLUMN_SHARE,      /* of 1: 12.3% */
    COLUMN_FINE_SHARE, /* 12.34% */
    COLUMN_RATE,       /* bytes a nanosecond, which are GB/s */
    COLUMN_NUMBER,     /* as it is: a process, the number of an error */
    COLUMN_BOOL,
    COLUMN_JSON, /* a text that is JSON already */
    COLUMN_LIST, /* such a list */
};

/* What a column of a table of sums (query/sums.h) shows, by itself: what is told of key `of`, or
 * what comes of value `of`. */
enum column_shows {
    SHOWS_NOTHING, /* the table fills it itself; or nothing does, if it has no doc */
    SHOWS_KEY,     /* text, name, title */
    SHOWS_DOMAIN,  /* of a function */
    SHOWS_HOST,    /* of a process, or a thread's */
    SHOWS_PID,
    SHOWS_TID, /* of a thread */
    SHOWS_THREAD,
    SHOWS_KEYS, /* those above are of keys */
    SHOWS_VALUE,
    SHOWS_MOMENT,   /* behind the begin of the report */
    SHOWS_MEAN,     /* by value `by`; of value 0, which stands there without being said */
    SHOWS_RATE,     /* by value `by` */
    SHOWS_MEDIAN,   /* of the histogram, up to the value, from value `by` or 0 on */
    SHOWS_P95,      /* likewise */
    SHOWS_SHARE,    /* of that of all rows; none of a row that has something of `by` instead */
    SHOWS_PART,     /* of what shares are of, which may be in another table */
    SHOWS_FLOPS,    /* so many; the next two: of so many calls, of so many that have some */
    SHOWS_RECORDED, /* where value 0 was estimated of so many */
};

struct table;

/* What a column of a table of members (struct table_rows) shows, by itself. */
enum column_from {
    FROM_TABLE,   /* the table fills it itself */
    FROM_MEMBER,  /* a number, a text, ... */
    FROM_POINTER, /* that of the struct which a pointer is to; nothing where it is NULL */
    FROM_SHARE,   /* of two numbers */
    FROM_HOST,    /* of the process which a pointer is to */
    FROM_RANK,
    FROM_JOB, /* where there are several */
    FROM_PID,
};

/* Of which members nothing is there. */
enum column_lacks {
    LACKS_NONE,
    LACKS_ZERO, /* 0, NULL */
    LACKS_MAX,  /* the largest number there is */
};

/* What is told of member NAME of struct TYPE, or of its pointer, or of the process it points to. */
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
    const char *key;   /* in the JSON; NULL: not there */
    const char *label; /* in the text; NULL: not there. --sort knows both names */
    enum column_type type;
    uint8_t width;  /* in the text, without the space before it */
    bool ascending; /* sorted by this, the smallest comes first, as texts do; others: the largest */
    uint8_t spare;  /* a narrow terminal can do without: those of 1 go first; 0: never */
    bool is_filled; /* the text has it only if a row that is shown has something there */
    enum column_shows shows;
    uint8_t of, by;    /* keys or values, by the table's own numbers */
    uint8_t where;     /* the text leaves it out of rows that have nothing of this value */
    uint8_t only;      /* likewise, and JSON and CSV, too */
    bool is_estimated; /* so is this where value 0 is */
    const char *doc; /* for the manual and the page; NULL: it is no column of this table of sums */
    enum column_from from;
    uint16_t at, to; /* of the member, and that of the struct behind it */
    uint8_t bytes;   /* that it has: of a text as many as a pointer, or it is an array */
    enum column_lacks lacks;
};

/* Where rows are: in a list of structs of the source, or of what `of` gives for it. */
struct table_rows {
    uint16_t list, count; /* members: the list, or a pointer to it; a uint32_t */
    uint16_t total;       /* a uint64_t: with those that were not kept; 0: none */
    uint16_t bytes;       /* of a row; 0: the table finds its rows itself */
    bool is_inside;       /* it is no pointer */
    bool are_pointers;    /* the list is of pointers to the structs */
    const void *(*of)(const struct table *t);
};

#define TABLE_COLUMNS(LIST) .columns = LIST, .column_count = sizeof LIST / sizeof LIST[0]

#define ROWS_IN(TYPE, LIST, COUNT)                                                                 \
    .list = offsetof(TYPE, LIST), .count = offsetof(TYPE, COUNT),                                  \
    .bytes = sizeof *((TYPE *)0)->LIST, .is_inside = sizeof(((TYPE *)0)->LIST) != sizeof(void *)

enum cell_kind { CELL_NONE, CELL_NULL, CELL_NUMBER, CELL_REAL, CELL_TEXT };

/* NONE is nothing at all; NULL a member of the JSON that is null. Both are empty in csv. A TEXT may
 * stand in any column of the text. */
struct cell {
    enum cell_kind kind;
    bool estimated; /* "~" before it in the text */
    bool at_least;  /* likewise ">" */
    uint64_t number;
    double real;
    double percent; /* of a real one, which is rounded once, not twice */
    const char *text;
    char *memory; /* owned; goes with the row */
};

struct cell cell_number(uint64_t number);
struct cell cell_real(double real);
struct cell cell_share(uint64_t part, uint64_t whole); /* 0 of nothing */
struct cell cell_text(const char *text); /* a view, longer-lived than the row; NULL: CELL_NULL */
struct cell cell_owned(char *text);      /* takes `text`; NULL, no memory: "?" */
struct cell cell_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct cell cell_more(uint64_t count); /* "... and 3 more": of a foot, for rows not kept */

/* The order of the text: what somebody looks at first comes first. */
enum table_place {
    PLACE_ASKED, /* only with --full, or if it is named */
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

struct table_info {
    const char *name;             /* for --table; those of one name go together */
    const char *old_name;         /* likewise: what it was called before; NULL: the same */
    const char *key;              /* in the JSON; NULL: it is no table there */
    const char *csv_name;         /* in the csv; NULL: the key */
    const char *about;            /* in help; NULL: the title */
    const char *title;            /* in the text; NULL: none */
    const struct column *columns; /* the first is the row's name; in the order of the JSON */
    uint8_t column_count;
    uint8_t text[TABLE_TEXT_MAX]; /* indices in the order of the text; 0, the name, is the last. Of
                                     none: those that have a label and a width, as they come */
    struct table_rows rows;
    uint8_t name_width;     /* columns are left out for so much of its name; 0: NAME_WIDTH_MIN */
    uint8_t order;          /* the column that it is sorted by unless told; 0: as rows are */
    bool is_bare;           /* the text has no line of labels */
    bool is_joined;         /* the text goes on from the table before it, without an empty line */
    enum table_place place; /* in the text */
    bool is_summary;        /* a few rows that --limit and --sort leave alone */
    bool is_further;        /* of several of one name; only the first says that it is empty */
    enum report_by by;      /* other than BY_NAME: is there with this --by only */
    uint32_t text_limit;    /* rows that the text shows unless told; 0: all */
    const char *more;       /* what it says of the others, with a %s for their number, and
                               one behind a word for its plural */
    const char *text_none;  /* behind "none": how to have some */
    const char *json_empty; /* of no rows; default: "[\n]" */

    /* Sets count and is_there, and what `row` is to find in `first` and `whole`. NULL: all `rows`
     * there are; JSON has it in any case. */
    void (*begin)(struct table *t, enum report_format format);
    /* Is row `index` one in this format? NULL: all are. */
    bool (*has)(const struct table *t, uint32_t index, enum report_format format);
    /* Fills the cells of row `index` below count, which are CELL_NONE but for those of members.
     * NULL: there are no others. */
    void (*row)(const struct table *t, uint32_t index, enum report_format format,
                struct cell *cells);
    /* A row of the text that stands last, whatever the order and the limit; false: none. NULL: how
     * many of `rows` were not kept, if that is known. */
    bool (*foot)(const struct table *t, struct cell *cells);
    /* Around it, where it has more than rows: notes around its text, members of the JSON. NULL: not
     */
    void (*text_before)(const struct table *t, FILE *out);
    void (*text_behind)(const struct table *t, FILE *out);
    void (*json_before)(const struct table *t, FILE *out);
    void (*json_behind)(const struct table *t, FILE *out);
};

#define ROWS_UNLIMITED UINT64_MAX

/* What the options of verbs that show tables say: struct table_options begins in the verb's own
 * struct where the reference to the list says. */
enum colour_use { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER }; /* in the order of --color */

struct table_options {
    enum report_format format; /* FORMAT_BY_NAME: as the name of the file has it */
    const char *names;         /* with commas between; NULL: all */
    const char *sort;          /* a column; NULL: as the tables are */
    uint64_t limit;            /* rows of a table; ROWS_UNLIMITED: not said */
    bool is_full;              /* nothing is cut for the terminal */
    enum colour_use colour;
};

#define TABLE_OPTIONS_USUAL                                                                        \
    {                                                                                              \
        .format = FORMAT_BY_NAME, .limit = ROWS_UNLIMITED                                          \
    }

extern const struct option table_options[]; /* in two parts: */
#define TABLE_ROWS   (1u << 0)              /* --sort, --limit, --full */
#define TABLE_COLOUR (1u << 1)              /* --color */

/* How somebody wants to see tables. */
struct table_view {
    const char *sort; /* column, for the tables that have it; NULL: as they are */
    uint64_t limit;   /* rows of a table; ROWS_UNLIMITED: not said */
    uint32_t rows;    /* of a table that the text shows unless told more; 0: what it has itself */
    uint32_t width;   /* of a terminal, in columns; 0: of no importance */
    bool is_named;    /* asked for: it says so if it is empty */
    bool has_colour;
};

/* Says that `output` is a folder, which only csv goes into, if it is one. */
enum exit_code table_output_check(const char *verb, enum report_format format, const char *output);

/* As the options say, written where `output` is; `rows` as above, where they do not say otherwise.
 */
struct table_view table_view_of(const struct table_options *o, const char *output, uint32_t rows);

/* A description and where its rows come from, and, once begun, what it has. */
struct table {
    const struct table_info *info;
    const void *source;
    const char *none; /* begin may say: of this recording, instead of text_none; NULL: it */
    bool is_there;    /* this recording has such a table, with rows or without */
    uint32_t without; /* begin may say: columns that it does not have, a bit each */
    uint32_t count;
    uint32_t first;
    uint64_t whole;
    uint32_t *order; /* owned: indices in the order asked for */
    uint32_t shown;  /* so many of `rows` are to be printed */
    uint32_t rows;   /* that are in this format */
};

/*
 * The column of that key or label; -1: it has none such to sort by. That are neither LINES nor a
 * LIST: there may be a million of them, which are made one by one and never are in memory at once.
 */
int table_column(const struct table_info *info, const char *name);

/* None of the `count` tables has that column: EXIT_USAGE after one line that lists what they have.
 */
enum exit_code table_sort_unknown(const char *verb, const char *name,
                                  const struct table_info *const *infos, unsigned count);

/* Does the text show `rows` of it, if it has so many? */
bool table_is_short(const struct table_info *info, const struct table_view *view);

/* Row `index` of `rows`. */
const void *table_item(const struct table *t, uint32_t index);

/* For table.c (table_members.c): begins a table of members, and fills the cells of a row of it. */
void members_begin(struct table *t, enum report_format format);
void members_show(const struct table *t, uint32_t index, struct cell *cells);
bool members_foot(const struct table *t, struct cell *cells);

/* Counts, orders and limits the rows. 0 or GPUPROF_NO_MEMORY; table_end in both cases. */
int table_begin(struct table *t, const struct table_view *view, enum report_format format);
void table_end(struct table *t);

/* Row `place` of the `shown` ones, or with place == shown the foot. False: there is none. Its cells
 * go to cells_release, whatever was returned. */
bool table_row(const struct table *t, uint32_t place, enum report_format format,
               struct cell cells[static TABLE_COLUMNS_MAX]);
void cells_release(struct cell cells[static TABLE_COLUMNS_MAX]);

/*
 * Print the table as begun above; nothing if it is not there, unless it was named. JSON is the
 * member, behind a comma, and one of the rows that were left out, if any were. 0 or
 * GPUPROF_NO_MEMORY.
 */
int table_print_text(struct table *t, const struct table_view *view, FILE *out);
int table_print_json(struct table *t, const struct table_view *view, FILE *out);

/*
 * As csv, with the columns and values of the JSON, to the file `path` (NULL or "-": standard
 * output). One table that was asked for alone is a heading and its rows; else each that has rows,
 * or was named, is a block: "# NAME", those, and an empty line. If `path` is a folder, or ends in a
 * slash, each is a file there, NAME.csv. Says what goes wrong.
 */
enum exit_code tables_write_csv(struct table *tables, unsigned count, const struct table_view *view,
                                const char *path, uint64_t *room);

#endif
