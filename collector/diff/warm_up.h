/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of the first steps of a program are its warm-up (compiling, choosing of algorithms,
 * growing of pools): found as a change point, of which there may be several. One is where those
 * before it take longer than those behind it by more than WARM_UP_DEVIATIONS of what their
 * durations, as logarithms, make likely, and by WARM_UP_SHARE; and where most of those before it
 * take longer by that share than the median of the second half. All of that is of steps without
 * those, one or two in a row, that something held up: these make no warm-up of what is before them,
 * and hide none. What is more than a fifth of the steps, and more than WARM_UP_FEW of them or half
 * of all, is none: a program that becomes faster all along its run drifts, and is compared as a
 * whole.
 */
#ifndef GPUPROF_COLLECTOR_WARM_UP_H
#define GPUPROF_COLLECTOR_WARM_UP_H

#include <stdint.h>

#define WARM_UP_DEVIATIONS 5.0
#define WARM_UP_SHARE      0.02
#define WARM_UP_NOISE      0.001 /* steps that differ by less are alike */
#define WARM_UP_STEPS      5     /* of fewer steps all stay */
#define WARM_UP_PART       5     /* one in so many steps may be one */
#define WARM_UP_FEW        10    /* or so many, up to half of all: compilers take a few steps */

/* `logs`: of the durations of all steps, in their order, which are lost. `room` has `count`
 * numbers.
 */
uint32_t warm_up_steps(double *logs, uint32_t count, double *room);

#endif
