/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the blocks that a walk with a selection reads. */
#include <stdlib.h>

#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/selection.h"

/* Context of calls, which a table of rows (rows.h) does not need. It needs a link (rare), which may
 * be in a later block than its call. */
#define AROUND_TYPES                                                                               \
    (block_type_bit(RECORD_PUSH) | block_type_bit(RECORD_POP) |                                    \
     block_type_bit(RECORD_RANGE_START) | block_type_bit(RECORD_RANGE_END) |                       \
     block_type_bit(RECORD_MARK) | block_type_bit(RECORD_STEP) | block_type_bit(RECORD_OP_BEGIN) | \
     block_type_bit(RECORD_OP_END) | block_type_bit(RECORD_LIBRARY_BEGIN) |                        \
     block_type_bit(RECORD_LIBRARY_END) | block_type_bit(RECORD_MEMORY) |                          \
     block_type_bit(RECORD_TENSOR) | block_type_bit(RECORD_CONTENT) |                              \
     block_type_bit(RECORD_SILENCE))

/* Clock noise can place work this long before its call. */
static uint64_t selection_blocks_later(uint64_t ns)
{
    return ns < UINT64_MAX - AHEAD_NS ? ns + AHEAD_NS : UINT64_MAX;
}

/* Whether the block has nothing in these steps or ranges. With `matters`, earlier blocks are needed
 * in any case. Their work may come much later. */
static bool is_beside(const struct time_spans *spans, const struct block_span *b, bool has_work,
                      bool matters)
{
    if (!spans->count)
        return !matters;
    return (!matters && selection_blocks_later(b->end_ns) < spans->list[0].begin_ns) ||
           (!has_work &&
            b->begin_ns >= selection_blocks_later(spans->list[spans->count - 1].end_ns));
}

/* The last calls of a process that did not exit normally show why it hung. */
static bool reads_all_of(const struct process *p)
{
    return p->live.count || p->end_reason != END_EXIT;
}

/* Other records are read at any time: few blocks have them, and they explain others. */
static bool is_passed(const struct selection *s, uint64_t types)
{
    uint64_t passed = CALL_TYPES | WORK_TYPES | (s->reads == CALLS_OF_ROWS ? AROUND_TYPES : 0);
    return types && !(types & ~passed);
}

bool selection_wants(void *context, const struct process *p, const struct block_span *b)
{
    const struct selection *s = context;
    bool has_calls = b->types & CALL_TYPES, has_work = b->types & WORK_TYPES, matters;
    if (!is_passed(s, b->types) || reads_all_of(p) || (has_calls && s->reads == CALLS_OF_ALL) ||
        (has_work && s->keeps_work))
        return true;
    matters = has_calls && (s->reads == CALLS_UP_TO || (s->called && s->called[b->entry]));
    bool is_wanted = b->begin_ns < (has_calls ? selection_blocks_later(s->to_ns) : s->to_ns) &&
                     (matters || b->end_ns >= s->from_ns);
    for (unsigned i = 0; is_wanted && i < SELECTION_SPANS; i++)
        is_wanted = !s->spans[i] || !is_beside(&s->spans[i][p->index], b, has_work, matters);
    return is_wanted;
}

/* Whether the entry may hold calls of a thread before the selection. */
static bool is_before(const struct selection *s, const struct process *p,
                      const struct index_entry *entry)
{
    return (!entry->types || entry->types & CALL_TYPES) &&
           entry->time < s->filter.bounds(s->filter.context, p).begin_ns;
}

void selection_find_calls(struct selection *s)
{
    const struct recording *rec = s->walk->rec;
    uint8_t *seen = memory_new(rec->thread_count + 1u, sizeof *seen);
    s->called = memory_new(rec->index.count + 1u, sizeof *s->called);
    for (uint32_t i = rec->index.count; i-- > 0;) {
        const struct index_entry *entry = &rec->index.entries[i];
        struct process *p = rec->loaded[entry->process];
        const struct thread *thread =
            entry->thread == INDEX_THREADS ? NULL : thread_find(&p->threads, entry->thread);
        uint8_t *count = &seen[thread ? thread->index : rec->thread_count];
        s->called[i] = is_before(s, p, entry) && (!thread || *count < SELECTION_BLOCKS_BEFORE);
        *count += s->called[i] && thread;
    }
    free(seen);
}
