/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that worked and then made no call for long, until now or their end: a hang in code of
 * the host, as in a lock or a read, of which no record tells. One that is in a call has it among
 * the open calls, and one that others wait for among the collectives.
 *
 * Long is, where other ranks wait in a kernel of NCCL's that none of the collectives tells of, as
 * long as these must have waited: it is this one that they may wait for. Else it is QUIET_NS_MIN
 * and as long as any time between two of its calls before; of a process that ended by itself, also
 * a tenth of its life: it computes its results, or waits for others. Nothing is said of one that
 * launched and copied nothing, as what starts others does, nor where calls may have been made that
 * were not recorded.
 */
#ifndef GPUPROF_COLLECTOR_QUIET_H
#define GPUPROF_COLLECTOR_QUIET_H

#include <stdio.h>

#include "find/collectives.h"

#define QUIET_NS_MIN   5000000000u
#define QUIET_ROWS_MAX 32u /* that are kept: those that have been so longest */

struct quiet_row {
    const struct process *process;
    const struct process_place *place;
    uint64_t since_ns; /* the end of its last call */
    uint64_t for_ns;
    uint32_t node; /* of told_stacks; 0: none. This and the next by hang_finish */
    char *line;    /* owned by the hang; NULL: not known */
};

struct quiet {
    struct quiet_row rows[QUIET_ROWS_MAX]; /* the longest first */
    uint32_t count;
    uint32_t total; /* with those that are not kept */
};

/* Before the walk: may that process be one, so that its stacks are wanted? */
bool quiet_may_be(const struct process *p);

/* After the walk, and collectives_judge. */
void quiet_judge(struct quiet *q, const struct collectives *c, const struct unfinished *u);

/* "now", "killed" or "end": until when nothing is recorded of it. */
const char *quiet_until(const struct quiet_row *row);

/* A line for the summary. */
void quiet_print_summary(const struct quiet *q, uint64_t origin_ns, FILE *out);

#endif
