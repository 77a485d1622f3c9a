/* SPDX-License-Identifier: Apache-2.0 */
#include "model/clock_fit.h"

#include <math.h>
#include <stdlib.h>

#include "error.h"

#define BINS_MAX    CLOCK_KNOTS_MAX
#define BIN_SAMPLES 16 /* of a knot, at least */
#define KNOTS_MIN   4
#define PASSES      4

#define MAD_SIGMA    1.4826 /* of normal errors: their deviation over the median of their sizes */
#define MEDIAN_ERROR 1.2533 /* likewise: the error of a median over that of a mean */
#define CUT_SIGMAS   4.0    /* farther off, and it does not agree */
#define RESOLUTION   500.0  /* ns, of the moments themselves */
#define SIGMA_MIN    200.0

#define SLOPE_UNKNOWN   5e-5 /* known worse than this, a slope is not known ... */
#define SLOPE_USUAL     1e-4 /* ... and less than this: quartz is no worse */
#define SLOPE_MAX       1e-3
#define WANDER          1e-7 /* by how much a rate changes where nothing was seen */
#define SPREAD_MAX      1e6
#define UNCERTAINTY_MAX 1e15
#define USED_MIN        (2.0 / 3)

/* One fit under way. */
struct fitting {
    struct clock_fit *fit;
    const struct clock_sample *samples; /* sorted by time */
    uint32_t count;
    double *scratch; /* room for as many numbers */
};

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static int compare_samples(const void *left, const void *right)
{
    const struct clock_sample *a = left;
    const struct clock_sample *b = right;
    int order = compare_doubles(&a->at_ns, &b->at_ns);
    return order ? order : compare_doubles(&a->gap_ns, &b->gap_ns);
}

/* Puts them into order. */
static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
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
    return median(g->scratch, end - first);
}

/* Of those from `first` to `end`, around `center`. */
static double spread_around(const struct fitting *g, uint32_t first, uint32_t end, double center)
{
    for (uint32_t i = first; i < end; i++)
        g->scratch[i - first] = fabs(residual(g, i) - center);
    return fmax(SIGMA_MIN, MAD_SIGMA * median(g->scratch, end - first));
}

/* Bin `bin` of `bins` are the samples from this one on; of `bins` itself, the end. */
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

static void set_slope(struct clock_fit *f, double slope)
{
    f->first_slope = f->last_slope = slope;
}

/* Theil and Sen's line, through the medians of bins, added to the line that is there. */
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
        set_slope(g->fit, g->fit->last_slope + median(slopes, count));
    g->fit->knots[0].gap_ns += median_residual(g, 0, g->count);
}

/* The line of least squares through those that agree; false: it has no slope. */
static void refine_line(struct fitting *g, double *level_error, double *slope_error)
{
    struct clock_fit *f = g->fit;
    double center = median_residual(g, 0, g->count);
    double at = 0, gap = 0, square = 0, product = 0;
    f->spread_ns = spread_around(g, 0, g->count, center);
    double cut = CUT_SIGMAS * f->spread_ns + RESOLUTION;
    f->used = 0;
    for (uint32_t i = 0; i < g->count; i++)
        if (fabs(residual(g, i) - center) <= cut) {
            f->used++;
            at += (g->samples[i].at_ns - at) / f->used;
            gap += (residual(g, i) - gap) / f->used;
        }
    for (uint32_t i = 0; i < g->count; i++)
        if (fabs(residual(g, i) - center) <= cut) {
            square += (g->samples[i].at_ns - at) * (g->samples[i].at_ns - at);
            product += (g->samples[i].at_ns - at) * (residual(g, i) - gap);
        }
    double level = clock_fit_gap(f, at) + gap;
    *level_error = f->spread_ns / sqrt(f->used);
    *slope_error = square > 0 ? fmax(f->spread_ns, 2 * RESOLUTION) / sqrt(square) : SLOPE_USUAL;
    set_slope(f, f->last_slope + (square > 0 ? product / square : 0));
    f->knots[0] = (struct clock_sample){at, level};
}

static void fit_line(struct fitting *g, double from_ns, double to_ns)
{
    struct clock_fit *f = g->fit;
    double level_error = 0, slope_error = 0;
    const struct clock_sample *first = g->samples, *last = &g->samples[g->count - 1];
    f->knot_count = 1;
    f->knots[0] = (struct clock_sample){first->at_ns / 2 + last->at_ns / 2, 0};
    for (unsigned i = 0; i < PASSES; i++)
        add_robust_line(g);
    for (unsigned i = 0; i < PASSES; i++)
        refine_line(g, &level_error, &slope_error);
    if (slope_error > SLOPE_UNKNOWN) {
        set_slope(f, 0);
        slope_error = SLOPE_USUAL;
        f->knots[0].gap_ns += median_residual(g, 0, g->count);
    }
    double reach = fmax(fmax(f->knots[0].at_ns - from_ns, to_ns - f->knots[0].at_ns), 0);
    double beyond = fmax(fmax(first->at_ns - from_ns, to_ns - last->at_ns), 0);
    f->uncertainty_ns =
        f->spread_ns + 2 * level_error + 2 * slope_error * reach + WANDER * beyond + RESOLUTION;
}

/* How far off a knot is from the line between its neighbours, at most: four times what a line
 * between knots is off from what is between them. */
static double bend_of(const struct clock_fit *f)
{
    double most = 0;
    for (uint32_t i = 1; i + 1 < f->knot_count; i++) {
        struct clock_fit without = {.knot_count = 2, .knots = {f->knots[i - 1], f->knots[i + 1]}};
        most = fmax(most, fabs(f->knots[i].gap_ns - clock_fit_gap(&without, f->knots[i].at_ns)));
    }
    return most;
}

static double slope_between(const struct clock_sample *a, const struct clock_sample *b)
{
    return (b->gap_ns - a->gap_ns) / (b->at_ns - a->at_ns);
}

/* Knots at the medians of so many bins, around the line that is there; how far off that is, at
 * most, and how far off a knot may be. False: there is no time between two of them. */
static bool lay_knots(const struct fitting *g, uint32_t bins, struct clock_fit *bent, double *off,
                      double *error)
{
    double spreads[CLOCK_KNOTS_MAX];
    *bent = *g->fit;
    *off = 0;
    for (uint32_t i = 0; i < bins; i++) {
        uint32_t first = bin_first(g, i, bins), end = bin_first(g, i + 1, bins);
        double at = bin_time(g, first, end), median_off = median_residual(g, first, end);
        if (i && at <= bent->knots[i - 1].at_ns)
            return false;
        spreads[i] = spread_around(g, first, end, median_off);
        bent->knots[i] = (struct clock_sample){at, clock_fit_gap(g->fit, at) + median_off};
        *off = fmax(*off, fabs(median_off));
    }
    const struct clock_sample *last = &bent->knots[bins - 1];
    bent->knot_count = bins;
    bent->first_slope = slope_between(&bent->knots[0], &bent->knots[1]);
    bent->last_slope = slope_between(last - 1, last);
    *error = MEDIAN_ERROR * median(spreads, bins) / sqrt(g->count / bins);
    return true;
}

/* A rate that changes with the temperature, or is steered by the time server: knots follow it, as
 * few as will do. */
static void bend(struct fitting *g, double from_ns, double to_ns)
{
    struct clock_fit *f = g->fit, bent;
    double off, error;
    uint32_t most = g->count / BIN_SAMPLES < BINS_MAX ? g->count / BIN_SAMPLES : BINS_MAX;
    if (most < KNOTS_MIN || !lay_knots(g, most, &bent, &off, &error) ||
        off <= CUT_SIGMAS * error + RESOLUTION)
        return;
    for (uint32_t bins = KNOTS_MIN; bins < most; bins *= 2) {
        struct clock_fit fewer;
        double fewer_error;
        if (lay_knots(g, bins, &fewer, &off, &fewer_error) && bend_of(&fewer) / 4 <= fewer_error) {
            bent = fewer;
            error = fewer_error;
            break;
        }
    }
    *f = bent;
    f->spread_ns = spread_around(g, 0, g->count, 0);
    f->used = 0;
    for (uint32_t i = 0; i < g->count; i++)
        f->used += fabs(residual(g, i)) <= CUT_SIGMAS * f->spread_ns + RESOLUTION;
    const struct clock_sample *last = &f->knots[f->knot_count - 1];
    double beyond = fmax(fmax(f->knots[0].at_ns - from_ns, to_ns - last->at_ns), 0);
    double turn = fmax(fabs(f->first_slope - slope_between(&f->knots[1], &f->knots[2])),
                       fabs(f->last_slope - slope_between(last - 2, last - 1)));
    f->uncertainty_ns =
        f->spread_ns + 3 * error + bend_of(f) / 4 + (turn + WANDER) * beyond + RESOLUTION;
}

int clock_fit_make(struct clock_fit *f, struct clock_sample *samples, uint32_t count,
                   double from_ns, double to_ns)
{
    struct fitting g = {.fit = f, .samples = samples, .count = count};
    *f = (struct clock_fit){.count = count};
    g.scratch = malloc(count * sizeof *g.scratch);
    if (!g.scratch)
        return GPUPROF_NO_MEMORY;
    qsort(samples, count, sizeof *samples, compare_samples);
    fit_line(&g, from_ns, to_ns);
    bend(&g, from_ns, to_ns);
    free(g.scratch);
    return 0;
}

bool clock_fit_is_sane(const struct clock_fit *f)
{
    for (uint32_t i = 0; i + 1 < f->knot_count; i++)
        if (fabs(slope_between(&f->knots[i], &f->knots[i + 1])) > SLOPE_MAX)
            return false;
    return fabs(f->last_slope) <= SLOPE_MAX && f->spread_ns <= SPREAD_MAX &&
           f->uncertainty_ns < UNCERTAINTY_MAX && f->used >= USED_MIN * f->count;
}
