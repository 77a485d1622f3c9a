/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report knows, and how it is made: one walk, by the consumers of the tables of sums
 * (analyses.h) and of analyses. An analysis is a struct analysis in its file, and a row of
 * analyses.def, which has its member of struct report. Memory does not depend on the number of
 * calls: quantiles come from a log-linear histogram (histogram.h).
 */
#ifndef GPUPROF_COLLECTOR_REPORT_MAKE_H
#define GPUPROF_COLLECTOR_REPORT_MAKE_H

#include "analyse/analyses.h"
#include "analyse/cost_report.h"
#include "analyse/hang.h"
#include "analyse/rank_report.h"
#include "memory/memory_report.h"
#include "query/report_parts.h"
#include "record/losses.h"
#include "resolve/event_walk.h"
#include "resolve/rows.h"

struct selection;
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

/* Who makes it: an analysis is in all reports, and says which others have it. */
enum report_use { USE_REPORT, USE_EXPORT = 1, USE_PARTS = 2 };

#define MAKES(name, member) MAKES_##name,
enum report_analysis {
#include "analyse/analyses.def"
    REPORT_ANALYSES
};

/* How somebody wants steps. */
struct step_wish {
    bool is_wanted;
    const char *by;                    /* NULL: by the first definition that applies */
    const char *pattern;               /* of ranges and labels; NULL: none */
    const struct selection *selection; /* only steps of this piece; NULL: all */
    double samples;                    /* of a step of one process; 0: not said */
};

/* What a report is to be made of. */
struct report_wish {
    enum report_use use;
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
    const struct steps *found;     /* complete ones; NULL: they are looked for */
    struct selection *selection;   /* which piece, which must stay; NULL: everything */
    uint64_t only; /* of a piece: tables of rows (bits of enum sums_table), nothing else; 0: any */
};

struct report {
    struct recording *rec;
    struct report_wish wish; /* views, until it is made */
    bool is_combined;        /* of parts (part_report.h) ... */
    unsigned missing;        /* ... which do not have this: enum part_missing */
    struct walk walk;
    struct resolver resolver;
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
    const struct steps *program_steps; /* a view: `marks`, or those of `steps`; NULL: not sought */
    bool has_begun[REPORT_ANALYSES];
#define MAKES(name, member) member;
#include "analyse/analyses.def"
};

/* One of a row MAKES(NAME, MEMBER): NAME_analysis. What is NULL or 0 it does not need. */
struct analysis {
    size_t at, bytes; /* ANALYSIS_STATE: its struct, which is zeros before it begins */
    unsigned uses;    /* of enum report_use: who has it beside reports */
    unsigned parts;   /* enum report_part: it is left out where nobody looks at these */
    bool says_errors; /* at its end, itself, on stderr */
    bool (*is_wanted)(const struct report *r);
    int (*begin)(struct report *r); /* before the walk; release in any case */
    /* Puts those that the walk is to tell, ANALYSIS_CONSUMERS_MAX of them, into `list`; how many.
     */
    unsigned (*consumers)(struct report *r, struct consumer *list);
    int (*end)(struct report *r); /* after the walk, and the ends of the rows before */
    bool has_readers;             /* of rows: it is in a report of these alone */
    void (*release)(struct report *r);
};

#define ANALYSIS_CONSUMERS_MAX 2
#define ANALYSIS_STATE(MEMBER)                                                                     \
    .at = offsetof(struct report, MEMBER), .bytes = sizeof *((struct report *)0)->MEMBER

/* Functions of it that are one call: begin or end, consumers, release. */
#define ANALYSIS_DOES(NAME, CALL)                                                                  \
    static int NAME(struct report *r)                                                              \
    {                                                                                              \
        return CALL;                                                                               \
    }
#define ANALYSIS_HEARS(NAME, CONSUMER)                                                             \
    static unsigned NAME(struct report *r, struct consumer *list)                                  \
    {                                                                                              \
        *list = CONSUMER;                                                                          \
        return 1;                                                                                  \
    }
#define ANALYSIS_FREES(NAME, CALL)                                                                 \
    static void NAME(struct report *r)                                                             \
    {                                                                                              \
        CALL;                                                                                      \
    }

#define MAKES(name, member) extern const struct analysis name##_analysis;
#include "analyse/analyses.def"

/*
 * The steps of report_make, for those who walk otherwise: begins what `wish` has, of *r, which has
 * `histogram_rows`, and a walk if there is one already; walks, and `first` is told of each slice
 * before all others; and ends. 0, WALK_STOP or an error, which report_walk says, and report_end
 * says as `verb`. report_release in any case.
 */
int report_begin(struct report *r, struct recording *rec, const struct report_wish *wish);
int report_walk(struct report *r, const struct consumer *first);
int report_end(struct report *r, const char *verb);

bool report_wants_steps(const struct report *r);

/* What nobody can see (enum report_part), since no record of the recording has anything of it. */
unsigned report_parts_absent(const struct recording *rec);

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

#endif
