/* SPDX-License-Identifier: Apache-2.0 */
/* Work lost by a kill or a full disk: launched, but not delivered by CUPTI. */
#include "analyse/idle_state.h"

#include "api/api.h"

void idle_lost_begin(struct idle_lost *lost, const struct process *p)
{
    bool has_ended_itself = p->end_reason && p->end_reason != END_KILLED;
    *lost = (struct idle_lost){.may_be = !has_ended_itself && process_expects_gpu(p) &&
                                         process_wants_kernels(p)};
}

/* True if the call launches work that always has a record. */
static bool launches(const struct event *e)
{
    unsigned does = e->function->does;
    return (does == API_DOES_LAUNCH || does == API_DOES_GRAPH_LAUNCH) && !e->record->result &&
           !(e->record->flags & (RECORD_CAPTURED | RECORD_NESTED | RECORD_STALE | RECORD_OPEN));
}

void idle_lost_call(struct idle_lost *lost, const struct event *e)
{
    uint64_t ns = e->begin_ns;
    lost->has_hung |= e->record->flags & RECORD_OPEN && e->end_ns - ns >= SURVEY_HANG_NS;
    if (!launches(e))
        return;
    lost->last_ns = ns;
    lost->returned_ns = e->end_ns > lost->returned_ns ? e->end_ns : lost->returned_ns;
    lost->pending_ns = lost->pending_ns ? lost->pending_ns : ns;
}

/* All launches before the last launch precede the end of the last work. Work without a known call
 * may belong to any of them. */
void idle_lost_work(struct idle_lost *lost, const struct slice *s)
{
    uint64_t made_ns = s->is_called ? s->call.begin_ns : lost->last_ns;
    lost->made_ns = made_ns > lost->made_ns ? made_ns : lost->made_ns;
    lost->worked_ns = s->event.end_ns > lost->worked_ns ? s->event.end_ns : lost->worked_ns;
    lost->pending_ns = lost->last_ns > lost->made_ns ? lost->last_ns : 0;
}

bool idle_lost_span(const struct idle_lost *lost, uint64_t end_ns, struct time_span *span)
{
    bool goes_on = end_ns < lost->returned_ns + SURVEY_HANG_NS;
    uint64_t pending_ns = lost->pending_ns;
    *span = (struct time_span){pending_ns > lost->worked_ns ? pending_ns : lost->worked_ns,
                               goes_on ? end_ns : lost->last_ns};
    return lost->may_be && !lost->has_hung && pending_ns && span->begin_ns < span->end_ns;
}

void idle_lost_end(struct idle *d)
{
    const struct walk *w = d->walk;
    for (uint32_t i = 0; i < d->track_count && !w->is_cut; i++) {
        struct idle_track *t = &d->tracks[i];
        uint32_t process = t->process->index;
        struct time_span span;
        t->loses_work = idle_lost_span(&d->way.processes[process].lost, w->last_ns[process], &span);
        if (t->place != IDLE_NONE)
            d->devices[t->place].loses_work = t->loses_work;
    }
}
