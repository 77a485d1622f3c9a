/* SPDX-License-Identifier: Apache-2.0 */
/* What all exporters of events say alike. */
#ifndef GPUPROF_COLLECTOR_EVENT_FACTS_H
#define GPUPROF_COLLECTOR_EVENT_FACTS_H

#include "model/event_walk.h"
#include "model/steps.h"

/* A number that means one call in all processes' events; 0: none. */
static inline uint64_t event_id(const struct process *p, uint32_t id)
{
    return id ? (uint64_t)p->index << 32 | id : 0;
}

/* That of a CALL: a call inside another may have its id, too, by which work is to find one call:
 * the outer one. 0 or an error. */
int event_call_id(struct walk *w, const struct event *e, uint64_t *id);

/* "operator", "backward", "label", "module" or "traced". */
const char *event_op_kind(const struct op *op);

/* What steps of that kind are made of. */
const char *event_step_name(enum step_kind kind, const struct step *step);

#endif
