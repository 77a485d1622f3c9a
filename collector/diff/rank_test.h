/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is one group of numbers larger than another, by how much, and how large would the difference have
 * to be to be seen? By ranks (Mann, Whitney; Hodges, Lehmann), exactly, since there are few numbers
 * and nothing is known of how they are distributed. Memory: 30 KB for RANKS_MAX numbers a group.
 */
#ifndef GPUPROF_COLLECTOR_RANK_TEST_H
#define GPUPROF_COLLECTOR_RANK_TEST_H

#include <stdint.h>

#define RANKS_MAX     50 /* numbers of a group */
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

/* 0 or GPUPROF_NO_MEMORY. There are 1 to RANKS_MAX numbers in each group, and all are finite. */
int rank_shift(struct rank_shift *s, const struct rank_groups *g);

/*
 * The smallest shift that a test of groups with as much noise as these finds with RANK_POWER, when
 * it says so only where p_larger <= `alpha` and the shift is above `threshold`; INFINITY: groups
 * of that size can show none. 0 or GPUPROF_NO_MEMORY.
 */
int rank_smallest(double *smallest, const struct rank_groups *g, double alpha, double threshold);

double rank_median(const double *list, uint32_t count);

#endif
