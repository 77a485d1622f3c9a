/* SPDX-License-Identifier: Apache-2.0 */
#include "export/event_facts.h"

int event_call_id(struct walk *w, const struct event *e, uint64_t *id)
{
    const struct record *r = e->record;
    struct correlated_call found;
    int count = r->flags & RECORD_NESTED && r->correlation
                    ? correlation_find(&w->survey.calls, e->process->index, r->correlation,
                                       e->begin_ns, 0, &found)
                    : 0;
    bool is_outer = count <= 0 || found.begin_ns == e->begin_ns;
    *id = event_id(e->process, is_outer ? r->correlation : 0);
    return count < 0 ? count : 0;
}

const char *event_op_kind(const struct op *op)
{
    if (op_is_module(op))
        return "module";
    if (op_is_label(op))
        return "label";
    return op->is_traced ? "traced" : op->scope == OP_SCOPE_BACKWARD ? "backward" : "operator";
}

const char *event_step_name(enum step_kind kind, const struct step *step)
{
    return step->made_of          ? step->made_of->shown
           : kind == STEPS_CALLED ? "gpuprof_step"
                                  : "launches of a graph";
}
