/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the CPU as Perfetto has its own: packets of a perf sample, with callstacks that are
 * told once. Its viewer shows a flame graph of those in a selection. Perfetto counts samples: one
 * that stands for several is there as often. Memory: 48 to 96 bytes for each stack and frame that
 * is used.
 */
#ifndef GPUPROF_COLLECTOR_PERFETTO_SAMPLES_H
#define GPUPROF_COLLECTOR_PERFETTO_SAMPLES_H

#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "trace/track_packets.h"

struct perfetto_samples {
    struct call_tree *tree; /* a view; NULL: no stack is known */
    struct packet sample;
    struct packet interned;
    struct key_map told; /* what has been: nodes, frames and modules */
    uint32_t *way;       /* owned: frames of a stack, innermost first */
    uint64_t mappings;
    bool failed; /* no memory */
};

void perfetto_samples_release(struct perfetto_samples *p);

/* A sample of the CPU, if the slice is one, at that time of the trace. 0 or an error. */
int perfetto_sample(struct perfetto_samples *p, struct track_packets *t, const struct slice *s,
                    uint64_t ns);

#endif
