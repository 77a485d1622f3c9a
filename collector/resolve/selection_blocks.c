/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the blocks that a walk with a selection reads. */
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/selection.h"

/* Context of calls, which a table of rows (rows.h) does not need. It needs a link (rare), which may
 * be in a later block than its call. */
#define AROUND_TYPES                                                                               \
    (SELECTION_SPAN_TYPES | block_type_bit(RECORD_MEMORY) | block_type_bit(RECORD_TENSOR))

/* Whether the block has nothing in these steps or ranges. With `matters`, earlier blocks are needed
 * in any case. Their work may come much later. */
static bool is_beside(const struct time_spans *spans, const struct block_span *b, bool has_work,
                      bool matters)
{
    if (!spans->count)
        return !matters;
    return (!matters && selection_later(b->end_ns) < spans->list[0].begin_ns) ||
           (!has_work && b->begin_ns >= selection_later(spans->list[spans->count - 1].end_ns));
}

bool selection_reads_all_of(const struct process *p)
{
    return p->live.count || p->end_reason != END_EXIT;
}

/* Other records are read at any time: few blocks have them, and they explain others. */
static bool is_passed(const struct selection *s, uint64_t types)
{
    uint64_t passed = SELECTION_NEAR_TYPES | (s->core                     ? SELECTION_SPAN_TYPES
                                              : s->reads == CALLS_OF_ROWS ? AROUND_TYPES
                                                                          : 0);
    return types && !(types & ~passed);
}

bool selection_wants(void *context, const struct process *p, const struct block_span *b)
{
    const struct selection *s = context;
    bool has_calls = b->types & CALL_TYPES, has_work = b->types & WORK_TYPES;
    bool is_stateful = has_calls && (b->types & BLOCK_STATEFUL || !s->filter.is_span);
    unsigned beside = s->beside ? s->beside[b->entry] : 0;
    if (!is_passed(s, b->types) || selection_reads_all_of(p) ||
        (has_calls && s->reads == CALLS_OF_ALL && (is_stateful || !s->filter.is_near)) ||
        (has_work && s->keeps_work) || beside & BESIDE_CALLS ||
        (beside && s->reads == CALLS_OF_ALL))
        return true;
    bool matters = is_stateful && s->reads == CALLS_UP_TO;
    if (s->core)
        return matters || s->core[b->entry] || selection_has_near(s, p, b);
    bool is_wanted = b->begin_ns < (has_calls ? selection_later(s->to_ns) : s->to_ns) &&
                     (matters || b->end_ns >= s->from_ns);
    for (unsigned i = 0; is_wanted && i < SELECTION_SPANS; i++)
        is_wanted = !s->spans[i] || !is_beside(&s->spans[i][p->index], b, has_work, matters);
    return is_wanted;
}

/* Of a thread, or of a process in entries of several threads: how many records were found before
 * the selection, in entries with calls and in those with work, and after it. */
struct neighbours {
    uint64_t calls, work, next;
};

struct search {
    const struct selection *selection;
    struct neighbours *all; /* by thread, then by process */
    uint64_t records_max;   /* with calls, of a thread, before the selection */
    uint64_t work_ns;       /* collectives of the window go on until then */
};

static bool is_one_of(uint64_t *count, uint64_t added, uint64_t most)
{
    bool is_it = *count < most;
    *count += is_it ? added : 0;
    return is_it;
}

/* Takes an entry: after the selection in the order of time, before it in the reverse order. Returns
 * why it is read, if that is known. */
static uint8_t find_beside(const struct search *f, uint32_t at, bool is_after)
{
    const struct selection *s = f->selection;
    const struct recording *rec = s->walk->rec;
    const struct index_entry *entry = &rec->index.entries[at];
    struct process *p = rec->loaded[entry->process];
    const struct time_span bounds = s->filter.bounds(s->filter.context, p);
    const struct thread *thread =
        entry->thread == INDEX_THREADS ? NULL : thread_find(&p->threads, entry->thread);
    struct neighbours *n = &f->all[thread ? thread->index : rec->thread_count + p->index];
    uint64_t threads = thread ? 1 : p->thread_count;
    uint64_t types = entry->types ? entry->types : UINT64_MAX;
    bool has_work = types & WORK_TYPES;
    bool has_calls = types & (SELECTION_SPAN_TYPES | SELECTION_NEAR_TYPES) & ~WORK_TYPES;
    if ((entry->time >= bounds.end_ns) != is_after)
        return s->beside[at];
    if (is_after)
        return ((has_calls || has_work) &&
                is_one_of(&n->next, entry->records, threads * SELECTION_RECORDS_NEAR)) ||
                       (has_work && entry->time < f->work_ns)
                   ? BESIDE_IDLE
                   : 0;
    if (has_calls && entry->time < bounds.begin_ns &&
        is_one_of(&n->calls, entry->records, threads * f->records_max))
        return types & CALL_TYPES ? BESIDE_CALLS : BESIDE_IDLE;
    if (entry->end >= bounds.begin_ns) /* of a run, the blocks outside the window are read, too */
        return entry->count > 1 ? BESIDE_IDLE : 0;
    return has_work && is_one_of(&n->work, entry->records, threads * SELECTION_RECORDS_NEAR)
               ? BESIDE_IDLE
               : 0;
}

/* Until when work goes on in the blocks that have some of the window. Those with rare records may
 * have times from anywhere. */
static uint64_t end_of_work(const struct selection *s)
{
    const struct block_index *index = &s->walk->rec->index;
    const uint64_t others = ~(SELECTION_NEAR_TYPES | AROUND_TYPES);
    uint64_t end_ns = s->to_ns;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        if (entry->types & WORK_TYPES && !(entry->types & others) && entry->time < s->to_ns &&
            entry->end >= s->from_ns)
            end_ns = max_of(end_ns, entry->end);
    }
    return end_ns;
}

void selection_find_beside(struct selection *s)
{
    const struct recording *rec = s->walk->rec;
    uint32_t count = rec->index.count;
    struct search f = {.selection = s,
                       .all = memory_new(rec->thread_count + rec->count + 1u, sizeof *f.all),
                       .records_max = recording_may_have(rec, SELECTION_SPAN_TYPES)
                                          ? SELECTION_RECORDS_SPANS
                                          : SELECTION_RECORDS_CALLS,
                       .work_ns = end_of_work(s)};
    s->beside = memory_new(count + 1u, sizeof *s->beside);
    for (uint32_t i = 0; i < count; i++)
        s->beside[i] = find_beside(&f, i, true);
    for (uint32_t i = count; i-- > 0;)
        s->beside[i] = find_beside(&f, i, false);
    free(f.all);
}
