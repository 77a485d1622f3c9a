/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a process recorded its calls and nothing of what its devices did: another client of CUPTI's
 * had their records (NOTE), or they were given up to cost less (STEP_DOWN). Memory: 16 bytes for
 * each change, of which there are BLIND_CHANGES_MAX; later ones are not known.
 */
#ifndef GPUPROF_COLLECTOR_BLIND_TIMES_H
#define GPUPROF_COLLECTOR_BLIND_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "record/clock_map.h"

#define BLIND_CHANGES_MAX (1u << 16)

struct blind_change {
    uint64_t ns; /* on the process's scale */
    bool is_blind;
};

struct blind_times {
    struct blind_change *changes; /* owned; in the order in which they were read */
    uint32_t count;
};

struct blind_time {
    uint64_t begin_ns; /* in the time that all share */
    uint64_t end_ns;   /* UINT64_MAX: it was so until the process's end */
};

/* Takes a record of these types; those that say something else change nothing. */
void blind_times_take(struct blind_times *t, const struct record *r);
void blind_times_release(struct blind_times *t);

/* All of them, one behind the other, for the caller to free: how many, or GPUPROF_NO_MEMORY. */
int64_t blind_times_find(const struct blind_times *t, struct clock_map *clock,
                         struct blind_time **times);

#endif
