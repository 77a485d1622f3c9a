/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the hosts of a recording on one clock. They begin with their wall clocks; then the ends of
 * collectives in which two of them took part (collective_ends.h) tell how one's clock runs against
 * the other's (clock_fit.h). The reference is the host of the first process; who has no collective
 * with it may have some with a host that has. Hosts without any keep their wall clocks.
 *
 * A recording of one host is neither read nor changed. Memory: 40 MiB while it is
 * done, and what timeline.h needs for one process.
 */
#ifndef GPUPROF_COLLECTOR_HOST_CLOCKS_H
#define GPUPROF_COLLECTOR_HOST_CLOCKS_H

#include "base/options.h"
#include "read/recording.h"

/*
 * To be done before anything else is made of `rec`. EXIT_OK; or, after one line on stderr that
 * begins with `verb`, EXIT_USAGE: what a host has recorded contradicts itself, and nobody said that
 * the wall clocks are to be taken; or EXIT_ENVIRONMENT.
 */
enum exit_code host_clocks_align(struct recording *rec, enum clock_choice choice, const char *verb);

#endif
