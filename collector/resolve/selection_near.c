/* SPDX-License-Identifier: Apache-2.0 */
/* What of a window's report is read far from the window: the begins and ends of its spans. */
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/selection.h"

/* A record that begins or ends a span of the window. */
struct near_record {
    uint64_t process, ns;
    struct crossing span;
    uint32_t thread; /* number in its process */
    bool ends;
};

static int compare_records(const void *left, const void *right)
{
    const struct near_record *a = left, *b = right;
    return ORDER(a->process, b->process) ?: ORDER(a->ns, b->ns) ?: ORDER(a->thread, b->thread);
}

/* The first one of the process at `ns` or later. */
static const struct near_record *first_from(const struct selection *s, const struct process *p,
                                            uint64_t ns)
{
    uint32_t low = 0, high = s->near_count;
    const struct near_record key = {.process = p->index, .ns = ns};
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_records(&s->near[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return &s->near[low];
}

bool selection_has_near(const struct selection *s, const struct process *p,
                        const struct block_span *b)
{
    uint32_t thread = s->walk->rec->index.entries[b->entry].thread;
    const struct near_record *r = first_from(s, p, b->begin_ns), *end = s->near + s->near_count;
    while (r < end && r->process == p->index && r->ns <= b->end_ns && thread != INDEX_THREADS &&
           r->thread != thread)
        r++;
    return r < end && r->process == p->index && r->ns <= b->end_ns;
}

static bool ends_span(unsigned type)
{
    return type == RECORD_POP || type == RECORD_RANGE_END || type == RECORD_OP_END ||
           type == RECORD_LIBRARY_END;
}

static bool is_near(const struct selection *s, const struct event *e)
{
    const struct process *p = e->process;
    const struct near_record *r = first_from(s, p, e->begin_ns), *end = s->near + s->near_count;
    while (r < end && r->process == p->index && r->ns == e->begin_ns &&
           (r->thread != e->thread->number || r->ends != ends_span(e->record->type)))
        r++;
    return r < end && r->process == p->index && r->ns == e->begin_ns;
}

/* Marks and steps far from the window do not count. */
static bool keeps_record(void *context, const struct event *e)
{
    uint64_t type = block_type_bit(e->record->type);
    if (type & CALL_TYPES)
        return e->record->flags & RECORD_CAPTURED || !api_class_is_plain(e->function->class);
    return type & SELECTION_SPAN_TYPES ? is_near(context, e) : !(type & SELECTION_NEAR_TYPES);
}

static void restore_span(void *context, struct host_span *span, uint64_t end_ns)
{
    const struct selection *s = context;
    const struct process *p = span->process;
    const struct near_record *r = first_from(s, p, span->begin_ns), *end = s->near + s->near_count;
    for (; r < end && r->process == p->index && r->ns == span->begin_ns; r++) {
        if (r->thread != span->thread->number || r->span.end_ns != end_ns)
            continue;
        if (span->type == SPAN_OP) {
            span->inner_ns = r->span.inner_ns;
            span->inside = r->span.inside;
        } else if (span->type == SPAN_LIBRARY) {
            span->has_work |= r->span.has_work;
        }
    }
}

/* Adds the records of the span, if any window needs it or it overlaps what is read of its thread.
 */
static void add_near(struct selection *s, const struct time_span *reach, const struct crossing *c)
{
    struct process *p = s->walk->rec->processes[c->process->index];
    const struct thread *thread = thread_find(&p->threads, c->thread);
    if (!thread || (!c->is_kept && (c->begin_ns > reach[thread->index].end_ns ||
                                    c->end_ns < reach[thread->index].begin_ns)))
        return;
    struct near_record r = {p->index, c->begin_ns, *c, c->thread, false};
    ARRAY_PUSH(s->near, s->near_count, &r);
    r.ns = c->end_ns;
    r.thread = c->ended_by;
    r.ends = true;
    if (c->end_ns != UINT64_MAX)
        ARRAY_PUSH(s->near, s->near_count, &r);
}

/* Since when everything is read: a backward operator is added to a forward one of its step. */
static uint64_t since(const struct selection *s, const struct process *p, const struct steps *steps)
{
    const struct step *step = steps_at(steps, p, s->from_ns);
    return step && step->end_ns > s->from_ns ? step->begin_ns : s->from_ns;
}

/* Marks the entries that are read with all their records, and finds for each thread from when to
 * when. */
static void find_core(struct selection *s, struct time_span *reach, const struct steps *steps)
{
    const struct recording *rec = s->walk->rec;
    for (uint32_t i = 0; i < rec->thread_count; i++)
        reach[i] = (struct time_span){s->from_ns, s->to_ns};
    for (uint32_t i = 0; i < rec->index.count; i++) {
        const struct index_entry *entry = &rec->index.entries[i];
        const struct process *p = rec->loaded[entry->process];
        s->core[i] = s->beside[i] ||
                     (entry->time < selection_later(s->to_ns) && entry->end >= since(s, p, steps));
        for (uint32_t k = 0; s->core[i] && k < p->threads.count; k++) {
            const struct thread *t = p->threads.threads[k];
            struct time_span *of = &reach[t->index];
            if (entry->thread != INDEX_THREADS && entry->thread != t->number)
                continue;
            of->begin_ns = min_of(of->begin_ns, entry->time);
            of->end_ns = max_of(of->end_ns, entry->end);
        }
    }
}

void selection_read_near(struct selection *s, struct crossings *c, const struct steps *steps)
{
    const struct recording *rec = s->walk->rec;
    struct time_span *reach = memory_new(rec->thread_count + 1u, sizeof *reach);
    s->core = memory_new(rec->index.count + 1u, sizeof *s->core);
    s->near = memory_new(1, sizeof *s->near);
    find_core(s, reach, steps);
    for (uint64_t i = 0; i < c->rows.count; i++)
        add_near(s, reach, spool_at(&c->rows, i, false));
    ARRAY_SORT(s->near, s->near_count, compare_records);
    s->filter.core = s->core;
    s->filter.keeps = keeps_record;
    s->filter.restore = restore_span;
    free(reach);
}
