/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the tables of `gpuprof memory`, in display order. */
#ifndef GPUPROF_COLLECTOR_MEMORY_ROWS_H
#define GPUPROF_COLLECTOR_MEMORY_ROWS_H

#include "base/options.h"
#include "memory/memory_report.h"
#include "resolve/call_tree.h"
#include "table/table.h"

/* An owner in all places of one kind: on devices, or of the host. */
struct memory_row {
    uint32_t origin;
    enum memory_where where;
    bool leaks; /* in any place */
    uint32_t places;
    uint32_t processes;            /* one more if the places of several alternate */
    const struct process *process; /* of the last of them */
    struct memory_amount at_peak;  /* each place at its own peak */
    struct memory_amount end;
    struct memory_amount asked;
    struct memory_amount got;
    struct memory_amount temporary;
    double slope; /* bytes a step, summed over the places */
    double error;
    uint64_t grown; /* since the first step's end */
};

struct memory_rows {
    struct memory_report *report;
    enum memory_at at;
    struct call_tree tree; /* of stacks, if owners are stacks */
    bool has_tree;
    struct memory_row *list; /* owned: by bytes at that moment, largest first */
    uint32_t count;
    struct memory_row *leaks; /* owned: leaking rows, largest growth first */
    uint32_t leak_count;
    uint64_t at_all[MEMORY_WHERES]; /* bytes at that moment */
};

/* memory_origin_text for the rows; malloc'ed, NULL if out of memory. */
char *memory_owner_text(const struct memory_rows *r, uint32_t origin);

/* The amount of a row at the moment `at`. */
struct memory_amount memory_row_shown(const struct memory_rows *r, const struct memory_row *row);

/* The tables' state is a struct memory_rows. (memory_tables.c) */
#define MEMORY_TABLES 10
extern const struct table_info *const memory_tables[MEMORY_TABLES];

/* Books and rows together, for users that show them beside other data. */
struct memory_look {
    struct memory_report report;
    struct memory_rows rows; /* at the requested moment */
};

/* Walks twice through `rec`, which must outlive the result. NULL with an error in *error, after one
 * line on stderr; else free it with memory_look_free, which accepts NULL. */
struct memory_look *memory_look_create(struct recording *rec, const struct memory_request *request,
                                       const char *symbols, int *error);
void memory_look_free(struct memory_look *look);

/* Why there was not enough memory, and what to do. (memory_advice.c; GUIDE.md lists them) */
struct memory_advice {
    const char *id; /* stable */
    char *text;     /* owned, with names as recorded; NULL: out of memory */
};

/* Explains a failed allocation. */
struct memory_advice memory_advise(const struct memory_rows *r, const struct memory_oom *oom);

/* The framework of the process that allocates most of a device at once ("JAX"), and how to turn
 * that off; NULL if none is known. */
const char *memory_preallocator(const struct memory_report *m, const struct process *p,
                                const char **remedy);

/* ---- tables with a struct memory_rows, and cells of several tables ---- */

extern const struct table_info memory_ooms_table, memory_hidden_table; /* memory_trouble.c */
extern const struct table_info memory_steps_table, memory_ranges_table, memory_resident_table,
    memory_curve_table; /* memory_times.c */

/* Prints the first screen: failed allocations, peaks, their owners, growth, hidden memory. Each
 * line is as wide as the terminal. (memory_overview.c) */
void memory_overview_print(const struct memory_rows *r, const struct table_view *how, FILE *out);

/* The struct memory_report of a table. */
const void *memory_of_table(const struct table *t);

struct cell memory_owner_cell(const struct table *t, uint32_t origin);

/* "device 1, rank 0: train.py (host, pid 12)" */
struct cell memory_place_cell(const struct process *p, uint32_t device, enum memory_where where);

/* A time relative to the first event. */
struct cell memory_moment_cell(const struct memory_report *m, uint64_t ns);

/* "tensor", "device" or "host"; and "+1.5 MiB", or the number in other formats. */
const char *memory_where_text(enum memory_where where);
struct cell memory_change_cell(double bytes, enum report_format format);

/* ---- the verb `memory`, without its page (page_verb.c) ---- */

/* Its options beyond those of all verbs that read recordings. */
struct memory_options {
    struct table_options table;
    enum memory_by by;
    enum memory_at at;
    double at_seconds; /* for MEMORY_AT_TIME; otherwise -1 */
};

#define MEMORY_OPTIONS_USUAL .table = TABLE_OPTIONS_USUAL, .by = MEMORY_BY_BEST, .at_seconds = -1

extern const struct option memory_options[];
enum exit_code memory_run(const struct options *options);

#endif
