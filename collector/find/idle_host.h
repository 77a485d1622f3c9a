/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time in which the thread that fed the device made no call, split by what the thread did
 * (thread_time.h): rows of idle_rows.h beside those of the causes, whose `did` is not 0. Those of a
 * device and cause add up to what that cause has there.
 *
 * While the walk lasts a row is a piece of which a record says all, a sample, or a pool: time of
 * which it is only known that the thread ran (DID_RUNNING), waited (DID_WAITED), or neither
 * (DID_UNKNOWN). Behind it samples are handed what the pools have, never more than they stand for.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_HOST_H
#define GPUPROF_COLLECTOR_IDLE_HOST_H

#include "find/thread_time.h"

struct idle;

/* Behind the walk, when start-up is charged. 0 or GPUPROF_NO_MEMORY. */
int idle_host_settle(struct idle *d);

#endif
