/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/selection.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "error.h"
#include "glob.h"
#include "record/gpu_record.h"
#include "resolve/host_facts.h"

enum { NAME_UNKNOWN, NAME_DIFFERS, NAME_MATCHES };

/* The properties of an event that filters check. */
struct subject {
    const struct process *process;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t place_ns; /* its moment for steps and ranges; UINT64_MAX: none */
    uint64_t device;   /* UINT64_MAX: none */
    const char *text;  /* its name */
    uint32_t tid;      /* 0: none */
    enum select_kind kind;
    bool reaches; /* it counts for its whole duration, not only for its begin */
    bool is_edge; /* it begins or ends a window */
    bool is_kept; /* the text stays valid during the walk */
};

/* ---- events ---------------------------------------------------------------------------------- */

/* Whether that time overlaps one of the spans; it includes its begin, however short it is. */
static bool reach(const struct time_spans *spans, uint64_t begin_ns, uint64_t end_ns)
{
    uint32_t at = ARRAY_UP_TO(spans->list, spans->count, end_ns, begin_ns);
    return at < spans->count &&
           (spans->list[at].begin_ns < end_ns || spans->list[at].begin_ns == begin_ns);
}

bool selection_reaches(const struct selection *s, const struct process *p, uint64_t begin_ns,
                       uint64_t end_ns)
{
    bool reaches = !s || (begin_ns < s->to_ns && (end_ns > s->from_ns || begin_ns >= s->from_ns));
    for (unsigned i = 0; s && i < SELECTION_SPANS; i++)
        reaches = reaches && (!s->spans[i] || reach(&s->spans[i][p->index], begin_ns, end_ns));
    return reaches;
}

static bool reaches_device(void *context, const struct process *p, uint64_t device,
                           uint64_t begin_ns, uint64_t end_ns)
{
    const struct selection *s = context;
    return (!p || selection_reaches(s, p, begin_ns, end_ns)) &&
           (device == UINT64_MAX || number_list_has(&s->request->devices, device));
}

static void narrow(struct time_span *to, const struct time_spans *spans)
{
    uint64_t begin_ns = spans->count ? spans->list[0].begin_ns : UINT64_MAX;
    uint64_t end_ns = spans->count ? spans->list[spans->count - 1].end_ns : 0;
    to->begin_ns = begin_ns > to->begin_ns ? begin_ns : to->begin_ns;
    to->end_ns = end_ns < to->end_ns ? end_ns : to->end_ns;
}

static struct time_span bounds(void *context, const struct process *p)
{
    const struct selection *s = context;
    struct time_span span = {s->from_ns, s->to_ns};
    for (unsigned i = 0; i < SELECTION_SPANS; i++)
        if (s->spans[i])
            narrow(&span, &s->spans[i][p->index]);
    return span;
}

/* Whether that moment is selected; UINT64_MAX: none, which is in no span. */
static bool has_moment(const struct selection *s, enum selection_spans how, const struct subject *e,
                       uint64_t at_ns)
{
    const struct time_spans *spans = s->spans[how] ? &s->spans[how][e->process->index] : NULL;
    return !spans || reach(spans, at_ns, at_ns) ||
           (how == SPANS_CYCLE && e->is_edge && spans->count && at_ns == spans->list[0].end_ns);
}

static bool is_in_time(const struct selection *s, const struct subject *e)
{
    if (e->reaches)
        return selection_reaches(s, e->process, e->begin_ns, e->end_ns);
    return e->begin_ns >= s->from_ns && e->begin_ns < s->to_ns &&
           has_moment(s, SPANS_CYCLE, e, e->place_ns == UINT64_MAX ? e->begin_ns : e->place_ns) &&
           has_moment(s, SPANS_STEPS, e, e->place_ns) &&
           has_moment(s, SPANS_RANGES, e, e->place_ns);
}

/* Matches each name once, and stores the result if there is room. */
static bool has_name(struct selection *s, const struct subject *e)
{
    struct key key = {(uintptr_t)e->text, 1, 0};
    uint64_t known = e->is_kept ? key_map_get(&s->names, key) : NAME_UNKNOWN;
    if (known != NAME_UNKNOWN)
        return known == NAME_MATCHES;
    bool matches = e->text && regexec(&s->name, e->text, 0, NULL, 0) == 0;
    if (e->is_kept)
        (void)key_map_set(&s->names, key, matches ? NAME_MATCHES : NAME_DIFFERS);
    return matches;
}

static bool has_its_device(struct selection *s, uint64_t device)
{
    bool is_met = number_list_has(&s->request->devices, device);
    s->found.of_devices += is_met;
    return is_met;
}

static bool is_in(struct selection *s, const struct subject *e)
{
    const struct select_request *w = s->request;
    return (e->device == UINT64_MAX || has_its_device(s, e->device)) && is_in_time(s, e) &&
           (!w->kinds || w->kinds & 1u << e->kind) &&
           (!w->tids.count || (e->tid && number_list_has(&w->tids, e->tid))) &&
           e->end_ns - e->begin_ns >= w->min_ns && (!s->has_name || has_name(s, e));
}

/* Gives work the thread of its call and, with `counts_there`, the call's place. */
static void tie_to_call(const struct slice *slice, bool counts_there, struct subject *e)
{
    e->tid = slice->is_called ? process_thread(e->process, slice->call.thread)->tid : 0;
    if (counts_there)
        e->place_ns = slice->is_called ? slice->call.begin_ns : UINT64_MAX;
}

/* Fills in an event other than a call, named as in traces. False: it is never filtered itself. */
static bool describe_other(const struct selection *s, const struct slice *slice, char *text,
                           struct subject *e)
{
    const struct record *r = slice->event.record;
    const struct kernel_name *name = NULL;
    switch (e->kind) {
    case SELECT_RANGE:
    case SELECT_OPERATOR:
    case SELECT_LIBRARY:
    case SELECT_KINDS: return false;
    case SELECT_KERNEL:
        name = walk_kernel(s->walk, e->process, record_arg(r, KERNEL_NAME_INDEX));
        break;
    case SELECT_OS: e->text = host_os_name(&slice->event, text); return true;
    case SELECT_SAMPLE:
        if (record_arg(r, SAMPLE_TID))
            e->tid = (uint32_t)record_arg(r, SAMPLE_TID);
        return true;
    case SELECT_GIL:
        if (r->type == RECORD_GIL_REST && record_arg(r, GIL_REST_TID))
            e->tid = (uint32_t)record_arg(r, GIL_REST_TID);
        break;
    case SELECT_MARK: name = slice->change == SPAN_MARKED ? slice->span->text : NULL; break;
    default: break;
    }
    e->is_kept = name;
    e->text = name ? name->shown : record_title(r, text);
    e->device = r->type == RECORD_SYNC ? survey_context_device(&s->walk->survey, e->process,
                                                               record_arg(r, SYNC_CONTEXT))
                                       : record_device(r);
    bool is_beside = r->type == RECORD_OVERHEAD || r->type == RECORD_MEMORY;
    if (is_beside || r->type == RECORD_SYNC || is_stream_work(r->type))
        tie_to_call(slice, !is_beside, e);
    return true;
}

/* Fills in a range, operator or library call, at its end; its begin does not have everything. */
static bool describe_span(const struct slice *slice, struct subject *e)
{
    const struct host_span *span = slice->span;
    if (!slice->change || slice->change == SPAN_OPENED || slice->change == SPAN_MARKED)
        return false;
    *e = (struct subject){.kind = span->type == SPAN_LIBRARY                    ? SELECT_LIBRARY
                                  : span->type == SPAN_OP && !op_is_label(span) ? SELECT_OPERATOR
                                                                                : SELECT_RANGE,
                          .begin_ns = span->begin_ns,
                          .end_ns = span->end_ns,
                          .tid = span->thread->tid,
                          .text = span->type == SPAN_LIBRARY ? span->function->name
                                  : span->text               ? span->text->shown
                                                             : NULL};
    e->process = slice->event.process;
    e->device = UINT64_MAX;
    e->is_kept = e->reaches = true;
    e->end_ns = max_of(e->begin_ns, e->end_ns);
    return true;
}

bool selection_has_all_kinds(const struct selection *s)
{
    const struct select_request *w = s->request;
    return !w->kinds && !w->name && !w->min_ns && !w->tids.count;
}

/* Notes a call or work that would be selected if it began at --from, and fills half of the time. */
static void note_begun(struct selection *s, const struct event *event, const struct subject *e)
{
    uint64_t begin_ns = s->from_ns;
    uint64_t end_ns = min_of(s->to_ns, s->walk->survey.origin_ns + s->length_ns);
    struct subject moved = *e;
    if (e->begin_ns >= begin_ns || e->end_ns <= begin_ns || end_ns <= begin_ns ||
        (e->end_ns < end_ns && e->end_ns - begin_ns < (end_ns - begin_ns) / 2))
        return;
    bool is_work = is_stream_work(event->record->type);
    struct key key = {event->process->index, is_work ? e->device : event->thread->index, is_work};
    moved.begin_ns = begin_ns;
    if ((!is_work && event->record->type != RECORD_CALL) || !is_in(s, &moved) ||
        key_map_get(&s->begun, key) || key_map_set(&s->begun, key, 1) < 0)
        return;
    selection_add_found(&s->found, &(struct selection_found){.begun_devices = is_work,
                                                             .begun_threads = !is_work,
                                                             .begun_ns = e->begin_ns});
}

/* Whether it is a call or work outside the selected time. Most events are. */
static bool is_far(const struct selection *s, const struct event *e)
{
    unsigned type = e->record->type;
    return (type == RECORD_CALL || (is_stream_work(type) && !s->request->devices.count)) &&
           (e->begin_ns >= s->to_ns || (e->begin_ns < s->from_ns && e->end_ns <= s->from_ns));
}

/* Selects everything that opens, since its end is not known yet. */
static bool has(void *context, const struct slice *slice)
{
    struct selection *s = context;
    const struct event *event = &slice->event;
    char text[GPU_TITLE_BYTES];
    if (slice->change == SPAN_OPENED)
        return true;
    if (is_far(s, event))
        return false;
    struct subject e;
    if (describe_span(slice, &e)) {
        bool is_selected = is_in(s, &e);
        s->found.events += is_selected;
        return is_selected;
    }
    e = (struct subject){.process = event->process,
                         .kind = selection_kind_of(event->record, event->function),
                         .begin_ns = event->begin_ns,
                         .end_ns = max_of(event->begin_ns, event->end_ns),
                         .place_ns = event->begin_ns,
                         .device = UINT64_MAX,
                         .tid = event->thread->tid,
                         .is_edge = event->record->type == RECORD_WINDOW};
    if (is_device_sample(event->record->type)) {
        if (slice->source && !has_its_device(s, slice->source->device))
            return false;
        bool shows = is_in_time(s, &e);
        s->found.events += shows && slice->source && selection_has_all_kinds(s);
        return shows;
    }
    if (event->record->type == RECORD_CALL) {
        e.text = event->function->name;
        e.is_kept = true;
    } else if (!describe_other(s, slice, text, &e)) {
        return true;
    }
    if (is_in(s, &e)) {
        s->found.events++;
        return true;
    }
    note_begun(s, event, &e);
    return false;
}

static bool has_device(void *context, const struct slice *slice)
{
    const struct selection *s = context;
    const struct record *r = slice->event.record;
    return !is_stream_work(r->type) ||
           number_list_has(&s->request->devices, record_arg(r, KERNEL_DEVICE));
}

static bool has_any_call(void *context, const struct slice *slice)
{
    (void)context;
    return slice->is_called;
}

static bool has_call(void *context, const struct slice *slice)
{
    struct selection *s = context;
    const struct correlated_call *call = &slice->call;
    const struct recording *rec = s->walk->rec;
    if (!slice->is_called)
        return false;
    const struct function *f = rec->reader.functions.functions[call->function];
    struct subject e = {.process = rec->processes[call->process],
                        .begin_ns = call->begin_ns,
                        .end_ns = max_of(call->begin_ns, call->end_ns),
                        .place_ns = call->begin_ns,
                        .device = UINT64_MAX,
                        .text = f->name,
                        .tid = process_thread(rec->processes[call->process], call->thread)->tid,
                        .kind = selection_kind_of_call(f),
                        .is_kept = true};
    return is_in(s, &e);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int compare_spans(const void *left, const void *right)
{
    const struct time_span *a = left, *b = right;
    return ORDER(a->begin_ns, b->begin_ns);
}

/* Sorts the spans and merges those that touch. */
static void join_spans(struct time_spans *spans)
{
    uint32_t kept = 0;
    if (!spans->count)
        return;
    qsort(spans->list, spans->count, sizeof *spans->list, compare_spans);
    for (uint32_t i = 1; i < spans->count; i++) {
        struct time_span *last = &spans->list[kept];
        if (spans->list[i].begin_ns > last->end_ns)
            spans->list[++kept] = spans->list[i];
        else if (spans->list[i].end_ns > last->end_ns)
            last->end_ns = spans->list[i].end_ns;
    }
    spans->count = kept + 1;
}

static int selection_add_span(struct selection *s, enum selection_spans how,
                              const struct process *p, uint64_t begin_ns, uint64_t end_ns)
{
    struct time_spans *spans = &s->spans[how][p->index];
    struct time_span *last = spans->count ? &spans->list[spans->count - 1] : NULL;
    if (last && begin_ns <= last->end_ns && begin_ns >= last->begin_ns) { /* needs no more room */
        last->end_ns = max_of(last->end_ns, end_ns);
        return 0;
    }
    if (s->span_count == SELECTION_SPANS_MAX)
        return GPUPROF_LIMIT;
    s->span_count++;
    ARRAY_PUSH(spans->list, spans->count, (&(struct time_span){begin_ns, end_ns}));
    return 0;
}

static int selection_take_range(void *context, const struct slice *slice)
{
    struct selection *s = context;
    struct subject e;
    if (slice->change == SPAN_LOST || !describe_span(slice, &e) || e.kind != SELECT_RANGE ||
        !e.text || !glob_matches(s->request->range, e.text))
        return 0;
    return selection_add_span(s, SPANS_RANGES, e.process, e.begin_ns,
                              slice->change == SPAN_LEFT ? UINT64_MAX : e.end_ns);
}

static enum exit_code find_ranges(struct selection *s, const char *verb)
{
    uint32_t before = s->span_count;
    struct consumer consumer = {.context = s,
                                .needs = WALK_SPANS,
                                .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK,
                                .take = selection_take_range};
    if (walk_run(s->walk, NULL, &consumer, 1) < 0)
        return EXIT_ENVIRONMENT;
    return s->span_count != before ? EXIT_OK
                                   : usage_error("%s: --range: no range or label is named '%s'",
                                                 verb, s->request->range);
}

/* A window lasts until the next WINDOW record. */
static int take_window(void *context, const struct slice *slice)
{
    struct selection *s = context;
    uint64_t at_ns = slice->event.begin_ns;
    const struct recorded_now *now = &slice->walk->recorded[slice->event.process->index];
    struct time_spans *spans = &s->spans[SPANS_CYCLE][slice->event.process->index];
    if (slice->event.record->type != RECORD_WINDOW)
        return 0;
    s->cycle_last = max_of(s->cycle_last, now->window);
    if (spans->count && spans->list[0].end_ns == UINT64_MAX)
        spans->list[0].end_ns = at_ns;
    else if (now->window == s->request->cycle && !now->is_closed && !spans->count)
        return selection_add_span(s, SPANS_CYCLE, slice->event.process, at_ns, UINT64_MAX);
    return 0;
}

static enum exit_code find_cycle(struct selection *s, const char *verb)
{
    struct consumer consumer = {
        .context = s, .skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK, .take = take_window};
    if (walk_run(s->walk, NULL, &consumer, 1) < 0)
        return EXIT_ENVIRONMENT;
    if (s->cycle_last >= s->request->cycle)
        return EXIT_OK;
    if (!s->cycle_last)
        return usage_error("%s: --cycle: these recordings have no windows; record with --schedule "
                           "or --capture-range",
                           verb);
    return usage_error("%s: --cycle: window %llu does not exist; the last one is %llu", verb,
                       (unsigned long long)s->request->cycle, (unsigned long long)s->cycle_last);
}

/* Prints that no requested step was found. */
static enum exit_code no_step(const struct steps *steps, const char *verb)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        first = min_of(first, steps->list[i].number);
        last = max_of(last, steps->list[i].number);
    }
    if (!steps->count)
        return usage_error("%s: --step: these recordings have no steps; call gpuprof_step(), or "
                           "name what marks a step with --step-by or --step-range",
                           verb);
    return usage_error(
        "%s: --step: no such step; the recording has steps %llu to %llu (--step=%llu:%llu)", verb,
        (unsigned long long)first, (unsigned long long)last, (unsigned long long)first,
        (unsigned long long)last + 1);
}

static enum exit_code take_steps(struct selection *s, const struct steps *steps, const char *verb)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        if (step->number >= s->request->step_first && step->number < s->request->step_end)
            error = selection_add_span(s, SPANS_STEPS, step->process, step->begin_ns, step->end_ns);
    }
    return error < 0 ? say_error(verb, error) : s->span_count ? EXIT_OK : no_step(steps, verb);
}

static enum exit_code selection_find_steps(struct selection *s, const struct selection_steps *how,
                                           const char *verb)
{
    struct steps steps;
    bool surveys = s->walk == &s->own;
    if (how->found)
        return take_steps(s, how->found, verb);
    enum exit_code code = steps_find(&steps, s->walk, how->by, how->pattern, surveys, verb);
    if (code == EXIT_OK)
        code = take_steps(s, &steps, verb);
    steps_release(&steps);
    return code;
}

static uint64_t moment_ns(const struct selection *s, const struct select_moment *m)
{
    uint64_t origin_ns = s->walk->survey.origin_ns;
    if (m->is_absolute)
        return m->ns;
    return origin_ns < UINT64_MAX - m->ns ? origin_ns + m->ns : UINT64_MAX;
}

/* Sets the length of the recording, and the requested time. */
static enum exit_code find_time(struct selection *s, const char *verb)
{
    const struct select_request *request = s->request;
    const struct block_index *index = &s->walk->rec->index;
    uint64_t origin_ns = s->walk->survey.origin_ns;
    if (request->from.is_given)
        s->from_ns = moment_ns(s, &request->from);
    if (request->to.is_given)
        s->to_ns = moment_ns(s, &request->to);
    for (uint32_t i = 0; i < index->count; i++)
        if (index->entries[i].end > origin_ns)
            s->length_ns = max_of(s->length_ns, index->entries[i].end - origin_ns);
    if (request->from.is_given && s->to_ns <= s->from_ns)
        return usage_error("%s: --to=%s is not later than --from=%s, so nothing is between them",
                           verb, request->to.text, request->from.text);
    return s->from_ns > origin_ns + s->length_ns || s->to_ns <= origin_ns ? selection_empty(s, verb)
                                                                          : EXIT_OK;
}

static void make_filters(struct selection *s)
{
    const struct recording *rec = s->walk->rec;
    const struct select_request *request = s->request;
    const uint32_t work =
        1u << SELECT_KERNEL | 1u << SELECT_MEMCPY | 1u << SELECT_MEMSET | 1u << SELECT_GRAPH_RUN;
    bool has_spans = request->has_steps || request->cycle || request->range;
    bool is_span = !has_spans && (s->from_ns || s->to_ns != UINT64_MAX);
    s->filter = (struct walk_filter){.context = s,
                                     .has_work = !request->kinds || request->kinds & work,
                                     .has = has,
                                     .has_call = has_call,
                                     .asks_calls = has_spans || request->tids.count,
                                     .wants = selection_wants,
                                     .reaches = reaches_device,
                                     .bounds = bounds,
                                     .first_ns = s->walk->first_ns,
                                     .last_ns = s->walk->last_ns,
                                     .is_of_time = is_span || has_spans,
                                     .is_span = is_span,
                                     .is_whole = is_span && selection_has_all_kinds(s),
                                     .is_near = is_span && rec->host_count <= 1 &&
                                                !s->walk->survey.has_devices &&
                                                !recording_any(rec, selection_reads_all_of),
                                     .from_ns = max_of(s->from_ns, s->walk->survey.origin_ns),
                                     .to_ns = s->to_ns};
    if (request->devices.count)
        s->of_steps = (struct walk_filter){.context = s,
                                           .has = has_device,
                                           .has_call = has_any_call,
                                           .first_ns = s->walk->first_ns,
                                           .last_ns = s->walk->last_ns};
}

enum exit_code selection_make(struct selection *s, struct recording *rec, struct walk *surveyed,
                              const struct select_request *request,
                              const struct selection_steps *steps, const char *verb)
{
    const bool is_wanted[] = {[SPANS_STEPS] = request->has_steps,
                              [SPANS_RANGES] = request->range != NULL,
                              [SPANS_CYCLE] = request->cycle != 0};
    *s = (struct selection){.request = request, .to_ns = UINT64_MAX};
    if (!request->is_given)
        return EXIT_OK;
    s->walk = surveyed ? surveyed : &s->own;
    if (!surveyed)
        walk_init(&s->own, rec);
    for (unsigned i = 0; i < SELECTION_SPANS; i++)
        if (is_wanted[i])
            s->spans[i] = memory_new(rec->count + 1u, sizeof *s->spans[i]);
    enum exit_code code = request->has_steps ? selection_find_steps(s, steps, verb) : EXIT_OK;
    if (code == EXIT_OK && !s->walk->is_surveyed && walk_survey(&s->own) < 0)
        return EXIT_ENVIRONMENT;
    if (code == EXIT_OK)
        code = find_time(s, verb);
    if (code != EXIT_OK)
        return code;
    s->has_name = request->name && regcomp(&s->name, request->name, REG_EXTENDED | REG_NOSUB) == 0;
    if (request->cycle)
        code = find_cycle(s, verb);
    if (code == EXIT_OK && request->range)
        code = find_ranges(s, verb);
    for (unsigned i = 0; i < SELECTION_SPANS; i++)
        for (uint32_t p = 0; s->spans[i] && p < rec->count; p++)
            join_spans(&s->spans[i][p]);
    make_filters(s);
    /* Steps and ranges select work by its call, so earlier calls are not needed. */
    if (code == EXIT_OK && !request->has_steps && !request->range)
        selection_find_beside(s);
    return code;
}

void selection_release(struct selection *s)
{
    if (s->has_name)
        regfree(&s->name);
    for (unsigned k = 0; s->walk && s->walk->rec && k < SELECTION_SPANS; k++) {
        for (uint32_t i = 0; s->spans[k] && i < s->walk->rec->count; i++)
            free(s->spans[k][i].list);
        free(s->spans[k]);
    }
    if (s->walk == &s->own)
        walk_release(&s->own);
    free(s->beside);
    free(s->core);
    free(s->near);
    key_map_release(&s->names);
    key_map_release(&s->begun);
    *s = (struct selection){0};
}

void selection_keep_steps(const struct selection *s, struct steps *steps)
{
    uint32_t kept = 0, next = 0;
    for (uint32_t p = 0; s && p < s->walk->rec->count; p++) {
        uint32_t end = steps->firsts[p + 1];
        steps->firsts[p] = kept;
        for (; next < end; next++) {
            const struct step *step = &steps->list[next];
            if (selection_reaches(s, step->process, step->begin_ns, step->end_ns))
                steps->list[kept++] = *step;
        }
    }
    if (s)
        steps->count = steps->firsts[s->walk->rec->count] = kept;
}
