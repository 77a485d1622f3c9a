/* SPDX-License-Identifier: Apache-2.0 */
/* When to record, as `gpuprof run` accepts it and the library applies it: which steps (--schedule),
 * and which range of the program (--capture-range). */
#ifndef GPUPROF_FORMATS_SCHEDULE_H
#define GPUPROF_FORMATS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_STEPS_MAX                                                                         \
    ((uint64_t)1 << 40) /* of each of its numbers: sums stay far from 2^64                         \
                         */

/* In steps, as in torch.profiler.schedule. */
struct schedule {
    uint64_t skip_first;
    uint64_t wait;
    uint64_t warmup;
    uint64_t active; /* 0: not given */
    uint64_t repeat; /* cycles; 0: for ever */
    uint64_t skip_first_wait;
};

/* torch.profiler.ProfilerAction. */
enum schedule_action { SCHEDULE_NONE, SCHEDULE_WARMUP, SCHEDULE_RECORD, SCHEDULE_RECORD_AND_SAVE };

/* Parses "wait=1,warmup=1,active=3,..." in any order, or "10-20": these steps once, after one
 * warm-up step. Returns false if it is neither; *s is undefined then. */
bool schedule_parse(const char *text, struct schedule *s);

/* Returns the action for the step with this number, from 0. *cycle: its cycle, from 1; 0 if the
 * action is NONE. */
enum schedule_action schedule_action(const struct schedule *s, uint64_t step, uint64_t *cycle);

/* What opens and closes a window: calls of cudaProfilerStart and cudaProfilerStop, or an NVTX
 * range. */
enum capture_kind { CAPTURE_NONE, CAPTURE_PROFILER, CAPTURE_NVTX };

struct capture {
    enum capture_kind kind;
    const char *name; /* borrowed: name of an NVTX range ... */
    unsigned name_bytes;
    const char *domain; /* ... and its domain: NULL: the default one, "*": any */
};

/* Parses "cudaProfilerApi", "nvtx:NAME", "nvtx:NAME@DOMAIN", or "" for none. */
bool capture_parse(const char *text, struct capture *c);

/* At the range's end, recording goes on, stops, may start again `count` times in total (0: any
 * number), or the process is asked to end. */
enum capture_end { CAPTURE_END_NONE, CAPTURE_END_STOP, CAPTURE_END_REPEAT, CAPTURE_END_EXIT };

/* Parses "none", "stop", "repeat", "repeat:N" or "exit". */
bool capture_end_parse(const char *text, enum capture_end *end, uint64_t *count);

#endif
