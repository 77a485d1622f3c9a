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

#endif
