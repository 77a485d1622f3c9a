/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report: per function count, times and bytes over all recordings given. Memory does not
 * depend on the number of calls: quantiles come from a log-linear histogram (histogram.h).
 */
#ifndef GPUPROF_COLLECTOR_REPORT_H
#define GPUPROF_COLLECTOR_REPORT_H

#include <stdio.h>

#include "analyse/analyses.h"
#include "analyse/cost_report.h"
#include "analyse/failures.h"
#include "analyse/rank_report.h"
#include "find/hang.h"
#include "memory/memory_signs.h"
#include "model/event_walk.h"
#include "model/op_phases.h"
#include "query/report_parts.h"
#include "record/losses.h"
#include "table/table.h"

struct device_report;
struct energy_report;
struct gpu_report;
struct findings;
struct idle;
struct library_report;
struct memory_look;
struct op_report;
struct selection;
struct stack_report;
struct source_report;
struct step_report;
struct steps;
struct step_wish;

/* What recordings may have that is in no part, since it looks at several processes at one moment,
 * or is no sum: a part says that there is something of it. */
enum part_missing {
    PART_HANGS = 1,       /* calls that had not returned, work that had not finished */
    PART_COLLECTIVES = 2, /* that not all ranks have called, or not alike */
    PART_LIBRARIES = 4,   /* more collectives than a part can keep */
    PART_COUNTERS = 8,    /* of devices, and their energy */
    PART_MEMORY = 16,     /* something is wrong with it */
    PART_ALL = 31,
    PART_OVERVIEW = PART_HANGS | PART_COUNTERS | PART_MEMORY /* of which the JSON's tells */
};

struct report {
    const struct recording *rec;
    bool is_combined; /* of parts (part_report.h) ... */
    unsigned missing; /* ... which do not have this: enum part_missing */
    struct walk walk;
    struct sums sums[ANALYSES_COUNT]; /* tables of sums; `info` is NULL: not asked for */
    uint64_t calls;
    bool is_estimated; /* some calls stand for others, too */
    uint64_t errors;
    uint64_t total_ns;   /* of calls that are not nested in another */
    uint64_t copy_calls; /* of these that copied; sets and prefetches are none */
    uint64_t copy_bytes;
    uint64_t begin_ns;                 /* of the first call; 0 if there is none */
    uint64_t end_ns;                   /* of the last */
    const struct selection *selection; /* NULL: everything */
    uint64_t piece_events;             /* that are in it */
    bool is_piece;                     /* of time: nothing is said of what was before it */
    uint64_t wall_begin_ns;        /* of the first process, or its first event; or of the piece */
    uint64_t wall_end_ns;          /* of the last event; or of the piece */
    uint64_t whole_ns;             /* 0: all was read; otherwise how long all took */
    uint64_t *process_calls;       /* owned, by process index */
    struct losses losses;          /* of all processes together */
    uint64_t histogram_rows;       /* that may still be made, in all tables */
    const struct next_words *next; /* a view: of what is to be run next; NULL: as it stands */
    struct hang hang;              /* calls that had not returned, work that had not finished */
    struct cost_report cost;       /* of gpuprof itself */
    struct gpu_report *gpu;        /* owned; what the devices did, and ranges */
    struct findings *findings;     /* owned; what is worth fixing */
    struct memory_signs signs;     /* of what is wrong with the memory */
    struct memory_look *memory;    /* owned; its books. NULL: nothing is */
    struct idle *idle;             /* owned; why they did nothing. NULL: they have no rows */
    struct rank_report ranks;
    struct device_report *devices;    /* owned; what the driver said of them */
    struct energy_report *energy;     /* owned; what they burnt */
    struct op_report *ops;            /* owned; PyTorch's operators. NULL: not asked for */
    struct library_report *libraries; /* likewise; calls of libraries */
    struct steps *marks;              /* owned; the program's steps; `steps` takes them; or NULL */
    struct stack_report *stacks;      /* owned; NULL: not asked for */
    struct op_phases phases;          /* likewise; zeros where nobody asks for steps */
    struct step_report *steps;        /* likewise */
    /* Owned; lines beside what they cost. NULL: not asked for. */
    struct source_report *source;
};

/* What a report is to be made of. */
struct report_wish {
    enum report_by by;             /* what a row of kernels is, or which table of stacks there is */
    const char *source;            /* the folder of source_report.h; NULL: by is not BY_SOURCE */
    bool is_sorted;                /* by a column: lines of source are no text then */
    bool is_mine;                  /* lines are the user's own ones; stack_report.h */
    bool is_part;                  /* it goes into a part */
    unsigned refused;              /* enum part_missing: with such as this it is of no use */
    bool groups;                   /* what one of ranges is; range_rows.h */
    unsigned leaves;               /* enum report_part: those that nobody will look at */
    bool looks_at_memory;          /* where something seems to be wrong with it */
    bool leaves_hangs;             /* nobody will look where calls hang */
    uint64_t walk_ns_max;          /* only what is read in so long; 0: all */
    const char *symbols;           /* the folder of symbols.h */
    const struct step_wish *steps; /* NULL: none */
    struct selection *selection;   /* which piece, which must stay; NULL: everything */
};

/*
 * Reads all events of `rec`, which must stay. 0, or an error after one line on stderr;
 * report_release in both cases.
 */
int report_make(struct report *r, struct recording *rec, const struct report_wish *wish);
void report_release(struct report *r);

/* Has all lines that propose something say what is known, which must stay. */
void report_tell_next(struct report *r, const struct next_words *next);

/* When all is there: the losses of all processes. */
void report_sum_up(struct report *r);

/* How a report is wanted: which tables, and what of them. */
struct report_view {
    enum report_by by;
    const char *tables; /* names, with commas between; NULL: those that tell most, or all */
    bool is_full;       /* all tables, if none is named */
    struct table_view how;
};

/* What report_make has found, as text for people, or as JSON. 0 or GPUPROF_NO_MEMORY. */
int report_print_text(const struct report *r, const struct report_view *v, FILE *out);
int report_print_json(const struct report *r, const struct report_view *v, FILE *out);

/* Its tables as csv: see tables_write_csv. */
enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room);

/*
 * Writes the report as a page. The walk has been through all, and may be repeated (event_walk.h).
 * 0, or an error after one line on stderr.
 */
typedef int report_page_fn(struct report *r, const struct report_view *v,
                           const struct options *options, FILE *out);

/* About ten lines; the first `function_count` functions only, where nothing is known of devices.
 * 0 or GPUPROF_NO_MEMORY. */
int report_print_summary(const struct report *r, unsigned function_count, FILE *out);

#endif
