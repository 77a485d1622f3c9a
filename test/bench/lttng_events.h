/* SPDX-License-Identifier: Apache-2.0 */
/* The two tracepoints of lttng_cost.c; included several times by LTTng's own headers. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER gpuprof_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"

#if !defined(GPUPROF_BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define GPUPROF_BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(gpuprof_bench, enter,
                           LTTNG_UST_TP_ARGS(unsigned, function, unsigned long, argument),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, function, function)
                                                   lttng_ust_field_integer(unsigned long, argument,
                                                                           argument)))

LTTNG_UST_TRACEPOINT_EVENT(gpuprof_bench, leave, LTTNG_UST_TP_ARGS(unsigned, function, int, result),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, function, function)
                                                   lttng_ust_field_integer(int, result, result)))

#endif

#include <lttng/tracepoint-event.h>
