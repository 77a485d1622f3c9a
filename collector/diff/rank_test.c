/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"

#define DRAWS     2000
#define PAIRS_MAX (RUNS_MAX * RUNS_MAX)

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
static struct rank_sums sums_make(const uint32_t *ranks, uint32_t all, uint32_t count)
{
    struct rank_sums s = {.most = 0};
    for (uint32_t i = 0; i < all; i++)
        s.most += ranks[i];
    size_t width = s.most + 1u;
    double *ways = memory_new((count + 1u) * width, sizeof *ways);
    s.chances = memory_new(width, sizeof *s.chances);
    ways[0] = 1;
    for (uint32_t i = 0; i < all; i++)
        for (uint32_t k = i + 1 < count ? i + 1 : count; k > 0; k--)
            for (size_t sum = ranks[i]; sum < width; sum++)
                ways[k * width + sum] += ways[(k - 1) * width + sum - ranks[i]];
    double total = 0;
    for (size_t sum = 0; sum < width; sum++)
        total += ways[count * width + sum];
    for (size_t sum = 0; sum < width; sum++)
        s.chances[sum] = ways[count * width + sum] / total;
    free(ways);
    return s;
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

/* ---- the test -------------------------------------------------------------------------------- */

/* Returns twice the number of smaller values plus the number of equal ones. */
static uint32_t place_among(double value, const double *list, uint32_t count)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++)
        place += list[i] < value ? 2 : list[i] == value;
    return place;
}

static void find_p(struct metric_change *change, const struct rank_groups *g)
{
    uint32_t ranks[2 * RUNS_MAX] = {0}, sum = 0, all = 0;
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < g->counts[side]; i++) {
            double value = g->lists[side][i];
            ranks[all] = place_among(value, g->lists[0], g->counts[0]) +
                         place_among(value, g->lists[1], g->counts[1]) + 1;
            sum += side == 0 ? ranks[all] : 0;
            all++;
        }
    struct rank_sums sums = sums_make(ranks, all, g->counts[0]);
    change->p = chance_between(&sums, sum, sums.most);
    change->p_better = chance_between(&sums, 0, sum);
    free(sums.chances);
}

/* Fills `list` with all differences; returns their number. */
static uint32_t differences(const struct rank_groups *g, double list[PAIRS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->counts[0]; i++)
        for (uint32_t k = 0; k < g->counts[1]; k++)
            list[count++] = g->lists[0][i] - g->lists[1][k];
    return count;
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

/* Returns the standard deviation within the groups. */
static double noise_of(const struct rank_groups *g)
{
    double squares = 0;
    for (unsigned side = 0; side < 2; side++) {
        double mean = 0;
        for (uint32_t i = 0; i < g->counts[side]; i++)
            mean += g->lists[side][i] / g->counts[side];
        for (uint32_t i = 0; i < g->counts[side]; i++)
            squares += (g->lists[side][i] - mean) * (g->lists[side][i] - mean);
    }
    return sqrt(squares / ((double)g->counts[0] + g->counts[1] - 2));
}

/* Returns the smallest shift that the test finds with a chance of RANK_POWER: it finds one when all
 * pairs but the allowed ones are the right way round, and the median difference exceeds the
 * threshold. A shift is added to all differences. */
static double smallest_shift(const struct rank_groups *g, uint32_t allowed, double threshold)
{
    struct rank_groups drawn = {.counts = {g->counts[0], g->counts[1]}};
    double found[DRAWS], list[PAIRS_MAX], noise = noise_of(g);
    uint64_t state = 1;
    for (unsigned i = 0; i < DRAWS; i++) {
        for (unsigned side = 0; side < 2; side++)
            for (uint32_t k = 0; k < g->counts[side]; k++)
                drawn.lists[side][k] = noise * normal(&state);
        double by_size = threshold - array_median(list, differences(&drawn, list));
        found[i] = fmax(-list[allowed], by_size);
    }
    array_sort(found, DRAWS);
    return found[(unsigned)(RANK_POWER * DRAWS)];
}

void rank_compare(struct metric_change *change, const struct rank_groups *g, double alpha,
                  double threshold)
{
    double list[PAIRS_MAX], reached, ignored;
    uint32_t ranks[2 * RUNS_MAX] = {0}, all = g->counts[0] + g->counts[1];
    for (uint32_t i = 0; i < all; i++)
        ranks[i] = 2 * (i + 1);
    struct rank_sums untied = sums_make(ranks, all, g->counts[0]);
    find_p(change, g);
    int64_t allowed = pairs_allowed(&untied, g->counts[0], (1 - RANK_COVERAGE) / 2, &reached);
    uint32_t cut = allowed < 0 ? 0 : (uint32_t)allowed, pairs = differences(g, list);
    change->shift = array_median(list, pairs);
    change->low = list[cut];
    change->high = list[pairs - 1 - cut];
    change->coverage = fmax(
        0, 1 - 2 * (allowed < 0 ? untied.chances[g->counts[0] * (g->counts[0] + 1)] : reached));
    allowed = pairs_allowed(&untied, g->counts[0], alpha, &ignored);
    free(untied.chances);
    change->smallest =
        allowed < 0 || all < 3 ? INFINITY : smallest_shift(g, (uint32_t)allowed, threshold);
}
