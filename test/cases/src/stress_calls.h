/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls as a wrapper begins and ends them, without CUDA: for programs that are built together with
 * inject/, for the sanitizers. The parts of it that meet CUDA have doubles here.
 */
#ifndef GPUPROF_TEST_STRESS_CALLS_H
#define GPUPROF_TEST_STRESS_CALLS_H

#include "hook/call.h"

extern const struct call_site stress_launch; /* of five words, the first of them a kernel */

void stress_call(const struct call_site *site, const uint64_t *words);

/* The same; `during`, in place of the real function, is called while it is open. */
void stress_call_during(const struct call_site *site, const uint64_t *words,
                        void (*during)(void *context), void *context);

/* Called, if set, when features are to follow what is recorded now. */
extern void (*stress_turned)(void);

/* Calls so far. */
unsigned long stress_count(void);

#endif
