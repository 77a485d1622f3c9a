/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, marks, pauses, windows and dumps as rows of a Chrome trace, and the names of threads. */
#include <stdlib.h>

#include "base/new_text.h"
#include "flight.h"
#include "resolve/device_sources.h"
#include "trace/chrome.h"

/* ---- steps ----------------------------------------------------------------------------------- */

/* Avoids a profiler's own step names: the trace has those steps already, and readers would count
 * them twice. */
static void chrome_marks_put_step(struct trace_writer *w, struct process *p, uint64_t number,
                                  uint64_t begin_ns, uint64_t end_ns, const char *made_of)
{
    struct shown at = {.begin_ns = begin_ns, .end_ns = end_ns};
    char name[64];
    bool is_again = w->scope.steps && w->scope.steps->kind == STEPS_PROFILER;
    if (w->error || !chrome_place(w, p, ROW_STEP, 0, 0, FREE_LANE, 0, &at))
        return;
    snprintf(name, sizeof name, is_again ? "step %llu" : STEP_NAME "%llu",
             (unsigned long long)number);
    char *out = chrome_begin_slice(w, is_again ? "step" : "user_annotation", NULL, name, &at,
                                   RANGE_TEXT_BYTES);
    out = json_escape(PUT(out, ",\"made of\":"), made_of, strlen(made_of));
    chrome_end_slice(w, out, 0);
    chrome_reach_into(w, p, &at);
    chrome_span(w, p)->steps++;
}

/* A gpuprof_step() step lasts until the next one, or until recording of steps ends. */
static void chrome_marks_take_step(struct trace_writer *w, const struct event *e)
{
    struct process_span *span = chrome_span(w, e->process);
    uint64_t now_ns = chrome_time(w, e->begin_ns);
    if (w->scope.steps)
        return;
    /* The end is 1 ns earlier: some viewers join steps that touch. */
    if (span->stepping && now_ns > span->step_begin_ns)
        chrome_marks_put_step(w, e->process, span->step, span->step_begin_ns, now_ns - 1,
                              "gpuprof_step");
    span->stepping = e->record->type == RECORD_STEP;
    span->step = record_arg(e->record, STEP_NUMBER);
    span->step_begin_ns = now_ns;
}

/* Writes steps from other sources, all of which are known in advance. */
static void put_known_steps(struct trace_writer *w, struct process *p)
{
    const struct steps *steps = w->scope.steps;
    uint32_t end = steps->firsts[p->index + 1];
    for (uint32_t i = steps->firsts[p->index]; i < end; i++) {
        const struct step *step = &steps->list[i];
        bool touches =
            i + 1 < end && step[1].begin_ns == step->end_ns; /* as in chrome_marks_take_step */
        if (step->end_ns > step->begin_ns &&
            selection_reaches(w->scope.selection, p, step->begin_ns, step->end_ns))
            chrome_marks_put_step(w, p, step->number, chrome_time(w, step->begin_ns),
                                  chrome_time(w, step->end_ns) - touches,
                                  step->made_of                 ? step->made_of->shown
                                  : steps->kind == STEPS_CALLED ? "gpuprof_step"
                                                                : "launches of a graph");
    }
}

void chrome_steps_end(struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->shown.count; i++) {
        struct process_span *span = &w->shown.spans[i];
        struct process *p = w->shown.list[i];
        if (w->scope.steps)
            put_known_steps(w, p);
        if (span->stepping)
            chrome_marks_put_step(w, p, span->step, span->step_begin_ns,
                                  span->end_ns > span->step_begin_ns ? span->end_ns
                                                                     : span->step_begin_ns,
                                  "gpuprof_step");
        /* Kineto's readers need a step: without any, the whole trace is one. */
        else if (w->scope.survey && p->has_gpu && !span->steps && span->begin_ns != UINT64_MAX)
            chrome_marks_put_step(w, p, 0, span->begin_ns, span->end_ns,
                                  w->scope.selection ? "the whole piece" : "the whole recording");
    }
}

/* ---- instants -------------------------------------------------------------------------------- */

/* Writes an instant of the thread for a mark (not NULL), else of the process. */
static void put_instant(struct trace_writer *w, const struct event *e, const char *name,
                        const struct range *mark)
{
    uint64_t at_ns = chrome_time(w, e->begin_ns);
    char *out = chrome_begin_instant(
        w, mark ? "t\",\"cat\":\"user_annotation" : "p\",\"cat\":\"user_annotation",
        mark ? mark->text : NULL, name, &chrome_row(w, e->thread->index)->ids, at_ns,
        2 * RANGE_TEXT_BYTES);
    if (mark)
        out = chrome_put_attributes(w, out, mark);
    chrome_end_slice(w, out, 0);
    chrome_reach(w, e->process, at_ns, at_ns);
}

static void chrome_marks_take_label(struct trace_writer *w, const struct event *e)
{
    const struct record *r = e->record;
    const struct process *p = e->process;
    uint64_t tid = record_arg(r, LABEL_HANDLE);
    const struct kernel_name *text =
        record_arg(r, LABEL_KIND) == LABEL_OF_THREAD
            ? ranges_label(&w->walk->ranges, p, LABEL_OF_THREAD, record_arg(r, LABEL_DOMAIN), tid)
            : NULL;
    for (uint32_t i = 0; text && i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number && t->tid && t->tid == tid) {
            chrome_put_metadata(w, "thread_name", p->shown_pid, t->shown_tid, text->shown, 0);
            return;
        }
    }
}

/* Writes what run --device could not read, or stopped reading. */
static void take_unread(struct trace_writer *w, const struct event *e)
{
    const struct device_source *source = device_sources_find(&w->walk->sources, e);
    char device[DEVICE_UUID_BYTES] = "the devices";
    if (source && source->device != UINT64_MAX)
        snprintf(device, sizeof device, "GPU %llu", (unsigned long long)source->device);
    else if (source)
        device_source_uuid_text(source, device);
    char *text = text_printf("no counters of %s: %.*s", device, (int)e->record->byte_count,
                             e->record->bytes ? (const char *)e->record->bytes : "");
    if (chrome_ok(w, text ? 0 : GPUPROF_NO_MEMORY))
        put_instant(w, e, text, NULL);
    free(text);
}

void chrome_mark(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned long long window = record_arg(r, WINDOW_NUMBER);
    char name[128];
    if (s->change == RANGE_MARKED) {
        put_instant(w, e, "mark", s->range);
        return;
    }
    switch (r->type) {
    case RECORD_LABEL: chrome_marks_take_label(w, e); break;
    case RECORD_STEP: chrome_marks_take_step(w, e); break;
    case RECORD_DUMP: {
        const char *why = dump_reason_text(record_arg(r, DUMP_REASON));
        snprintf(name, sizeof name, "dump %llu: %s", (unsigned long long)record_arg(r, DUMP_NUMBER),
                 why ? why : "?");
        put_instant(w, e, name, NULL);
        break;
    }
    case RECORD_DEVICE_ABSENT:
        if (device_missing_of_all(r))
            take_unread(w, e);
        break;
    case RECORD_PAUSE:
        put_instant(w, e, record_arg(r, PAUSE_PAUSED) ? "recording stopped" : "recording started",
                    NULL);
        break;
    case RECORD_WINDOW:
        if (!s->pause_change || !window)
            break;
        snprintf(name, sizeof name, "window %llu %s", window,
                 s->pause_change == PAUSE_ENDS ? "begins" : "has ended");
        put_instant(w, e, name, NULL);
        if (s->pause_change == PAUSE_BEGINS)
            chrome_marks_take_step(w, e);
        break;
    default: break;
    }
}
