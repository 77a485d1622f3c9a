/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the hosts of a recording on one clock. Initially each has its wall clock; then the ends of
 * collectives between two hosts (collective_ends.h) show how their clocks differ (clock_fit.h). The
 * reference is the first process's host; other hosts are aligned to it directly, or through hosts
 * that are. Hosts without collectives keep their wall clocks.
 * Does not read or change a recording of one host. Memory: 40 MiB meanwhile, and what timeline.h
 * needs for one process.
 */
#ifndef GPUPROF_COLLECTOR_HOST_CLOCKS_H
#define GPUPROF_COLLECTOR_HOST_CLOCKS_H

#include "base/options.h"
#include "read/recording.h"

/*
 * Call it before anything else uses `rec`. Returns EXIT_OK, or after one line on stderr that begins
 * with `verb`: EXIT_USAGE if a host's records contradict each other (and wall clocks were not
 * requested), or EXIT_ENVIRONMENT.
 */
enum exit_code host_clocks_align(struct recording *rec, enum clock_choice choice, const char *verb);

#endif
