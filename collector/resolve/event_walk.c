/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/event_walk.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "base/message.h"
#include "error.h"
#include "resolve/walk_slices.h"

#define AROUND_NS 1000000u

void walk_init(struct walk *w, struct recording *rec)
{
    *w = (struct walk){.rec = rec, .texts = {.plain = true}, .open_bytes_max = OPEN_BYTES_MAX};
    w->losses = memory_new(rec->count + 1u, sizeof *w->losses);
    w->names = memory_new(rec->count + 1u, sizeof *w->names);
    kernel_names_limit(&w->kernels, recording_bytes(rec));
    kernel_names_limit(&w->texts, recording_bytes(rec));
    w->op_threads = memory_new(rec->thread_count + 1u, sizeof *w->op_threads);
    w->first_ns = memory_new(rec->count + 1u, sizeof *w->first_ns);
    w->last_ns = memory_new(rec->count + 1u, sizeof *w->last_ns);
    w->recorded = memory_new(rec->count + 1u, sizeof *w->recorded);
    library_kinds_init(&w->kinds, &w->texts, recording_bytes(rec), rec->count);
    survey_init(&w->survey, rec);
    for (uint32_t i = 0; i < rec->count; i++)
        w->losses[i] = rec->processes[i]->losses;
}

void walk_release(struct walk *w)
{
    for (uint32_t i = 0; w->names && i < w->rec->count; i++) {
        kernel_handles_release(&w->kernels, &w->names[i].handles);
        kernel_handles_release(&w->kernels, &w->names[i].kernels);
        kernel_handles_release(&w->texts, &w->names[i].ops);
        kernel_handles_release(&w->texts, &w->names[i].inputs);
    }
    library_kinds_release(&w->kinds);
    device_sources_release(&w->sources);
    kernel_names_release(&w->kernels);
    kernel_names_release(&w->texts);
    survey_release(&w->survey);
    spans_release(&w->spans);
    free(w->losses);
    free(w->names);
    free(w->first_ns);
    free(w->last_ns);
    free(w->recorded);
    free(w->op_threads);
    *w = (struct walk){.rec = NULL};
}

struct walk_found walk_found(const struct walk *w, const struct process *p)
{
    return (struct walk_found){w->losses[p->index], w->first_ns[p->index], w->last_ns[p->index],
                               w->kernels.dropped, w->texts.dropped};
}

void walk_add_found(struct walk *w, const struct process *p, const struct walk_found *found)
{
    w->losses[p->index] = found->losses;
    w->first_ns[p->index] = found->first_ns;
    w->last_ns[p->index] = found->last_ns;
    w->kernels.dropped |= found->kernels_dropped;
    w->texts.dropped |= found->texts_dropped;
}

const struct kernel_name *walk_kernel(const struct walk *w, const struct process *p,
                                      uint64_t number)
{
    return number ? kernel_name_of(&w->names[p->index].kernels, number) : NULL;
}

uint64_t walk_lived_ns(const struct walk *w, const struct process *p)
{
    uint64_t lived_ns = process_lived_ns(p), last_ns = w->last_ns[p->index];
    return lived_ns > last_ns ? lived_ns : last_ns;
}

const struct kernel_name *walk_launched(const struct slice *s)
{
    uint64_t kernel = function_arg_of(s->event.function, s->event.record, ARG_KERNEL, 0);
    return kernel ? walk_handle(s, kernel) : NULL;
}

enum exit_code walk_verdict(const struct walk *w, bool strict)
{
    return recording_verdict(w->rec, w->losses, w->kernels.dropped || w->texts.dropped, strict);
}

bool walk_may_lack_calls(const struct walk *w, const struct process *p)
{
    const struct losses *l = &w->losses[p->index];
    return losses_weight(l) == LOSS_DAMAGE || l->counters[COUNTER_DROPPED];
}

void collective_of(const struct slice *s, struct collective *what)
{
    struct survey *survey = &s->walk->survey;
    *what = (struct collective){0};
    const struct span_node *call =
        s->is_called ? survey_innermost(survey, &s->call, SPAN_LIBRARY) : NULL;
    if (call && call->message.communicator) {
        const struct communicator *c =
            &s->walk->kinds.communicators[call->message.communicator - 1];
        bool is_counted = s->call.flags & CORRELATION_COLLECTIVE;
        *what = (struct collective){c->id, is_counted ? call->message.sequence : 0, c->ranks,
                                    call->message.is_rooted};
    }
    const struct span_node *range =
        !what->communicator && s->is_called ? survey_innermost(survey, &s->call, SPAN_RANGE) : NULL;
    if (range)
        *what = (struct collective){.communicator = range->communicator};
}

/* The first process of the walk: the cost does not depend on the number of others. */
static uint32_t event_walk_first_of(const struct process *only)
{
    return only ? only->index : 0;
}

static uint32_t end_of(const struct walk *w, const struct process *only)
{
    return only ? only->index + 1 : w->rec->count;
}

/* Completes losses and consumers after the last event. */
static int event_walk_finish(const struct pass *p, const struct process *only)
{
    struct walk *w = p->walk;
    uint32_t first = event_walk_first_of(only), end = end_of(w, only);
    int error = 0;
    if (p->ties)
        correlation_finish(&w->survey.calls);
    if (!w->is_surveyed)
        survey_finish_pauses(&w->survey);
    if (p->count)
        error = pass_report_left(p);
    bool skips_blocks = w->filter && w->filter->wants;
    for (uint32_t i = first; skips_blocks && i < end; i++)
        w->losses[i].gpu_unpaired = w->losses[i].gpu_given_up = 0;
    if (error == 0 && !skips_blocks && p->needs & WALK_LOSSES)
        survey_report(&w->survey, first, end, w->losses);
    for (unsigned i = 0; error == 0 && i < p->count; i++)
        if (p->consumers[i].end)
            error = p->consumers[i].end(p->consumers[i].context);
    return error;
}

/* Resets what each walk learns anew, and keeps the facts. */
static void event_walk_begin(const struct pass *p, const struct process *only)
{
    struct walk *w = p->walk;
    const struct walk_filter *f = w->filter;
    if (p->ties)
        survey_begin(&w->survey, only);
    if (!w->is_surveyed) /* from a walk that did not see everything */
        w->survey.origin_ns = w->survey.pause_count = 0;
    for (uint32_t i = event_walk_first_of(only); i < end_of(w, only); i++) {
        w->losses[i] = w->rec->processes[i]->losses;
        kernel_handles_release(&w->kernels, &w->names[i].handles);
        w->first_ns[i] = f && f->first_ns ? f->first_ns[i] : 0;
        w->last_ns[i] = f && f->last_ns ? f->last_ns[i] : 0;
        w->recorded[i] = (struct recorded_now){0};
        if (w->first_ns[i])
            see_origin(w, w->first_ns[i]);
    }
    spans_release(&w->spans);
    device_sources_release(&w->sources);
    spans_init(&w->spans, w->rec, only, &w->texts, w->losses, &w->kinds);
}

/* Whether no consumer needs GPU work, and the walk neither. */
static bool skips_work(const struct pass *p)
{
    bool is_skipped = p->count && !p->ties;
    for (unsigned i = 0; i < p->count; i++)
        is_skipped &= (p->consumers[i].skips & WALK_SKIPS_WORK) != 0;
    return is_skipped;
}

static hears_fn *hears(const struct consumer *c, enum heard as)
{
    switch (as) {
    case HEARD_PLAIN_CALL:
    case HEARD_GRAPH_CALL:
    case HEARD_OPEN_CALL: return c->take_call ? c->take_call : c->take;
    case HEARD_WORK: return c->take_work ? c->take_work : c->take;
    default: return c->take;
    }
}

/* Builds the lists of consumers by their needs and skips. */
static void add_listeners(struct pass *p)
{
    static const unsigned skips[HEARD_KINDS] = {[HEARD_PLAIN_CALL] = WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_GRAPH_CALL] =
                                                    WALK_SKIPS_CALLS & ~WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_WORK] = WALK_SKIPS_WORK,
                                                [HEARD_OTHER] = WALK_SKIPS_OTHERS};
    assert(p->count <= WALK_CONSUMERS_MAX);
    for (enum heard as = 0; as < HEARD_KINDS; as++) {
        struct listener *next = p->listeners[as];
        for (unsigned i = 0; i < p->count; i++) {
            const struct consumer *c = &p->consumers[i];
            *next = (struct listener){c->skips & skips[as] ? NULL : hears(c, as), c->context,
                                      c->sees_filtered};
            next += next->hears != NULL;
        }
        *next = (struct listener){0};
    }
}

static int event_walk_run(struct pass *p, const struct process *only)
{
    struct walk *w = p->walk;
    const struct timeline_scope scope = {.only = only,
                                         .by_process = w->by_process && !w->ns_max,
                                         .wants = w->filter ? w->filter->wants : NULL,
                                         .wants_context = w->filter ? w->filter->context : NULL,
                                         .work_last_ns = skips_work(p) ? w->last_ns : NULL,
                                         .ns_max = w->ns_max,
                                         .is_cut = &w->is_cut};
    malloc_trim(0); /* an earlier walk's memory must not stay beside that of this one */
    p->processes = only || scope.by_process ? 1 : w->rec->count;
    p->timeline = timeline_create(w->rec, w->losses, w->open_bytes_max, &scope);
    event_walk_begin(p, only);
    int more = pass_walk(p);
    if (more == 0)
        more = event_walk_finish(p, only);
    int number = errno;
    progress_clear(w->rec->progress);
    if (more < 0)
        message("%s: %s", timeline_path(p->timeline),
                more == GPUPROF_IO ? strerror(number) : gpuprof_error_text(more));
    timeline_free(p->timeline);
    return more;
}

#define BIT(type) block_type_bit(RECORD_##type)

static bool has_names(void *context, const struct process *p, const struct block_span *b)
{
    (void)context;
    (void)p;
    return !b->types || b->types & (BIT(KERNEL_NAME) | BIT(OP_NAME) | BIT(OP_INPUTS));
}

/* Runs a pass without consumers through the selected blocks. */
static int event_walk_learn(struct walk *w, timeline_wants_fn *wants, void *context,
                            const struct process *only)
{
    struct pass p = {.walk = w, .needs = WALK_STACKS};
    const struct walk_filter filter = {.context = context, .wants = wants}, *shown = w->filter;
    uint64_t ns_max = w->ns_max;
    add_listeners(&p);
    w->filter = &filter;
    w->ns_max = 0;
    int error = event_walk_run(&p, only);
    w->filter = shown;
    w->ns_max = ns_max;
    w->knows_names |= !only && error == 0;
    return error;
}

/* ---- survey ---------------------------------------------------------------------------------- */

/* Ends of processes by their blocks, in place of last_ns. */
struct surveying {
    struct walk *walk;
    uint64_t *last_ns; /* owned, by process index */
};

static void find_ends(struct surveying *s)
{
    const struct block_index *index = &s->walk->rec->index;
    uint64_t ends = BLOCK_STATEFUL; /* types of events that count for the end of a process */
    for (uint8_t type = 1; type < BLOCK_TYPES_OTHER; type++)
        ends |= event_is_visible(type) && type != RECORD_OVERHEAD ? block_type_bit(type) : 0;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct index_entry *e = &index->entries[i];
        uint64_t *last_ns = &s->last_ns[s->walk->rec->loaded[e->process]->index];
        if (e->types & ends &
            ~BLOCK_STATEFUL) /* with other records, one is at or after its begin */
            *last_ns = max_of(*last_ns, e->types & ~ends ? e->time : e->end);
    }
}

/* Whether the block has names, devices, stacks, pauses or other facts, as few blocks do, or may
 * have the first begin or the last end of its process. Times in headers are not exact to the
 * nanosecond, so blocks near by are read, too. */
static bool has_facts(void *context, const struct process *p, const struct block_span *b)
{
    const struct surveying *s = context;
    const uint64_t facts = BIT(KERNEL_NAME) | BIT(OP_NAME) | BIT(OP_INPUTS) | BIT(OP_THREAD) |
                           BIT(DEVICE) | BIT(CONTEXT) | BIT(MODULE) | BIT(PYTHON) | BIT(STACK) |
                           BIT(PAUSE) | BIT(WINDOW) | BIT(LIBRARY_PLAN) | BIT(COMMUNICATOR);
    uint64_t first_ns = s->walk->first_ns[p->index];
    s->walk->survey.has_tensors[p->index] |= (b->types & BIT(TENSOR)) != 0;
    return !b->types || b->types & facts || !first_ns || b->begin_ns < first_ns + AROUND_NS ||
           b->end_ns + AROUND_NS > s->last_ns[p->index];
}

int walk_survey(struct walk *w)
{
    struct surveying s = {w, memory_new(w->rec->count + 1u, sizeof *s.last_ns)};
    find_ends(&s);
    int error = event_walk_learn(w, has_facts, &s, NULL);
    for (uint32_t i = 0; error == 0 && i < w->rec->count; i++)
        if (w->first_ns[i] && w->last_ns[i] + AROUND_NS < s.last_ns[i]) /* a damaged last block */
            w->last_ns[i] = s.last_ns[i];
    w->is_surveyed = error == 0;
    free(s.last_ns);
    return error;
}

int walk_run(struct walk *w, const struct process *only, const struct consumer *consumers,
             unsigned count)
{
    const struct walk_filter *filter = count && w->filter && w->filter->has ? w->filter : NULL;
    struct pass p = {.walk = w, .consumers = consumers, .count = count, .filter = filter};
    for (unsigned i = 0; i < count; i++)
        p.needs |= consumers[i].needs;
    p.ties = p.needs & (WALK_WORK | WALK_CALLS | WALK_LOSSES) || (filter && filter->asks_calls);
    add_listeners(&p);
    w->survey.is_bare = p.ties && !(p.needs & WALK_WORK);
    bool looks_around = p.ties && (!w->survey.is_bare || p.needs & WALK_LOSSES);
    p.needs |= looks_around ? (unsigned)WALK_SPANS : 0;
    /* Records of names may follow their first use; a few blocks have them. */
    int more = w->is_surveyed || w->knows_names ? 0 : event_walk_learn(w, has_names, NULL, only);
    if (more == 0)
        more = event_walk_run(&p, only);
    w->is_surveyed |= p.needs & WALK_STACKS && !only && !w->filter && !w->is_cut && more == 0;
    return more;
}
