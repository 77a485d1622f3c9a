/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that a thread makes while another uses those before them, in the same order. Memory:
 * AHEAD_BATCHES batches of AHEAD_EVENTS events, 0.4 MB.
 */
#ifndef GPUPROF_COLLECTOR_AHEAD_H
#define GPUPROF_COLLECTOR_AHEAD_H

#include "model/event.h"

#define AHEAD_BATCHES    4
#define AHEAD_EVENTS     256
#define AHEAD_TEXT_BYTES (4u * RECORD_BYTES_MAX) /* of a batch; a record's always fit */

#define EVENT_IS_DAMAGE 2

/*
 * 1 and an event without its function; EVENT_IS_DAMAGE and of which process how many records are
 * lost; 0 at the end; or an error, errno with it, which is the end, too.
 */
typedef int next_event_fn(void *context, struct event *e, uint32_t *lost_records);

struct ahead;

/* From now on `next` is called by a thread of its own only. NULL: no memory, or no thread can be
 * had. */
struct ahead *ahead_start(next_event_fn *next, void *context);

/* What `next` has returned. */
int ahead_next(struct ahead *a, struct event *e, uint32_t *lost_records);

/* `next` is not called any more. `a` may be NULL. */
void ahead_end(struct ahead *a);

#endif
