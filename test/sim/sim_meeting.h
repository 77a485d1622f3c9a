/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEETING_H
#define SIM_MEETING_H

/*
 * The seam between the simulated NCCL and the simulated driver, which exports sim_meeting_next for
 * it alone: the next kernel that this thread launches writes its start into each of its own cells,
 * in memory that all ranks share, and ends a while after the last of those whose cells it awaits.
 * NULL: the next one is an ordinary kernel.
 */

#include <stdbool.h>
#include <stdint.h>

enum { MEETING_CELLS_MAX = 64 };

struct sim_meeting {
    uint64_t *own[MEETING_CELLS_MAX];
    const uint64_t *others[MEETING_CELLS_MAX]; /* 0 in a cell: has not come */
    unsigned own_count, other_count;
    bool is_endless; /* it awaits nobody and never ends */
};

typedef void sim_meeting_next_fn(const struct sim_meeting *meeting);

#endif
