/* SPDX-License-Identifier: Apache-2.0 */
/* Behind the events: a row for each process, step and loss. */
#include <stdio.h>

#include "argument_kind.h"
#include "export/event_facts.h"
#include "export/event_row.h"
#include "read/process_title.h"
#include "record/losses.h"

static int put_process(struct export_writer *w, const struct process *p)
{
    const char *command = process_meta(p, "cmdline");
    uint64_t first_ns = w->walk->first_ns[p->index];
    char title[FUNCTION_BYTES_MAX], moment[24];
    process_title(p, false, title, sizeof title);
    event_begin(w, "process", p, first_ns, w->walk->last_ns[p->index]);
    event_name(w, title);
    if (!first_ns)
        w->cells[EVENT_START] = w->cells[EVENT_DURATION] = (struct event_cell){0};
    snprintf(moment, sizeof moment, "%llu", (unsigned long long)w->walk->survey.origin_ns);
    event_arg_text(w, "epoch_ns", moment); /* of start_ns 0; JavaScript would round a number */
    event_arg_number(w, "own_pid", ARG_COUNT, p->header.pid);
    if (command)
        event_arg_text(w, "command", command);
    return event_end(w);
}

static int put_losses(struct export_writer *w, const struct process *p)
{
    const struct losses *l = &w->walk->losses[p->index];
    int error = 0;
    for (unsigned i = 0; error == 0 && i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(l, i))
            continue;
        event_begin(w, info.weight == LOSS_NONE ? "note" : "loss", p, 0, 0);
        event_name(w, info.key);
        w->cells[EVENT_START] = w->cells[EVENT_DURATION] = (struct event_cell){0};
        event_arg_number(w, "value", ARG_COUNT, loss_value(l, i));
        event_arg_text(w, "text", info.text);
        error = event_end(w);
    }
    return error;
}

static int put_step(struct export_writer *w, enum step_kind kind, const struct step *step)
{
    event_begin(w, "step", step->process, step->begin_ns, step->end_ns);
    event_name(w, event_step_name(kind, step));
    event_number(w, EVENT_STEP, step->number);
    if (step->is_partial)
        event_word(w, EVENT_STATE, "partial");
    return event_end(w);
}

int event_ends(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    const struct steps *steps = w->scope.steps;
    int error = 0;
    bool has_steps = steps && !w->scope.options->select.kinds; /* they are of none */
    for (uint32_t i = 0; error == 0 && has_steps && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        if (selection_reaches(w->scope.selection, step->process, step->begin_ns, step->end_ns))
            error = put_step(w, steps->kind, step);
    }
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        error = put_process(w, rec->processes[i]);
        if (error == 0)
            error = put_losses(w, rec->processes[i]);
    }
    return error;
}
