/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a report, and how to make it: one walk, by the consumers of the tables of sums
 * (analyses.h) and of analyses. An analysis is a struct analysis in its own file, and a row of
 * analyses.def that names its member of struct report. Memory does not depend on the number of
 * calls: quantiles come from a log-linear histogram (histogram.h).
 */
#ifndef GPUPROF_COLLECTOR_REPORT_MAKE_H
#define GPUPROF_COLLECTOR_REPORT_MAKE_H

#include "analyse/analyses.h"
#include "analyse/cost_report.h"
#include "analyse/hang.h"
#include "analyse/memory_peaks.h"
#include "analyse/rank_report.h"
#include "query/sums.h"
#include "record/losses.h"
#include "resolve/event_walk.h"
#include "resolve/rows.h"

struct selection;
/* The user of a report. An analysis is in all reports, and lists its other uses. */
enum report_use { USE_REPORT, USE_EXPORT = 1, USE_PARTS = 2 };

#define MAKES(name, member) MAKES_##name,
enum report_analysis {
#include "analyse/analyses.def"
    REPORT_ANALYSES
};

/* How steps are requested. */
struct step_request {
    bool is_wanted;
    const char *by;                    /* NULL: the first definition that applies */
    const char *pattern;               /* of ranges and labels; NULL: none */
    const struct selection *selection; /* only steps of this selection; NULL: all */
    double samples;                    /* samples of a step of one process; 0: not given */
};

/* Costs by line of code. */
struct lines_request {
    const char *source; /* folder for source_report.h; NULL: by is not BY_SOURCE */
    bool is_sorted;     /* sorted by a column: then source lines are a list */
    bool is_mine;       /* only the user's own lines; stack_report.h */
};

/* What a report is made of. */
struct report_request {
    enum report_use use;
    enum report_by by; /* the rows of kernels, or the table of stacks */
    struct lines_request lines;
    bool is_part;                     /* it goes into a part */
    unsigned refused;                 /* enum part_missing: fail if the recording has these */
    bool groups;                      /* rows of ranges are groups; range_rows.h */
    unsigned leaves;                  /* enum report_part: parts to leave out */
    bool looks_at_memory;             /* look for memory problems */
    bool leaves_hangs;                /* leave out where calls hang */
    uint64_t walk_ns_max;             /* read for at most this long; 0: read all */
    const char *symbols;              /* the folder of symbols.h */
    const struct step_request *steps; /* NULL: no steps */
    const struct steps *found;        /* complete steps; NULL: find them */
    struct selection *selection;      /* must outlive the report; NULL: everything */
    const struct report *whole; /* the report of all, with the same processes; NULL: unknown */
    uint64_t
        only; /* of a selection: tables of rows (bits of enum sums_table), nothing else; 0: any */
};

/* Of all processes together. */
struct report_total {
    uint64_t calls;
    bool is_estimated; /* some calls stand for several */
    uint64_t errors;
    uint64_t copy_calls; /* copies among these, without sets and prefetches */
    uint64_t copy_bytes;
    uint64_t begin_ns; /* begin of the first call; 0 if there is none */
    uint64_t end_ns;   /* end of the last call */
    struct losses losses;
    uint64_t *process_calls; /* owned, by process index */
};

/* The time that it is about. */
struct report_time {
    const struct selection *selection; /* NULL: everything */
    uint64_t piece_events;             /* events in the selection */
    bool is_selection;                 /* selected by time: leaves out what was before */
    uint64_t wall_begin_ns; /* begin of the first process or event, or of the selection */
    uint64_t wall_end_ns;   /* end of the last event, or of the selection */
    uint64_t whole_ns;      /* 0: all was read; otherwise the length of the recording */
};

/* While it is made. */
struct report_making {
    int error; /* of the end of an analysis */
    bool has_begun[REPORT_ANALYSES];
    struct consumer consumers[WALK_CONSUMERS_MAX]; /* the first two are report_walk's */
    unsigned consumer_count;
    uint64_t histogram_rows; /* remaining rows with a histogram, in all tables */
};

struct report {
    struct recording *rec;
    struct report_request request; /* views, until it is made */
    bool is_combined;              /* of parts (part_report.h) ... */
    unsigned missing;              /* ... which lack this: enum part_missing */
    struct walk walk;
    struct resolver resolver;
    struct sums sums[ANALYSES_COUNT]; /* tables of sums; if `info` is NULL, not requested */
    struct report_total total;
    struct report_time time;
    struct report_making making;
    const struct next_words *next; /* a view: the proposed next commands; NULL: unchanged */
    const struct steps
        *program_steps;      /* a view: `marks`, or those of `steps`; NULL: not requested */
    struct cost_report cost; /* cost of gpuprof itself */
    struct rank_report ranks;
#define MAKES(name, member) member;
#include "analyse/analyses.def"
};

/* The analysis of a row MAKES(NAME, MEMBER) is NAME_analysis. Members it does not need are NULL or
 * 0. */
struct analysis {
    size_t at, bytes; /* ANALYSIS_STATE: its struct, zeroed before it begins */
    unsigned uses;    /* enum report_use: users besides reports */
    unsigned parts;   /* enum report_part: left out if any of these is */
    bool (*is_wanted)(const struct report *r);
    /* Called before the walk; adds its consumers (report_hear). Release is called in any case. */
    void (*begin)(struct report *r);
    /* Called after the walk, after the ends of earlier rows. An error goes to r->error, after one
     * line on stderr. */
    void (*end)(struct report *r);
    void (*release)(struct report *r);
};

#define ANALYSIS_STATE(MEMBER)                                                                     \
    .at = offsetof(struct report, MEMBER), .bytes = sizeof *((struct report *)0)->MEMBER

/* Defines a release function that is one call. */
#define ANALYSIS_FREES(NAME, CALL)                                                                 \
    static void NAME(struct report *r)                                                             \
    {                                                                                              \
        CALL;                                                                                      \
    }

#define MAKES(name, member) extern const struct analysis name##_analysis;
#include "analyse/analyses.def"

/*
 * The stages of report_make, for callers with their own walk. Begin sets up the `request` in
 * *r, which has `histogram_rows`, and joins a walk that exists. Walk gives each slice to `first`
 * before all others. Both others return 0, WALK_STOP or an error after one line on stderr. Call
 * report_release in any case.
 */
void report_begin(struct report *r, struct recording *rec, const struct report_request *request);
int report_walk(struct report *r, const struct consumer *first);
int report_end(struct report *r);

/* Adds a consumer to the report's walk. */
void report_hear(struct report *r, struct consumer consumer);

bool report_wants_steps(const struct report *r);

/* The parts (enum report_part) that no record of the recording can fill. */
unsigned report_parts_missing(const struct recording *rec);

/* Reads all events of `rec`, which must outlive `r`. 0, or an error after one line on stderr; call
 * report_release in both cases. */
int report_make(struct report *r, struct recording *rec, const struct report_request *request);

void report_release(struct report *r);

/* Sums the losses of all processes. Call when all are known. */
void report_sum_up(struct report *r);

#endif
