/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the runs of one side worse than those of the other? A run is one observation, whatever the
 * number of its steps, since these depend on each other. For each metric (run_metrics.def):
 *
 *   exact    what is no time, where all runs of a side agree, on both sides, and there are two a
 *            side at least: the difference is what it is
 *   by rank  else; worse is what is worse by more than the threshold, as estimated, and what equal
 *            runs would show with less than COMPARISON_ALPHA: of all metrics that gate together
 *            (Holm), one-sided; how much it is worse is not tested
 *
 * The threshold is half of the gate, the smallest regression that is to be found: one of that size
 * is then found nearly always. A metric with too few runs, or so much noise that a regression of
 * the gate's size could have been missed, is unsure.
 *
 * A part of the step's time (RUN_SCALE_STEP_TIME) that is worse does not gate where the step is
 * better by more: it is faster with more idle time in it.
 *
 * Times and sizes are compared as logarithms, so that a shift is a share; those of
 * RUN_SCALE_STEP_TIME as shares of the other side's median step.
 */
#ifndef GPUPROF_COLLECTOR_COMPARISON_H
#define GPUPROF_COLLECTOR_COMPARISON_H

#include "base/options.h"
#include "diff/run_summary.h"

/*
 * Chance that equal runs fail, at most. Usually three metrics have noise and gate, of which one is
 * then shown by four runs a side (1/70 <= 0.045/3), or by five with one pair the wrong way round
 * (2/252); with two such pairs (4/252) only at 0.048 and above, which fails twice as often.
 */
#define COMPARISON_ALPHA      0.045
#define COMPARISON_RUNS_MIN   4 /* a side: of three and three nothing is sure (p >= 0.05) */
#define COMPARISON_LINES      24
#define COMPARISON_LINE_BYTES 512

enum verdict {
    VERDICT_SAME,  /* no regression shown, and one of the gate's size would have been */
    VERDICT_WORSE, /* a regression */
    VERDICT_BETTER,
    VERDICT_UNSURE,
    VERDICT_ABSENT, /* no run knows it */
};
extern const char *const verdict_words[];

/* Shares are of the other side, 0.05 for 5 % more. */
struct metric_change {
    enum verdict verdict;
    bool is_exact;
    double medians[2]; /* of the runs, and of those that they are compared with */
    double shift;      /* NAN: not known; INFINITY: from nothing to something */
    double low, high;  /* it is in between, with the certainty `coverage`; NAN: not known */
    double coverage;
    double p;        /* that the runs be as much worse by chance; NAN: not by rank */
    double smallest; /* shift that would have been seen; 0: any; INFINITY: none would */
    const char *why; /* of VERDICT_UNSURE */
    bool gates;      /* a regression of it is one of the run */
};

enum comparison_result { RESULT_SAME, RESULT_WORSE, RESULT_UNSURE, RESULT_NOT_COMPARABLE };

struct comparison_lines {
    char texts[COMPARISON_LINES][COMPARISON_LINE_BYTES];
    uint32_t count;
};

struct comparison {
    const struct run_set *sides[2]; /* views: the runs, and those that they are compared with */
    double gate;                    /* 0.05 */
    double threshold;
    struct metric_change metrics[RUN_METRICS];
    enum comparison_result result;
    struct comparison_lines reasons; /* why they cannot be compared */
    bool insists;                    /* they are compared all the same */
    struct comparison_lines notes;   /* what is to be known of how they were */
    bool fails_unsure;               /* set by who has made it: what is unsure is a failure */
};

/* `sides` must stay, and have runs. 0 or GPUPROF_NO_MEMORY. */
int comparison_make(struct comparison *c, const struct run_set *runs, const struct run_set *against,
                    double gate, bool insists);

/*
 * Is one group of numbers larger than another, by how much, and how large would the difference have
 * to be to be seen? By ranks (Mann, Whitney; Hodges, Lehmann), exactly, since there are few numbers
 * and nothing is known of how they are distributed. Memory: 30 KB for
 * RUNS_MAX numbers a group. (rank_test.c)
 */
#define RANK_COVERAGE 0.95

/* Of a power, what is meant by "would have been seen". */
#define RANK_POWER 0.9

struct rank_groups {
    const double *of; /* is `of` larger than `against`? */
    uint32_t of_count;
    const double *against;
    uint32_t against_count;
};

struct rank_shift {
    double shift; /* the median of all differences: Hodges' and Lehmann's estimate */
    double low;   /* the shift is in between, with the certainty `coverage`, */
    double high;
    double
        coverage; /* which is RANK_COVERAGE at least, where the groups are large enough for that */
    double p_larger; /* that `of` be as high by chance, one-sided, ties included */
    double p_smaller;
};

/* 0 or GPUPROF_NO_MEMORY. There are 1 to RUNS_MAX numbers in each group, and all are finite. */
int rank_shift(struct rank_shift *s, const struct rank_groups *g);

/*
 * The smallest shift that a test of groups with as much noise as these finds with RANK_POWER, when
 * it says so only where p_larger <= `alpha` and the shift is above `threshold`; INFINITY: groups
 * of that size can show none. 0 or GPUPROF_NO_MEMORY.
 */
int rank_smallest(double *smallest, const struct rank_groups *g, double alpha, double threshold);

double rank_median(const double *list, uint32_t count);

/*
 * The kernels that explain a comparison. They do not gate: of hundreds some always differ. Which
 * kernels of one side are which of the other: those of the same name; else those whose names
 * are the same without template arguments, at the same place; else those at the same place alone.
 * The rest is new or gone. The place of a name is where it takes the longest.
 *
 * Names that are launched seldom are matched by their whole name only: of equal programs a few
 * launches lie this or that side of a step's border.
 *
 * The same input makes the same rows. Takes n log n steps of time for n kernels, and 300 bytes of
 * memory for each beside three copies of their names. (kernel_match.c)
 */
#define SELDOM_RATE 0.1 /* launches a step: a name with fewer is seldom */

enum match_kind {
    MATCH_SAME,     /* by `by` */
    MATCH_RENAMED,  /* one for one, and what follows: by `place` */
    MATCH_FUSED,    /* one or few for several */
    MATCH_SPLIT,    /* the other way round */
    MATCH_REPLACED, /* several for as many */
    MATCH_NEW,
    MATCH_GONE,
    MATCH_SELDOM, /* on one side alone, and too few to be new or gone */
    MATCH_KINDS
};

enum match_which { MATCH_BASE, MATCH_OTHER, MATCH_SIDES };

struct match_row {
    enum match_kind kind;
    const char *by;       /* of MATCH_SAME: "exact" or "template", which names are equal */
    enum run_place where; /* of RENAMED ... REPLACED: what agrees */
    const char *place;    /* a view; NULL: none agrees */
    struct {
        const char *name; /* a view: as it is shown, the one that takes the longest; NULL: none */
        uint32_t names;   /* how many different ones */
        uint64_t count;   /* in all steps */
        uint64_t ns;
        uint64_t longest_ns; /* of `name` */
    } side[MATCH_SIDES];
};

struct kernel_match {
    const struct run_summary *sides[MATCH_SIDES]; /* views */
    struct match_row *rows; /* owned; by how much they change a step's time, the largest first */
    uint32_t count;
    struct match_name *names; /* owned */
    uint32_t name_count;
    uint32_t name_width; /* set by who has made it: of names in a text; 0: they are not cut */
};

/* Of kernels in the order of run_kernels_order; 0 steps are taken for 1. The sides must stay. 0 or
 * GPUPROF_NO_MEMORY; kernel_match_release in both cases. */
int kernel_match_make(struct kernel_match *m, const struct run_summary *base,
                      const struct run_summary *other);
void kernel_match_release(struct kernel_match *m);

/* Time or launches a step, of a side's row. */
double match_per_step(const struct kernel_match *m, enum match_which which, uint64_t amount);

/* By how many nanoseconds a step takes longer now for what is in the row. */
double match_added(const struct kernel_match *m, const struct match_row *row);

/* "renamed": for a table and a script. */
const char *match_kind_text(enum match_kind kind);

/*
 * A comparison on paper: text for people, JUnit for what shows tests, JSON for programs. What comes
 * from recordings is cleaned of what a terminal or a browser would obey. A printer returns 0 or
 * GPUPROF_NO_MEMORY.
 */
/* `kernels` explain it. */
typedef int diff_print_fn(const struct comparison *c, const struct kernel_match *kernels,
                          FILE *out);
diff_print_fn diff_print_text, diff_print_junit, diff_print_json;

#define CHANGE_CELL_BYTES 48

/* A row of the table of metrics, as all of these but JSON have it; "" where nothing is known, and,
 * of runs that cannot be compared, of what compares them. */
struct change_cells {
    char sides[2][CHANGE_CELL_BYTES]; /* medians, of comparison.sides */
    char shift[CHANGE_CELL_BYTES];
    char interval[CHANGE_CELL_BYTES];
    char smallest[CHANGE_CELL_BYTES]; /* that would have been seen */
    char verdict[CHANGE_CELL_BYTES];
};
void change_cells_make(struct change_cells *cells, const struct comparison *c, enum run_metric m);

/* Time that something adds to a step: "+12.345 us". */
void change_put_ns(char text[CHANGE_CELL_BYTES], double ns);

/* What the metric is called, of runs with or without steps. */
const char *diff_metric_text(const struct comparison *c, enum run_metric m);

/* "a step", or, where no run or those of one side alone have steps, "a run". */
const char *diff_per_what(const struct comparison *c);

static inline bool diff_compares(const struct comparison *c)
{
    return c->result != RESULT_NOT_COMPARABLE;
}

/* What came of it in one sentence; returns `text`. */
#define HEADLINE_BYTES 1024
const char *diff_headline(const struct comparison *c, char text[HEADLINE_BYTES]);

/* What a change of that metric is a share of, if not of the metric itself; or NULL. */
const char *diff_change_of(const struct comparison *c, enum run_metric m);

/* What a change is, if it need not be that of the two sides' medians: lines; returns `text`. */
const char *diff_change_text(const struct comparison *c, char text[HEADLINE_BYTES]);

/* ---- the verbs `diff` and `baseline` ---- */

/* In the order of --format; and what is to be done where it cannot tell. */
enum diff_format { DIFF_TEXT, DIFF_JUNIT, DIFF_JSON, DIFF_HTML, DIFF_BY_NAME };
enum inconclusive_use { INCONCLUSIVE_PASSES, INCONCLUSIVE_FAILS, INCONCLUSIVE_SAID };

#define OUTPUTS_MAX 8

/* What the options say beyond those of all verbs that read recordings. */
struct diff_options {
    const char *folder; /* of baselines; NULL: not said */
    const char *save;   /* the baseline to make, a name or a file; NULL: compare */
    bool is_list;       /* list the baselines instead */
    double gate;        /* 0.05 for 5 % */
    enum inconclusive_use inconclusive;
    bool force;
    enum diff_format format;          /* DIFF_BY_NAME: as the name of the file has it */
    const char *outputs[OUTPUTS_MAX]; /* each in its own format */
    int output_count;
};

#define DIFF_OPTIONS_USUAL                                                                         \
    .gate = 0.05 /* as its help says */, .inconclusive = INCONCLUSIVE_SAID, .format = DIFF_BY_NAME

extern const struct option diff_options[];
extern const struct option baseline_folder[]; /* --dir, of a const char * */

/* Writes the runs of `paths` as a baseline: `name`, in `folder`, or, if `may_be_file` and it has a
 * slash or ends in .json, that file. */
enum exit_code baseline_save(const struct options *options, const char *name, bool may_be_file,
                             char **paths, int count, const char *folder);

/* Prints the baselines in the folder. */
enum exit_code baseline_list(const char *folder);

/* What diff ends with, for a gate: 0 no regression shown, 1 a regression, 2 usage or failure, 3
 * inconclusive or not comparable. `page` prints it as HTML. */
enum exit_code diff_run(const struct options *options, diff_print_fn *page);

#endif
