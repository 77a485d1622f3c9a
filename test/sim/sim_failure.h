/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_FAILURE_H
#define SIM_FAILURE_H

/*
 * Failures asked for by SIMCUDA_FAIL="name:call=code,...": call numbers begin with 1, '*' is every
 * call. A name stands for itself and for its variants (_v2, _ptsz, _ptds). With the code "hang" the
 * call never returns.
 */

#include <stdbool.h>

#include "sim_log.h"

/* Returns whether there is anything to inject. */
bool sim_failure_init(const char *text);
const struct sim_failure *sim_failure_find(const char *symbol);

/* Counts this call; returns the code it must fail with, or 0. */
int sim_failure_code(struct sim_symbol *symbol);

#endif
