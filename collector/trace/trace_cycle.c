/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_cycle.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "error.h"

struct cycle_span {
    uint64_t begin_ns; /* 0: it has not begun */
    uint64_t end_ns;
};

static void see_window(struct trace_cycle *c, const struct slice *s)
{
    const struct recorded_now *now = &s->walk->recorded[s->event.process->index];
    struct cycle_span *span = &c->spans[s->event.process->index];
    if (now->window == c->number && !now->is_closed && !span->begin_ns)
        *span = (struct cycle_span){s->event.begin_ns, UINT64_MAX};
    else if (span->begin_ns && span->end_ns == UINT64_MAX)
        span->end_ns = s->event.begin_ns;
}

bool trace_cycle_has(struct trace_cycle *c, const struct slice *s)
{
    const struct event *e = &s->event;
    bool reaches = true;
    uint64_t begin_ns = e->begin_ns;
    if (!c->number)
        return true;
    const struct cycle_span *span = &c->spans[e->process->index];
    if (e->record->type == RECORD_WINDOW) {
        see_window(c, s);
        return span->begin_ns && (begin_ns == span->begin_ns || begin_ns == span->end_ns);
    }
    if (s->change == RANGE_CLOSED || s->change == RANGE_LEFT)
        begin_ns = s->range->begin_ns;
    else if (s->op_change != OP_SAME)
        begin_ns = s->op->begin_ns;
    else if (s->library_change != LIBRARY_SAME)
        begin_ns = s->library->begin_ns;
    else
        reaches = false;
    if (!reaches && s->is_called)
        begin_ns = s->call.begin_ns;
    return span->begin_ns && begin_ns < span->end_ns && (reaches || begin_ns >= span->begin_ns);
}

void trace_cycle_begin(struct trace_cycle *c)
{
    if (c->number)
        memset(c->spans, 0, c->count * sizeof *c->spans);
}

uint64_t trace_cycle_last(const struct trace_cycle *c)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < c->count; i++)
        last = c->windows[i] > last ? c->windows[i] : last;
    return last;
}

enum exit_code trace_cycle_init(struct trace_cycle *c, const struct walk *w, uint64_t number)
{
    if (!number)
        return EXIT_OK;
    c->count = w->rec->count;
    c->spans = calloc(c->count + 1u, sizeof *c->spans);
    c->windows = calloc(c->count + 1u, sizeof *c->windows);
    if (!c->spans || !c->windows) {
        message("merge: %s", gpuprof_error_text(GPUPROF_NO_MEMORY));
        return EXIT_ENVIRONMENT;
    }
    for (uint32_t i = 0; i < c->count; i++)
        c->windows[i] = w->recorded[i].window;
    uint64_t last = trace_cycle_last(c);
    if (last >= (number == CYCLE_ALL ? 1 : number))
        return EXIT_OK;
    if (!last)
        return usage_error("merge: --cycle: these recordings have no windows; run --schedule or "
                           "--capture-range makes them");
    return usage_error("merge: --cycle: there is no window %llu; the last one is %llu",
                       (unsigned long long)number, (unsigned long long)last);
}

void trace_cycle_release(struct trace_cycle *c)
{
    free(c->spans);
    free(c->windows);
}
