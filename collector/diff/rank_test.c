/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define DRAWS 2000

double rank_median(const double *list, uint32_t count)
{
    double sorted[RUNS_MAX];
    memcpy(sorted, list, count * sizeof *sorted);
    return array_median(sorted, count);
}

/* ---- the distribution of rank sums ----------------------------------------------------------- */

/* Ranks are doubled, so that the shared ranks of equal numbers are whole. */
struct rank_sums {
    double *chances; /* owned: chance of each sum */
    uint32_t most;   /* the largest sum */
};

/* Computes the chances of the sum of `count` out of `all` ranks, all choices equally likely. */
static int sums_make(struct rank_sums *s, const uint32_t *ranks, uint32_t all, uint32_t count)
{
    s->most = 0;
    for (uint32_t i = 0; i < all; i++)
        s->most += ranks[i];
    size_t width = s->most + 1u;
    double *ways = calloc((count + 1u) * width, sizeof *ways);
    s->chances = malloc(width * sizeof *s->chances);
    if (!ways || !s->chances) {
        free(ways);
        free(s->chances);
        return GPUPROF_NO_MEMORY;
    }
    ways[0] = 1;
    for (uint32_t i = 0; i < all; i++)
        for (uint32_t k = i + 1 < count ? i + 1 : count; k > 0; k--)
            for (size_t sum = ranks[i]; sum < width; sum++)
                ways[k * width + sum] += ways[(k - 1) * width + sum - ranks[i]];
    double total = 0;
    for (size_t sum = 0; sum < width; sum++)
        total += ways[count * width + sum];
    for (size_t sum = 0; sum < width; sum++)
        s->chances[sum] = ways[count * width + sum] / total;
    free(ways);
    return 0;
}

static double chance_between(const struct rank_sums *s, uint32_t from, uint32_t to)
{
    double chance = 0;
    for (uint32_t sum = from; sum <= to && sum <= s->most; sum++)
        chance += s->chances[sum];
    return chance < 1 ? chance : 1;
}

/* Returns how many pairs may be the wrong way round with a chance of at most `alpha`, if all
 * numbers differ; -1: none, not even 0. *reached is that chance. */
static int64_t pairs_allowed(const struct rank_sums *untied, uint32_t count, double alpha,
                             double *reached)
{
    uint32_t least = count * (count + 1); /* doubled ranks */
    double chance = 0;
    for (int64_t pairs = 0;; pairs++) {
        double more = chance + untied->chances[least + 2 * (uint32_t)pairs];
        if (more > alpha || least + 2 * (uint32_t)(pairs + 1) > untied->most) {
            *reached = chance;
            return pairs - 1;
        }
        chance = more;
    }
}

static int untied_make(struct rank_sums *s, uint32_t count, uint32_t other_count)
{
    uint32_t ranks[2 * RUNS_MAX] = {0};
    for (uint32_t i = 0; i < count + other_count; i++)
        ranks[i] = 2 * (i + 1);
    return sums_make(s, ranks, count + other_count, count);
}

/* ---- the test -------------------------------------------------------------------------------- */

/* Returns twice the number of smaller values plus the number of equal ones. */
static uint32_t place_among(double value, const double *list, uint32_t count)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++)
        place += list[i] < value ? 2 : list[i] == value;
    return place;
}

static int find_p(struct rank_shift *s, const struct rank_groups *g)
{
    uint32_t ranks[2 * RUNS_MAX] = {0}, sum = 0, all = g->of_count + g->against_count;
    struct rank_sums sums;
    for (uint32_t i = 0; i < all; i++) {
        double value = i < g->of_count ? g->of[i] : g->against[i - g->of_count];
        ranks[i] = place_among(value, g->of, g->of_count) +
                   place_among(value, g->against, g->against_count) + 1;
        sum += i < g->of_count ? ranks[i] : 0;
    }
    if (sums_make(&sums, ranks, all, g->of_count) < 0)
        return GPUPROF_NO_MEMORY;
    s->p_larger = chance_between(&sums, sum, sums.most);
    s->p_smaller = chance_between(&sums, 0, sum);
    free(sums.chances);
    return 0;
}

/* Fills `list` with all differences; returns their number. */
static uint32_t differences(const struct rank_groups *g, double *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->of_count; i++)
        for (uint32_t k = 0; k < g->against_count; k++)
            list[count++] = g->of[i] - g->against[k];
    return count;
}

int rank_shift(struct rank_shift *s, const struct rank_groups *g)
{
    uint32_t pairs = g->of_count * g->against_count;
    double *list = malloc(pairs * sizeof *list), reached;
    struct rank_sums untied = {NULL, 0};
    int error = list ? untied_make(&untied, g->of_count, g->against_count) : GPUPROF_NO_MEMORY;
    if (error == 0)
        error = find_p(s, g);
    if (error == 0) {
        int64_t allowed = pairs_allowed(&untied, g->of_count, (1 - RANK_COVERAGE) / 2, &reached);
        uint32_t cut = allowed < 0 ? 0 : (uint32_t)allowed;
        s->shift = array_median(list, differences(g, list));
        s->low = list[cut];
        s->high = list[pairs - 1 - cut];
        s->coverage =
            1 - 2 * (allowed < 0 ? untied.chances[g->of_count * (g->of_count + 1)] : reached);
        s->coverage = s->coverage > 0 ? s->coverage : 0;
    }
    free(untied.chances);
    free(list);
    return error;
}

/* ---- what the test could have found ---------------------------------------------------------- */

/* Draws the same numbers each time, so that a report is reproducible. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * acos(-1) * uniform(state));
}

static double squares_around_mean(const double *list, uint32_t count)
{
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++)
        mean += list[i] / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (list[i] - mean) * (list[i] - mean);
    return squares;
}

/* Returns the standard deviation within the groups. */
static double noise_of(const struct rank_groups *g)
{
    return sqrt((squares_around_mean(g->of, g->of_count) +
                 squares_around_mean(g->against, g->against_count)) /
                ((double)g->of_count + g->against_count - 2));
}

/*
 * Returns the shift from which the test finds it in this draw of noise. A shift is added to all
 * differences. The test finds it when all pairs but the allowed ones are the right way round, and
 * the median difference exceeds the threshold.
 */
static double found_from(const struct rank_groups *g, uint32_t allowed, double threshold,
                         double *list)
{
    double by_size = threshold - array_median(list, differences(g, list));
    double by_rank = -list[allowed];
    return by_rank > by_size ? by_rank : by_size;
}

static void rank_test_draw(double *list, uint32_t count, double noise, uint64_t *state)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = noise * normal(state);
}

int rank_smallest(double *smallest, const struct rank_groups *g, double alpha, double threshold)
{
    struct rank_sums untied;
    double reached, of[RUNS_MAX], against[RUNS_MAX];
    const struct rank_groups drawn = {of, g->of_count, against, g->against_count};
    uint64_t state = 1;
    *smallest = INFINITY;
    if (g->of_count + g->against_count < 3)
        return 0;
    if (untied_make(&untied, g->of_count, g->against_count) < 0)
        return GPUPROF_NO_MEMORY;
    int64_t allowed = pairs_allowed(&untied, g->of_count, alpha, &reached);
    free(untied.chances);
    if (allowed < 0)
        return 0;
    double noise = noise_of(g), *found = malloc(DRAWS * sizeof *found);
    double *list = malloc((size_t)g->of_count * g->against_count * sizeof *list);
    for (unsigned i = 0; found && list && i < DRAWS; i++) {
        rank_test_draw(of, g->of_count, noise, &state);
        rank_test_draw(against, g->against_count, noise, &state);
        found[i] = found_from(&drawn, (uint32_t)allowed, threshold, list);
    }
    if (found && list) {
        array_sort(found, DRAWS);
        *smallest = found[(unsigned)(RANK_POWER * DRAWS)];
    }
    bool is_done = found && list;
    free(found);
    free(list);
    return is_done ? 0 : GPUPROF_NO_MEMORY;
}
