/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a process of its own, which may crash or hang, with what it has found out in memory that
 * both share: what it had written before its end stays. */
#ifndef GPUPROF_COLLECTOR_ASIDE_H
#define GPUPROF_COLLECTOR_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Does work(result, context) with standard input, output and error from and to /dev/null, and ends
 * it after `seconds`. `result` has `bytes` that the process begins with and that come back. False:
 * it did not come to its end.
 */
bool aside_run(void (*work)(void *result, void *context), void *result, size_t bytes, void *context,
               unsigned seconds);

#endif
