/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `gpuprof memory`: what is in them, in the order in which they are shown. */
#ifndef GPUPROF_COLLECTOR_MEMORY_ROWS_H
#define GPUPROF_COLLECTOR_MEMORY_ROWS_H

#include "base/options.h"
#include "memory/memory_report.h"
#include "resolve/call_tree.h"
#include "table/table.h"

/* An owner in all places that are alike: on devices, or of the host. */
struct memory_row {
    uint32_t origin;
    enum memory_where where;
    bool leaks; /* in any of them */
    uint32_t places;
    struct memory_amount at_peak; /* each at its own place's peak */
    struct memory_amount end;
    struct memory_amount asked;
    struct memory_amount got;
    struct memory_amount temporary;
    double slope; /* bytes a step; the sum of the places' */
    double error;
    uint64_t grown; /* since the first step's end */
};

struct memory_rows {
    struct memory_report *report;
    enum memory_at at;
    struct call_tree tree; /* of stacks, if they are owners */
    bool has_tree;
    struct memory_row *list; /* owned: the most bytes first, at that moment */
    uint32_t count;
    struct memory_row *leaks; /* owned: those that do, what has grown most first */
    uint32_t leak_count;
    uint64_t at_all[MEMORY_WHERES]; /* bytes at that moment */
};

/* memory_origin_text, as the rows have it; malloc'ed, NULL: no memory. */
char *memory_owner_text(const struct memory_rows *r, uint32_t origin);

/* What a row is about: at that moment. */
struct memory_amount memory_row_shown(const struct memory_rows *r, const struct memory_row *row);

/* Of a struct memory_rows. (memory_tables.c) */
#define MEMORY_TABLES 10
extern const struct table_info *const memory_tables[MEMORY_TABLES];

/* Books and rows together, for who shows them beside other things. */
struct memory_look {
    struct memory_report report;
    struct memory_rows rows; /* at the moment of the wish */
};

/*
 * Walks through `rec`, which must stay, twice. NULL: an error in *error, after one line on stderr;
 * else to be freed by memory_look_free, which takes NULL, too.
 */
struct memory_look *memory_look_create(struct recording *rec, const struct memory_wish *wish,
                                       const char *symbols, int *error);
void memory_look_free(struct memory_look *look);

/*
 * Why there was not enough memory, and what to do: the first of these that fits. (memory_advice.c)
 *
 *   larger-than-device  more was wanted than the device has
 *   fragmented          PyTorch's allocator had enough, in pieces that were too small
 *   kept-apart          it had a piece that was large enough, for another stream, pool or size
 *   leak                an owner that grows from step to step had a tenth of what was held, or as
 *                       much as was wanted
 *   preallocation       one block of half the device or more, which a framework keeps books of
 *   hidden              the process would have had room: others, or libraries, had the rest
 *   limited             there was room, which a limit of PyTorch's allocator kept it from
 *   one-owner           half of what was held had one owner
 *   full                nothing of that
 */
struct memory_advice {
    const char *id; /* stable */
    char *text;     /* owned; names as they were recorded. NULL: no memory */
};

/* Of an allocation that failed. */
struct memory_advice memory_advise(const struct memory_rows *r, const struct memory_oom *oom);

/* Which framework the process runs that gets most of a device at once ("JAX"), and what stops it
 * from that; NULL: none is known. */
const char *memory_preallocator(const struct memory_report *m, const struct process *p,
                                const char **remedy);

/* ---- tables, whose source is a struct memory_rows, and cells of several ---- */

extern const struct table_info memory_ooms_table, memory_hidden_table; /* memory_trouble.c */
extern const struct table_info memory_steps_table, memory_ranges_table, memory_resident_table,
    memory_curve_table; /* memory_times.c */

/* The first screen: what there was not enough of, the peaks, who held them, what grows, what is
 * hidden; each line as wide as the terminal. (memory_overview.c) */
void memory_overview_print(const struct memory_rows *r, const struct table_view *how, FILE *out);

/* As struct table_rows has it: the struct memory_report. */
const void *memory_of_table(const struct table *t);

struct cell memory_owner_cell(const struct table *t, uint32_t origin);

/* "device 1, rank 0: train.py (host, pid 12)" */
struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where);

/* Since the first event. */
struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns);

/* "tensor", "device" or "host"; "+1.5 MiB", or the number. */
const char *memory_where_text(enum memory_where where);
struct cell memory_change_cell(double bytes, enum report_format format);

/* ---- the verb `memory`, but for the page that it may write, too (page_verb.c) ---- */

/* What its options say beyond those of all verbs that read recordings. */
struct memory_options {
    struct table_options table;
    enum memory_by by;
    enum memory_at at;
    double at_seconds; /* of MEMORY_AT_TIME; otherwise -1 */
};

#define MEMORY_OPTIONS_USUAL .table = TABLE_OPTIONS_USUAL, .by = MEMORY_BY_BEST, .at_seconds = -1

extern const struct option memory_options[];
enum exit_code memory_run(const struct options *options);

#endif
