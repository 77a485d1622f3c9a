/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the hosts of a recording on one clock. Initially each has its wall clock; then the ends of
 * collectives between two hosts show how their clocks differ (clock_fit.h). Only collectives that
 * end after all ranks have arrived are used (all-reduce and the like), since they end at nearly one
 * moment; not broadcasts or messages. They are matched by communicator and each rank's call number.
 * The reference is the first process's host; other hosts are aligned to it directly, or through
 * hosts that are. Hosts without collectives, or without recorded NCCL calls, keep their wall
 * clocks. Does not read or change a recording of one host.
 *
 * Memory meanwhile: 40 bytes an end, up to ENDS_MAX, and what event_walk.h needs for one process.
 * If there are more collectives, the first ENDS_FIRST of each communicator are stored, and a sample
 * of the others, the same on all ranks, spread over the whole time.
 */
#ifndef GPUPROF_COLLECTOR_HOST_CLOCKS_H
#define GPUPROF_COLLECTOR_HOST_CLOCKS_H

#include "base/options.h"
#include "read/recording.h"

#define ENDS_MAX   (1u << 19)
#define ENDS_FIRST 64

/*
 * Call it before anything else uses `rec`. Returns EXIT_OK, or after one line on stderr that begins
 * with `verb`: EXIT_USAGE if a host's records contradict each other (and wall clocks were not
 * requested), or EXIT_ENVIRONMENT.
 */
enum exit_code host_clocks_align(struct recording *rec, enum clock_choice choice, const char *verb);

#endif
