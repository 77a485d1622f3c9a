/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpuprof itself cost a process, as the library measured it, and what it gave up to cost less.
 * From COST, COST_SUM and STEP_DOWN records; the last of each kind counts.
 */
#ifndef GPUPROF_COLLECTOR_COST_TABLE_H
#define GPUPROF_COLLECTOR_COST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"
#include "record.h"
#include "record/clock_map.h"
#include "record/thread_table.h"

#define STEPS_DOWN_MAX       32
#define STEP_DOWN_TEXT_BYTES 96
#define COST_SUM_ARG_COUNT   (COST_SUM_BUDGET + 1)
#define COST_PER_MILLION     1000000.0

struct cost_row {
    uint64_t count;
    uint64_t timed;
    uint64_t total_ns;
    uint64_t unmeasured; /* part of `count` with unknown cost */
};

struct step_down {
    uint16_t step;     /* enum ladder_step, or one of a later version */
    uint64_t begin_ns; /* on the process's scale */
    uint64_t share;    /* parts per million, measured; `budget` is the allowed share */
    uint64_t budget;
    char text[STEP_DOWN_TEXT_BYTES]; /* as in the file, not sanitized */
};

struct cost_table {
    struct cost_row rows[COST_COUNT];
    uint64_t sum[COST_SUM_ARG_COUNT]; /* enum cost_sum_argument; all 0: not measured */
    uint32_t worst_tid; /* tid of COST_SUM_WORST_THREAD, once threads are known; or 0 */
    char worst_name[THREAD_NAME_BYTES_MAX + 1];
    struct step_down *steps; /* owned */
    uint32_t step_count;
};

/* Takes a record of these types; ignores others and invalid ones. */
void cost_table_take(struct cost_table *t, const struct record *r);
void cost_table_release(struct cost_table *t);

/* First time of a step of the ladder, on the process's scale; UINT64_MAX: never. */
uint64_t cost_table_step_ns(const struct cost_table *t, enum ladder_step step);

/*
 * The time from which calls may lack a correlation id, or may not be recorded; UINT64_MAX: never.
 */
uint64_t cost_table_untied_ns(const struct cost_table *t);

/* Whether nothing was measured that costs time on the program's threads. */
bool cost_table_is_blind(const struct cost_table *t);

/* A share, at most 1; 0 if not known. */
double cost_share(uint64_t part_ns, uint64_t whole_ns);

/*
 * Blind times: a process recorded calls, but no GPU activity, because another CUPTI client had the
 * records (NOTE) or they were given up to cost less (STEP_DOWN). Memory: 16 bytes for each change,
 * BLIND_CHANGES_MAX at most; later ones are ignored.
 */
#define BLIND_CHANGES_MAX (1u << 16)

struct blind_change {
    uint64_t ns; /* on the process's scale */
    bool is_blind;
};

struct blind_times {
    struct blind_change *changes; /* owned; in reading order */
    uint32_t count;
};

struct blind_time {
    uint64_t begin_ns; /* in shared time */
    uint64_t end_ns;   /* UINT64_MAX: until the process ended */
};

/* Takes a record of these types; ignores those that say something else. */
void blind_times_take(struct blind_times *t, const struct record *r);
void blind_times_release(struct blind_times *t);

/* Writes them to a list that the caller frees. Returns the number. */
uint32_t blind_times_find(struct blind_times *t, struct clock_map *clock,
                          struct blind_time **times);

#endif
