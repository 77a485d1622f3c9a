/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread did while it made no call, as a SILENCE record has it. */
#ifndef GPUPROF_COLLECTOR_SILENCE_LOOK_H
#define GPUPROF_COLLECTOR_SILENCE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct record;

#define SILENCE_ALL 1000000u

/* What a thread did in a time without a call, in millionths of it; the rest of the time it ran, or
 * nobody knows. */
struct silence_look {
    uint32_t waiting;
    uint32_t preempted;
    uint32_t unknown; /* one of these two, and nobody knows which */
};

/* The record's times are of the silence and of the calls between it and the reading before. False:
 * nobody can tell. */
bool silence_look_of(const struct record *r, struct silence_look *look);

#endif
