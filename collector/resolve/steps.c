/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/message.h"
#include "glob.h"
#include "record/gpu_record.h"
#include "resolve/op_names.h"
#include "resolve/range_text.h"

#define AUTOMATIC  ((1u << STEPS_NAMED) - 1)
#define LIST_NAMES "; 'gpuprof report --table=nvtx_sum' lists the names"

const struct step_kind_info step_kinds[] = {
    [STEPS_CALLED] = {"range", "gpuprof_step", "from one gpuprof_step() to the next",
                      "the program did not call gpuprof_step() while it was recorded"},
    [STEPS_PROFILER] = {"profiler", "profiler",
                        "a label ProfilerStep# of the program's own profiler",
                        "no label ProfilerStep# was recorded; it needs a profiler in the program "
                        "and 'gpuprof run --pytorch'"},
    [STEPS_OPTIMIZER] = {"optimizer", "optimizer",
                         "from the end of one update to the end of the next",
                         "no label Optimizer.step# was recorded outside the backward pass; record "
                         "with 'gpuprof run --pytorch'"},
    [STEPS_LOADER] = {"dataloader", "dataloader",
                      "from the fetch of one batch to the fetch of the next",
                      "no label enumerate(DataLoader)# was recorded; record with 'gpuprof run "
                      "--pytorch'"},
    [STEPS_GRAPH] = {"graph", "graph", "from one launch of the most launched graph to the next",
                     "no graph was launched twice"},
    [STEPS_NAMED] = {"range", "range", "a range or label with the given name", NULL},
    [STEPS_NONE] = {"none", "none",
                    "nothing marks them; use gpuprof_step(), --step-range=RANGE or "
                    "'gpuprof run --pytorch'",
                    NULL},
};

void steps_init(struct steps *s, struct walk *walk, const char *by, const char *pattern)
{
    uint64_t more = recording_bytes(walk->rec) / STEP_FILE_BYTES;
    *s = (struct steps){
        .walk = walk, .kind = STEPS_NONE, .wanted = AUTOMATIC, .by = by, .pattern = pattern};
    s->steps_max = more < STEPS_MAX - STEPS_FREE ? STEPS_FREE + (uint32_t)more : STEPS_MAX;
    if (pattern) {
        s->wanted = 1u << STEPS_NAMED;
    } else if (by) {
        s->wanted = 0;
        for (unsigned kind = 0; kind < STEPS_NAMED; kind++)
            s->wanted |= strcmp(by, step_kinds[kind].word) == 0 ? 1u << kind : 0;
        if (!s->wanted) {
            s->class = s->pattern = by;
            s->wanted = 1u << STEPS_NAMED | 1u << STEPS_OPTIMIZER;
        }
    }
    s->firsts = memory_new(walk->rec->count + 1u, sizeof *s->firsts);
}

void steps_release(struct steps *s)
{
    free(s->marks);
    free(s->firsts);
    free(s->list);
    *s = (struct steps){.kind = STEPS_NONE};
}

/* ---- marks ----------------------------------------------------------------------------------- */

static bool steps_is_wanted(const struct steps *s, enum step_kind kind)
{
    return s->wanted >> kind & 1 && kind <= s->kind;
}

/* Adds a mark, unless its kind ranks behind the present one. Returns its index + 1, or 0 if there
 * is no room. */
static uint32_t add_mark(struct steps *s, enum step_kind kind, const struct event *e,
                         const struct kernel_name *text)
{
    if (kind < s->kind) {
        s->kind = kind;
        s->mark_count = 0;
        s->beyond = 0;
    }
    if (s->mark_count == s->steps_max) {
        s->beyond++;
        return 0;
    }
    struct step_mark mark = {.begin_ns = e->begin_ns,
                             .process = e->process,
                             .thread = e->thread,
                             .text = text,
                             .order = s->mark_count};
    s->made++;
    ARRAY_PUSH(s->marks, s->mark_count, &mark);
    return s->mark_count;
}

static void end_mark(struct steps *s, uint32_t place, uint64_t end_ns, bool is_cut)
{
    if (place) {
        s->marks[place - 1].end_ns = end_ns > 0 ? end_ns : 1;
        s->marks[place - 1].is_cut = is_cut;
    }
}

/* Whether the range or label matches the pattern. */
static bool steps_is_named(const struct steps *s, const struct kernel_name *text)
{
    return text && steps_is_wanted(s, STEPS_NAMED) && glob_matches(s->pattern, text->shown);
}

static enum op_kind kind_of(const struct host_span *op)
{
    return op_kind_of(op->scope, op->text);
}

/* Whether a label of kind `a` or `b` is around the label that has just begun. */
static bool is_inside(const struct steps *s, const struct host_span *op, enum op_kind a,
                      enum op_kind b)
{
    while ((op = spans_around(&s->walk->spans, op)) && kind_of(op) != a && kind_of(op) != b)
        ;
    return op;
}

/* Whether `wanted` is the class ("SGD" of "Optimizer.step#SGD.step") or the whole text. */
static bool has_class(const struct kernel_name *text, const char *wanted)
{
    const char *class = text->shown + strlen(OP_OPTIMIZER_PREFIX);
    size_t length = strlen(wanted);
    return strcmp(text->shown, wanted) == 0 ||
           (strncmp(class, wanted, length) == 0 && strcmp(class + length, ".step") == 0);
}

/* An update counts at its end, where the next step begins. */
static void close_optimizer(struct steps *s, const struct slice *slice)
{
    const struct kernel_name *text = slice->span->text;
    struct event e = slice->event;
    e.begin_ns = slice->span->end_ns;
    e.thread = slice->span->thread;
    if (slice->span->mark && (!s->class || has_class(text, s->class)))
        add_mark(s, STEPS_OPTIMIZER, &e, text);
}

/* Ends the mark, unless marks of another kind replaced it meanwhile. */
static void close_label(struct steps *s, const struct host_span *op, bool is_cut)
{
    bool is_profiler = kind_of(op) == OP_KIND_PROFILER && !s->pattern;
    if (s->kind == (is_profiler ? STEPS_PROFILER : STEPS_NAMED))
        end_mark(s, op->mark, op->end_ns, is_cut);
}

static void steps_take_label(struct steps *s, const struct slice *slice)
{
    struct host_span *op = slice->span;
    const struct kernel_name *text = op->text;
    enum op_kind kind = kind_of(op);
    bool is_optimizer = kind == OP_KIND_OPTIMIZER && steps_is_wanted(s, STEPS_OPTIMIZER);
    if (slice->change == SPAN_CLOSED && is_optimizer)
        close_optimizer(s, slice);
    else if (slice->change == SPAN_CLOSED || slice->change == SPAN_LOST)
        close_label(s, op, slice->change == SPAN_LOST);
    else if (slice->change != SPAN_OPENED)
        return;
    else if (is_optimizer)
        op->mark = !is_inside(s, op, OP_KIND_OPTIMIZER, OP_KIND_BACKWARD);
    else if (steps_is_named(s, text))
        op->mark = add_mark(s, STEPS_NAMED, &slice->event, text);
    else if (kind == OP_KIND_PROFILER && steps_is_wanted(s, STEPS_PROFILER))
        op->mark = add_mark(s, STEPS_PROFILER, &slice->event, text);
    else if (kind == OP_KIND_LOADER && steps_is_wanted(s, STEPS_LOADER) &&
             !is_inside(s, op, OP_KIND_LOADER, OP_KIND_LOADER))
        op->mark = add_mark(s, STEPS_LOADER, &slice->event, text);
}

static void steps_take_range(struct steps *s, const struct slice *slice)
{
    struct host_span *range = slice->span;
    if (slice->change == SPAN_OPENED && steps_is_named(s, range->text))
        range->mark = add_mark(s, STEPS_NAMED, &slice->event, range->text);
    else if (slice->change == SPAN_CLOSED && s->kind == STEPS_NAMED)
        end_mark(s, range->mark, range->end_ns, false);
}

static void add_numbered(struct steps *s, enum step_kind kind, const struct event *e,
                         uint64_t number, bool ends)
{
    uint32_t place = steps_is_wanted(s, kind) ? add_mark(s, kind, e, NULL) : 0;
    if (place) {
        s->marks[place - 1].number = number;
        s->marks[place - 1].ends = ends;
    }
}

static void steps_take_call(struct steps *s, const struct event *e)
{
    const struct record *r = e->record;
    if (e->function->does != API_DOES_GRAPH_LAUNCH || r->result != 0 ||
        r->flags & (RECORD_CAPTURED | RECORD_NESTED | RECORD_OPEN | RECORD_STALE))
        return;
    s->has_sampled |= r->weight > 1;
    add_numbered(s, STEPS_GRAPH, e, record_arg(r, 0), false);
}

/* Ends a step where its thread began to wait: the next one may not be due yet. */
static void take_silence(struct steps *s, const struct event *e)
{
    struct silence_look look = {0};
    struct event wait = *e;
    if (s->kind != STEPS_GRAPH || s->mark_count == s->steps_max ||
        !silence_look_of(e->record, &look) || look.waiting < SILENCE_ALL / 2)
        return;
    const struct step_mark *last = &s->marks[s->mark_count - 1];
    if (last->ends && last->thread == e->thread)
        return;
    uint64_t silent_ns = record_arg(e->record, SILENCE_NS);
    wait.begin_ns -= silent_ns < e->begin_ns ? silent_ns : e->begin_ns;
    add_numbered(s, STEPS_GRAPH, &wait, 0, true);
}

static int steps_take(void *context, const struct slice *slice)
{
    struct steps *s = context;
    const struct event *e = &slice->event;
    const struct record *r = e->record;
    if (slice_change(slice, SPAN_OP) && op_is_label(slice->span) && !slice->span->is_traced)
        steps_take_label(s, slice);
    else if (slice_change(slice, SPAN_RANGE))
        steps_take_range(s, slice);
    else if (r->type == RECORD_STEP)
        add_numbered(s, STEPS_CALLED, e, record_arg(r, STEP_NUMBER), false);
    else if (slice->pause_change == PAUSE_BEGINS && /* at a step that is not recorded */
             record_arg(r, r->type == RECORD_WINDOW ? WINDOW_STEP : PAUSE_STEP))
        add_numbered(s, STEPS_CALLED, e, 0, true);
    else if (r->type == RECORD_SILENCE)
        take_silence(s, e);
    else if (r->type == RECORD_CALL && !slice->change)
        steps_take_call(s, e);
    return 0;
}

static int steps_end(void *context)
{
    steps_make(context);
    return 0;
}

struct consumer steps_consumer(struct steps *s)
{
    return (struct consumer){.context = s,
                             .needs = WALK_SPANS,
                             .skips = WALK_SKIPS_PLAIN_CALLS | WALK_SKIPS_WORK,
                             .sees_filtered = true,
                             .take = steps_take,
                             .end = steps_end};
}

const struct step *steps_at(const struct steps *s, const struct process *p, uint64_t ns)
{
    uint32_t first = s->firsts[p->index], count = s->firsts[p->index + 1] - first;
    uint32_t begun = count ? ARRAY_UP_TO(&s->list[first], count, begin_ns, ns) : 0;
    return begun ? &s->list[first + begun - 1] : NULL;
}

enum exit_code steps_check(struct steps *s, const char *verb)
{
    if (s->count || (!s->by && !s->pattern))
        return EXIT_OK;
    if (s->unrecorded)
        return usage_error("%s: recording was off during all of its steps", verb);
    if (s->pattern && !s->class)
        return usage_error("%s: --step-range: no range or label is named '%s'" LIST_NAMES, verb,
                           s->pattern);
    for (unsigned kind = 0; kind < STEPS_NAMED; kind++)
        if (s->wanted == 1u << kind)
            return usage_error("%s: --step-by=%s: %s", verb, s->by, step_kinds[kind].missing);
    return usage_error("%s: --step-by: no range, label or optimizer is named '%s'" LIST_NAMES, verb,
                       s->by);
}

enum exit_code steps_find(struct steps *s, struct walk *walk, const char *by, const char *pattern,
                          bool surveys, const char *verb)
{
    steps_init(s, walk, by, pattern);
    struct consumer marks = steps_consumer(s);
    if ((surveys && !walk->is_surveyed && walk_survey(walk) < 0) ||
        walk_run(walk, NULL, &marks, 1) < 0)
        return EXIT_ENVIRONMENT;
    return steps_check(s, verb);
}
