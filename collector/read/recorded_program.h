/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that a recording is of. */
#ifndef GPUPROF_COLLECTOR_RECORDED_PROGRAM_H
#define GPUPROF_COLLECTOR_RECORDED_PROGRAM_H

#include "base/next_words.h"
#include "read/recording.h"

/* Tells it to `w`, if it is known: where one recorded process is the parent, or theirs, of all
 * others. Of several that something else has started, as a launcher starts ranks, it is not. */
void recorded_program(const struct recording *rec, struct next_words *w);

#endif
