/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two sides, each a set of runs, and decides whether the new one is worse, by the rules of
 * formats/answers.md. A run is one observation, since its steps depend on each other. The threshold
 * is half of the gate, the smallest regression to find, so that a regression of that size is found
 * nearly always. The size of a shift is not tested, only that there is one.
 */
#ifndef GPUPROF_COLLECTOR_COMPARISON_H
#define GPUPROF_COLLECTOR_COMPARISON_H

#include "base/options.h"
#include "diff/run_summary.h"

/*
 * The highest chance that equal runs fail: each metric that has noise and gates gets an equal share
 * (Bonferroni). Usually these are three. Four runs a side can then show a regression (1/70 <=
 * 0.045/3), five with one pair the wrong way round (2/252). Two such pairs (4/252) would need 0.048
 * or more, which fails twice as often.
 */
#define COMPARISON_ALPHA      0.045
#define COMPARISON_RUNS_MIN   4 /* a side; three against three prove nothing (p >= 0.05) */
#define RANK_COVERAGE         0.95
#define COMPARISON_LINES      24
#define COMPARISON_LINE_BYTES 512
#define HEADLINE_BYTES        1024
#define CHANGE_CELL_BYTES     48

enum verdict {
    VERDICT_SAME,  /* no regression shown, and one of the gate's size would have been found */
    VERDICT_WORSE, /* a regression */
    VERDICT_BETTER,
    VERDICT_UNSURE,
    VERDICT_ABSENT, /* no run has the metric */
};

/* Shares are relative to the old side: 0.05 for 5 % more. */
struct metric_change {
    enum verdict verdict;
    bool is_exact;
    double medians[2]; /* of the new runs, and of the old ones */
    double shift;      /* NAN: not known; INFINITY: from nothing to something */
    double low, high;  /* the shift lies between them with certainty `coverage`; NAN: not known */
    double coverage;   /* at least RANK_COVERAGE if there are enough runs */
    double p;          /* chance of so large an increase in equal runs; NAN: not judged by rank */
    double p_better;   /* of so large a decrease; both include ties */
    double smallest;   /* smallest shift that would have been found; 0: any; INFINITY: none */
    const char *why;   /* of VERDICT_UNSURE */
    bool gates;        /* a regression of the metric fails the run */
};

/* The same as text. A cell is "" if not known, or if it compares runs that cannot be compared. */
struct change_cells {
    const char *name;                 /* of the metric, for runs with or without steps */
    const char *of;                   /* what `shift` is a share of; NULL: the metric itself */
    const char *word;                 /* the verdict */
    char sides[2][CHANGE_CELL_BYTES]; /* medians, in the order of comparison.sides */
    char shift[CHANGE_CELL_BYTES];
    char interval[CHANGE_CELL_BYTES];
    char smallest[CHANGE_CELL_BYTES];
    char verdict[CHANGE_CELL_BYTES]; /* with its reason */
};

enum comparison_result { RESULT_SAME, RESULT_WORSE, RESULT_UNSURE, RESULT_NOT_COMPARABLE };

struct comparison_lines {
    char texts[COMPARISON_LINES][COMPARISON_LINE_BYTES];
    uint32_t count;
};

struct comparison {
    const struct run_set *sides[2]; /* views: the new runs, and the old ones */
    double gate;                    /* 0.05 */
    double threshold;
    struct metric_change metrics[RUN_METRICS];
    struct change_cells cells[RUN_METRICS];
    enum comparison_result result;
    char headline[HEADLINE_BYTES];   /* the result in one sentence */
    const char *per_what;            /* "a step", or "a run" unless both sides have steps */
    struct comparison_lines reasons; /* why the sides cannot be compared */
    bool insists;                    /* compare them nevertheless */
    struct comparison_lines notes;   /* facts that the reader should know */
    bool fails_unsure;               /* set by the caller: an unsure result is a failure */
};

/* Compares the sides, which must stay valid and have runs. */
void comparison_make(struct comparison *c, const struct run_set *runs,
                     const struct run_set *against, double gate, bool insists);

/* Sets the texts of a comparison whose result is known. (diff_print.c) */
void change_cells_fill(struct comparison *c);

/*
 * Matches the kernels of both sides, to explain a comparison. They do not gate: of hundreds some
 * always differ. Rarely launched names match only by the whole name: a few launches fall on either
 * side of a step's border by chance. Takes n log n steps for n kernels, and 300 bytes of memory for
 * each beside three copies of their names. (kernel_match.c)
 */
#define SELDOM_RATE 0.1 /* launches a step: a name with fewer is rare */

enum match_kind {
    MATCH_SAME,     /* the same name; `by` says how */
    MATCH_RENAMED,  /* one name for one; this and the next three have `place` */
    MATCH_FUSED,    /* several names became fewer */
    MATCH_SPLIT,    /* fewer names became more */
    MATCH_REPLACED, /* several names became as many */
    MATCH_NEW,
    MATCH_GONE,
    MATCH_SELDOM, /* on one side only, and too few launches to be new or gone */
    MATCH_KINDS
};

enum match_which { MATCH_BASE, MATCH_OTHER, MATCH_SIDES };

struct match_row {
    enum match_kind kind;
    const char *by;      /* for MATCH_SAME: "exact" or "template" */
    enum run_text where; /* for RENAMED to REPLACED: what agrees */
    const char *place;   /* a view; NULL: no place agrees */
    double added_ns;     /* to a step */
    struct {
        const char *name;    /* a view: the longest-running name, as shown; NULL: none */
        uint32_t names;      /* number of different names */
        double count;        /* launches in a step */
        double ns;           /* in a step */
        uint64_t longest_ns; /* time of `name` in all steps */
    } side[MATCH_SIDES];
};

struct kernel_match {
    const struct run_kernels *sides[MATCH_SIDES]; /* views */
    struct match_row *rows; /* owned; those that change a step's time most come first */
    uint32_t count;
    struct match_name *names; /* owned */
    uint32_t name_count;
    uint32_t name_width; /* width of names in text, set by the caller; 0: not cut */
};

/* Matches kernels in the order of run_kernels_order; 0 steps count as 1. The sides must stay valid.
 */
void kernel_match_make(struct kernel_match *m, const struct run_kernels *base,
                       const struct run_kernels *other);
void kernel_match_release(struct kernel_match *m);

/*
 * Prints a comparison, which `kernels` explain: text for people, JUnit for test viewers, JSON for
 * programs. Text from recordings is made harmless to terminals and browsers.
 */
typedef void diff_print_fn(const struct comparison *c, const struct kernel_match *kernels,
                           FILE *out);
diff_print_fn diff_print_text, diff_print_junit, diff_print_json;

static inline bool diff_compares(const struct comparison *c)
{
    return c->result != RESULT_NOT_COMPARABLE;
}

/* ---- the verb `diff` ---- */

/* In the order of --format; then what to do if the result is inconclusive. */
enum diff_format { DIFF_TEXT, DIFF_JUNIT, DIFF_JSON, DIFF_HTML, DIFF_BY_NAME };
enum inconclusive_use { INCONCLUSIVE_PASSES, INCONCLUSIVE_FAILS, INCONCLUSIVE_SAID };

#define OUTPUTS_MAX 8

struct diff_options {
    const char *folder; /* with baselines; NULL: not given */
    const char *save;   /* name or file of the baseline to make; NULL: compare */
    bool is_list;       /* list the baselines */
    double gate;        /* 0.05 for 5 % */
    enum inconclusive_use inconclusive;
    bool force;
    enum diff_format format;          /* DIFF_BY_NAME: by the end of the file's name */
    const char *outputs[OUTPUTS_MAX]; /* each in the format of its name */
    int output_count;
};

#define DIFF_OPTIONS_USUAL                                                                         \
    .gate = 0.05 /* as its help says */, .inconclusive = INCONCLUSIVE_SAID, .format = DIFF_BY_NAME

extern const struct option diff_options[];

/* Compares, and returns the exit code of diff: 0 no regression shown, 1 a regression, 2 usage or
 * failure, 3 inconclusive or not comparable. `page` prints HTML. */
enum exit_code diff_run(const struct options *options, diff_print_fn *page);

#endif
