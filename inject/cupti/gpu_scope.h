/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's activity functions come twice: for the process, and from 13.3 on (_v2) for one of several
 * subscribers. A process that has used the ones is refused the others. Here is what we ask CUPTI
 * for, by the functions of the scope that gpu.scope says: NULL is the process. What is said of
 * several subscribers comes from the headers and the messages of 13.5; no GPU has shown it yet.
 */
#ifndef GPUPROF_INJECT_GPU_SCOPE_H
#define GPUPROF_INJECT_GPU_SCOPE_H

#include <stdbool.h>

#include "cupti/cupti_library.h"

/* Has this libcupti all functions of a subscriber's scope? */
bool gpu_scope_by_subscriber(const struct cupti_library *cupti);

CUptiResult gpu_scope_enable(CUpti_ActivityKind kind, bool enable);
CUptiResult gpu_scope_thread_ids(CUpti_ActivityThreadIdType type);
CUptiResult gpu_scope_latency(uint8_t enable);

/* Once; CUPTI may refuse it to one of several: then its records are on CLOCK_REALTIME. */
CUptiResult gpu_scope_clock(CUpti_TimestampCallbackFunc clock);

/* How buffers are to come: none of it changes another subscriber's. */
void gpu_scope_buffer_attributes(void);

/* Who gives and takes the buffers of the process; a subscriber's are given and taken as ours. */
CUptiResult gpu_scope_register(CUpti_BuffersCallbackRequestFunc process_requested,
                               CUpti_BuffersCallbackCompleteFunc process_completed);

/* Has another subscriber chosen, for all, that a graph is one record? */
bool gpu_scope_graphs_are_whole(void);

/* Measures the records. Not before the scope is known: it may be taken for a use of it. */
bool gpu_scope_measure(void);
CUptiResult gpu_scope_next_record(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record);
CUptiResult gpu_scope_dropped(CUcontext context, uint32_t stream, size_t *dropped);

#endif
