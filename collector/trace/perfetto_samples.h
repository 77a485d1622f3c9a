/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU samples in Perfetto's own format: perf sample packets with interned callstacks. Its viewer
 * shows a flame graph of selected samples. Perfetto counts samples, so one that stands for several
 * is repeated. Memory: 48 to 96 bytes for each stack and frame in use.
 */
#ifndef GPUPROF_COLLECTOR_PERFETTO_SAMPLES_H
#define GPUPROF_COLLECTOR_PERFETTO_SAMPLES_H

#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "trace/track_packets.h"

struct perfetto_samples {
    struct call_tree *tree; /* a view; NULL: no stacks */
    struct packet sample;
    struct packet interned;
    struct key_map reported; /* interned nodes, frames and modules */
    uint32_t *way;           /* owned: frames of a stack, innermost first */
    uint64_t mappings;
    bool failed; /* no memory */
};

void perfetto_samples_release(struct perfetto_samples *p);

/* Writes a CPU sample if the slice is one, at that time of the trace. Returns 0 or an error. */
int perfetto_sample(struct perfetto_samples *p, struct track_packets *t, const struct slice *s,
                    uint64_t ns);

#endif
