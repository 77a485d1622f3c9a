/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `gpuprof memory`: what is in them, in the order in which they are shown. */
#ifndef GPUPROF_COLLECTOR_MEMORY_ROWS_H
#define GPUPROF_COLLECTOR_MEMORY_ROWS_H

#include "memory/memory_report.h"
#include "model/call_tree.h"
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

/* Of a report that was made, which must stay. 0 or an error; memory_rows_release in both cases. */
int memory_rows_make(struct memory_rows *r, struct memory_report *m, enum memory_at at,
                     const char *symbols);
void memory_rows_release(struct memory_rows *r);

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
    struct memory_rows rows; /* at the peak */
};

/*
 * Walks through `rec`, which must stay, twice. NULL: an error in *error, after one line on stderr;
 * else to be freed by memory_look_free, which takes NULL, too.
 */
struct memory_look *memory_look_create(struct recording *rec, const struct memory_wish *wish,
                                       const char *symbols, int *error);
void memory_look_free(struct memory_look *look);

#endif
