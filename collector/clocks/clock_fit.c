/* SPDX-License-Identifier: Apache-2.0 */
#include "clocks/clock_fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"

#define BINS_MAX    (CLOCK_KNOTS_MAX - 1)
#define BIN_SAMPLES 16 /* least samples of a knot */
#define KNOTS_MIN   3
#define PASSES      4
#define FEW         8 /* with this few samples the spread is known to a factor of two */

#define MAD_SIGMA    1.4826 /* standard deviation / median absolute deviation of normal errors */
#define MEDIAN_ERROR 1.2533 /* likewise: a median's error / a mean's error */
#define CUT_SIGMAS   4.0    /* samples farther off do not agree */
#define RESOLUTION   500.0  /* ns, of the samples themselves */
#define SIGMA_MIN    200.0
#define SIGMA_FEW    25000.0 /* a few samples may lie on a line by chance: at least this / count */

#define SLOPE_MAX       1e-3
#define TURN_MAX        1e-5 /* largest change of the rate in an unobserved time ... */
#define TURN_USUAL      5e-7 /* ... and even in a short one: a time server steers clocks */
#define SPREAD_MAX      1e6
#define UNCERTAINTY_MAX 1e15
#define USED_MIN        (2.0 / 3)

/* A fit in progress. */
struct fitting {
    struct clock_fit *fit;
    const struct clock_sample *samples; /* sorted by time */
    uint32_t count;
    double *scratch; /* room for one number per sample */
    double from_ns;  /* begin of the requested time */
    double to_ns;
};

static int compare_samples(const void *left, const void *right)
{
    const struct clock_sample *a = left, *b = right;
    return ORDER(a->at_ns, b->at_ns) ?: ORDER(a->gap_ns, b->gap_ns);
}

double clock_fit_gap(const struct clock_fit *f, double at_ns)
{
    const struct clock_sample *k = f->knots, *last = &f->knots[f->knot_count - 1];
    if (at_ns <= k->at_ns)
        return k->gap_ns + f->first_slope * (at_ns - k->at_ns);
    if (at_ns >= last->at_ns)
        return last->gap_ns + f->last_slope * (at_ns - last->at_ns);
    while (at_ns >= k[1].at_ns)
        k++;
    return k->gap_ns + (k[1].gap_ns - k->gap_ns) * ((at_ns - k->at_ns) / (k[1].at_ns - k->at_ns));
}

static double residual(const struct fitting *g, uint32_t i)
{
    return g->samples[i].gap_ns - clock_fit_gap(g->fit, g->samples[i].at_ns);
}

static double median_residual(const struct fitting *g, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        g->scratch[i - first] = residual(g, i);
    return array_median(g->scratch, end - first);
}

/* Returns the spread of samples `first` to `end` around `center`. */
static double spread_around(const struct fitting *g, uint32_t first, uint32_t end, double center)
{
    for (uint32_t i = first; i < end; i++)
        g->scratch[i - first] = fabs(residual(g, i) - center);
    return fmax(SIGMA_MIN + SIGMA_FEW / (end - first),
                MAD_SIGMA * array_median(g->scratch, end - first));
}

/* Returns the first sample of bin `bin` of `bins`; for bin `bins`, the end. */
static uint32_t bin_first(const struct fitting *g, uint32_t bin, uint32_t bins)
{
    return (uint32_t)((uint64_t)g->count * bin / bins);
}

static double bin_time(const struct fitting *g, uint32_t first, uint32_t end)
{
    double sum = 0;
    for (uint32_t i = first; i < end; i++)
        sum += (g->samples[i].at_ns - g->samples[first].at_ns) / (end - first);
    return g->samples[first].at_ns + sum;
}

/* Adds the Theil-Sen line through the medians of bins to the current line. */
static void add_robust_line(struct fitting *g)
{
    struct clock_sample medians[BINS_MAX];
    double slopes[BINS_MAX * (BINS_MAX - 1) / 2];
    uint32_t bins = g->count < BINS_MAX ? g->count : BINS_MAX, count = 0;
    for (uint32_t i = 0; i < bins; i++) {
        uint32_t first = bin_first(g, i, bins), end = bin_first(g, i + 1, bins);
        medians[i] = (struct clock_sample){bin_time(g, first, end), median_residual(g, first, end)};
        for (uint32_t k = 0; k < i; k++)
            if (medians[i].at_ns > medians[k].at_ns)
                slopes[count++] =
                    (medians[i].gap_ns - medians[k].gap_ns) / (medians[i].at_ns - medians[k].at_ns);
    }
    if (count)
        g->fit->first_slope = g->fit->last_slope += array_median(slopes, count);
    g->fit->knots[0].gap_ns += median_residual(g, 0, g->count);
}

/* Sets the spread of the residuals, and how many samples agree with the fit. */
static void see_agreeing(struct fitting *g)
{
    struct clock_fit *f = g->fit;
    f->spread_ns = spread_around(g, 0, g->count, 0);
    f->used = 0;
    for (uint32_t i = 0; i < g->count; i++)
        f->used += fabs(residual(g, i)) <= CUT_SIGMAS * f->spread_ns + RESOLUTION;
}

/* Returns the longest time between two samples. */
static double longest_gap(const struct fitting *g)
{
    double most = 0;
    for (uint32_t i = 1; i < g->count; i++)
        most = fmax(most, g->samples[i].at_ns - g->samples[i - 1].at_ns);
    return most;
}

/* Returns how far off the fit may be in unobserved times: in `gap` ns between samples, before the
 * first and after the last. In `seen` observed ns the slope changes by at most `curve` per ns. */
static double doubt_of_unseen(const struct fitting *g, double curve, double seen, double gap)
{
    const struct clock_sample *first = g->samples, *last = &g->samples[g->count - 1];
    double beyond = fmax(fmax(first->at_ns - g->from_ns, g->to_ns - last->at_ns), 0);
    return fmin(curve * gap * gap / 8, TURN_MAX * gap / 4) + TURN_USUAL * beyond +
           fmin(curve * beyond * (beyond + seen) / 2, TURN_MAX * beyond);
}

/* Fits a line. Its uncertainty does not include unobserved times. */
static void fit_line(struct fitting *g)
{
    struct clock_fit *f = g->fit;
    const struct clock_sample *first = g->samples, *last = &g->samples[g->count - 1];
    double square = 0;
    f->knot_count = 1;
    f->knots[0] = (struct clock_sample){first->at_ns / 2 + last->at_ns / 2, 0};
    for (unsigned i = 0; i < PASSES; i++)
        add_robust_line(g);
    see_agreeing(g);
    for (uint32_t i = 0; i < g->count; i++)
        square += pow(g->samples[i].at_ns - f->knots[0].at_ns, 2);
    double level_error = MEDIAN_ERROR * f->spread_ns / sqrt(f->used);
    double slope_error = square > 0 ? fmax(f->spread_ns, 2 * RESOLUTION) / sqrt(square) : 1;
    double few = 1 + (double)FEW / g->count;
    double reach = fmax(fmax(f->knots[0].at_ns - g->from_ns, g->to_ns - f->knots[0].at_ns), 0);
    f->uncertainty_ns =
        few * (f->spread_ns + 2 * level_error + 2 * slope_error * reach) + RESOLUTION;
}

static double slope_between(const struct clock_sample *a, const struct clock_sample *b)
{
    return (b->gap_ns - a->gap_ns) / (b->at_ns - a->at_ns);
}

/*
 * Returns how far off the fit may be between two knots if the whole change of slope happened at one
 * point. `curve`: the largest change of slope per ns, less the part that knots with errors of
 * `error` explain.
 */
static double swing_of(const struct clock_fit *f, double error, double *curve)
{
    double most = 0;
    *curve = 0;
    for (uint32_t i = 1; i + 1 < f->knot_count; i++) {
        const struct clock_sample *k = &f->knots[i];
        double before = k->at_ns - k[-1].at_ns, after = k[1].at_ns - k->at_ns;
        double turn = fabs(slope_between(k, k + 1) - slope_between(k - 1, k));
        most = fmax(most, turn * fmax(before, after));
        turn = fmax(turn - 3 * error * (1 / before + 1 / after), 0);
        *curve = fmax(*curve, 2 * turn / (before + after));
    }
    return most;
}

/* Returns the end of the bin that begins with sample `first`: at least `width_ns` long. */
static uint32_t bin_end(const struct fitting *g, uint32_t first, double width_ns)
{
    uint32_t end = first + 1;
    while (end < g->count && (end - first < BIN_SAMPLES ||
                              g->samples[end].at_ns - g->samples[first].at_ns < width_ns))
        end++;
    return g->count - end < BIN_SAMPLES / 2 ? g->count : end;
}

/* Puts knots at the medians of bins, relative to the current line, into *bent. Sets the largest
 * distance from the line, and a knot's error. Returns false if there are too few, or two have the
 * same time. */
static bool lay_knots(const struct fitting *g, struct clock_fit *bent, double *off, double *error)
{
    double spreads[CLOCK_KNOTS_MAX];
    double width = (g->samples[g->count - 1].at_ns - g->samples[0].at_ns) / BINS_MAX;
    uint32_t count = 0, least = UINT32_MAX;
    *bent = *g->fit;
    *off = 0;
    for (uint32_t first = 0, end; first < g->count; first = end, count++) {
        end = bin_end(g, first, width);
        double at = bin_time(g, first, end), its = median_residual(g, first, end);
        if (count == CLOCK_KNOTS_MAX || (count && at <= bent->knots[count - 1].at_ns))
            return false;
        spreads[count] = spread_around(g, first, end, its);
        bent->knots[count] = (struct clock_sample){at, clock_fit_gap(g->fit, at) + its};
        *off = fmax(*off, fabs(its));
        least = end - first < least ? end - first : least;
    }
    bent->knot_count = count;
    *error = MEDIAN_ERROR * array_median(spreads, count) / sqrt(least);
    return count >= KNOTS_MIN;
}

/* Lets knots follow a rate that changes with temperature or a time server. */
static void bend(struct fitting *g)
{
    struct clock_fit *f = g->fit, bent;
    double curve, off = 0, error = 0, gap = longest_gap(g);
    bool has_knots = lay_knots(g, &bent, &off, &error);
    double hidden = CUT_SIGMAS * error + RESOLUTION; /* an error that the line may have */
    double seen = g->samples[g->count - 1].at_ns - g->samples[0].at_ns - gap;
    if (!has_knots || off <= hidden) {
        curve = seen > 0 ? 8 * hidden / (seen * seen) : TURN_MAX;
        f->uncertainty_ns += doubt_of_unseen(g, curve, seen, gap);
        return;
    }
    *f = bent;
    uint32_t last = f->knot_count - 1, some = (last + 1) / 4 ? (last + 1) / 4 : 1;
    const struct clock_sample *k = f->knots;
    f->first_slope = slope_between(&k[0], &k[some]); /* a quarter of the knots at each end */
    f->last_slope = slope_between(&k[last - some], &k[last]);
    see_agreeing(g);
    double swing = swing_of(f, error, &curve);
    double end = fmin(k[some].at_ns - k[0].at_ns, k[last].at_ns - k[last - some].at_ns);
    f->uncertainty_ns =
        f->spread_ns + 2 * error + 1.25 * swing + RESOLUTION + doubt_of_unseen(g, curve, end, 0);
}

/* Returns the largest rise between knots that is too steep for a running clock; 0: none. */
static double steepest_rise(const struct clock_fit *f)
{
    double most = 0, rise = 0;
    for (uint32_t i = 0; i + 1 < f->knot_count; i++) {
        bool is_steep = fabs(slope_between(&f->knots[i], &f->knots[i + 1])) > SLOPE_MAX;
        rise = is_steep ? rise + f->knots[i + 1].gap_ns - f->knots[i].gap_ns : 0;
        most = fmax(most, fabs(rise));
    }
    return most;
}

void clock_fit_make(struct clock_fit *f, struct clock_sample *samples, uint32_t count,
                    double from_ns, double to_ns)
{
    struct fitting g = {
        .fit = f, .samples = samples, .count = count, .from_ns = from_ns, .to_ns = to_ns};
    *f = (struct clock_fit){.count = count};
    g.scratch = memory_new(count, sizeof *g.scratch);
    qsort(samples, count, sizeof *samples, compare_samples);
    fit_line(&g);
    bend(&g);
    f->jump_ns = steepest_rise(f);
    f->uncertainty_ns += f->jump_ns;
    free(g.scratch);
}

bool clock_fit_is_sane(const struct clock_fit *f)
{
    return fabs(f->last_slope) <= SLOPE_MAX && f->spread_ns <= SPREAD_MAX &&
           f->jump_ns <= SPREAD_MAX && f->uncertainty_ns < UNCERTAINTY_MAX &&
           f->used >= USED_MIN * f->count;
}
