/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity functions exist twice: for the process, and since 13.3 (_v2) for one of several
 * subscribers. A process that has used one kind is refused the other. This file calls CUPTI with
 * the functions of the scope in gpu.scope; NULL is the process. What is said about several
 * subscribers comes from the headers and messages of 13.5; no GPU has confirmed it yet.
 */
#ifndef GPUPROF_INJECT_GPU_SCOPE_H
#define GPUPROF_INJECT_GPU_SCOPE_H

#include <stdbool.h>

#include "cupti/cupti_library.h"

/* Does this libcupti have all functions of a subscriber's scope? */
bool gpu_scope_by_subscriber(const struct cupti_library *cupti);

CUptiResult gpu_scope_enable(CUpti_ActivityKind kind, bool enable);
CUptiResult gpu_scope_thread_ids(CUpti_ActivityThreadIdType type);
CUptiResult gpu_scope_latency(uint8_t enable);

/* Call it once. CUPTI may refuse it to one of several subscribers: the records then use
 * CLOCK_REALTIME. */
CUptiResult gpu_scope_clock(CUpti_TimestampCallbackFunc clock);

/* Sets how buffers come; changes nothing for other subscribers. */
void gpu_scope_buffer_attributes(void);

/* Registers the functions that provide and take the process's buffers; for a subscriber's scope,
 * ours. */
CUptiResult gpu_scope_register(CUpti_BuffersCallbackRequestFunc process_requested,
                               CUpti_BuffersCallbackCompleteFunc process_completed);

/* Has another subscriber chosen, for all of them, that a graph launch is one record? */
bool gpu_scope_graphs_are_whole(void);

/*
 * Measures record sizes. Call it when the scope is known: CUPTI may count it as a use of the scope.
 */
bool gpu_scope_measure(void);
CUptiResult gpu_scope_next_record(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record);
CUptiResult gpu_scope_dropped(CUcontext context, uint32_t stream, size_t *dropped);

#endif
