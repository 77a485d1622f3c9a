/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/rank_waits.h"

#include <stdlib.h>

#include "error.h"

/* The numbers of a wait's span. */
enum { WAIT_PLACE, WAIT_FOR, WAIT_NUMBERS };

static const struct span_kind wait_kind = {WAIT_NUMBERS, 1u << WAIT_PLACE};

/* The waits of a sequence; the sequences of a device form a list. */
struct waits_of {
    struct span_stream stream;
    uint32_t next; /* sequence + 1; 0: none */
};

int rank_waits_init(struct rank_waits *w, uint32_t sequence_count, uint32_t device_count)
{
    *w = (struct rank_waits){.sequences = calloc(sequence_count + 1u, sizeof *w->sequences),
                             .firsts = calloc(device_count + 1u, sizeof *w->firsts)};
    spool_init(&w->spool, sizeof(struct byte_chunk));
    return w->sequences && w->firsts ? 0 : GPUPROF_NO_MEMORY;
}

void rank_waits_release(struct rank_waits *w)
{
    spool_release(&w->spool);
    free(w->sequences);
    free(w->firsts);
}

int rank_waits_put(struct rank_waits *w, uint32_t sequence, uint32_t device,
                   const struct rank_wait *wait)
{
    struct waits_of *of = &w->sequences[sequence];
    const struct span span = {
        .begin_ns = wait->begin_ns,
        .end_ns = wait->end_ns,
        .numbers = {[WAIT_PLACE] = wait->place, [WAIT_FOR] = wait->waited_for}};
    if (wait->begin_ns >= wait->end_ns)
        return 0;
    if (!of->stream.count) {
        of->next = w->firsts[device];
        w->firsts[device] = sequence + 1;
    }
    return span_put(&w->spool, &of->stream, &span, wait_kind);
}

/* Merges the waits of a device's sequences: a heap of readers with the earliest kernel at the
 * root. */
struct merge {
    struct span_reader *readers; /* owned */
    struct span_reader **heap;   /* owned */
    uint32_t count;
    struct span now; /* current wait */
    bool is_reported;
};

static bool comes_before(const struct span_reader *a, const struct span_reader *b)
{
    return a->span.numbers[WAIT_PLACE] < b->span.numbers[WAIT_PLACE];
}

static int compare_readers(const void *left, const void *right)
{
    const struct span_reader *a = *(struct span_reader *const *)left,
                             *b = *(struct span_reader *const *)right;
    return comes_before(a, b) ? -1 : comes_before(b, a);
}

static void sink_root(struct merge *m)
{
    struct span_reader *root = m->heap[0];
    uint32_t at = 0, child;
    for (; (child = 2 * at + 1) < m->count; at = child) {
        child += child + 1 < m->count && comes_before(m->heap[child + 1], m->heap[child]);
        if (!comes_before(m->heap[child], root))
            break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = root;
}

static int merge_init(struct merge *m, struct rank_waits *w, uint32_t device)
{
    uint32_t count = 0;
    int more = 1;
    for (uint32_t i = w->firsts[device]; i; i = w->sequences[i - 1].next)
        count++;
    *m = (struct merge){.readers = calloc(count, sizeof *m->readers),
                        .heap = calloc(count, sizeof(struct span_reader *))};
    if (!m->readers || !m->heap)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = w->firsts[device]; i && more > 0; i = w->sequences[i - 1].next) {
        struct span_reader *reader = m->heap[m->count] = &m->readers[m->count];
        span_reader_init(reader, &w->spool, &w->sequences[i - 1].stream);
        more = span_next(reader, wait_kind);
        m->count++;
    }
    qsort(m->heap, m->count, sizeof *m->heap, compare_readers);
    return more < 0 ? more : 0;
}

/* Advances to the next wait, which must exist. 0 or an error. */
static int go_on(struct merge *m)
{
    m->now = m->heap[0]->span;
    m->is_reported = false;
    int more = span_next(m->heap[0], wait_kind);
    if (more == 0)
        m->heap[0] = m->heap[--m->count];
    if (m->count)
        sink_root(m);
    return more < 0 ? more : 0;
}

static int report_span(struct merge *m, uint32_t device, const struct span *span,
                       rank_waited_fn *notify, void *context)
{
    uint64_t at_ns = span->begin_ns;
    int error = 0;
    while (error == 0 && at_ns < span->end_ns) {
        const struct span *now = &m->now;
        if (now->end_ns <= at_ns) {
            if (!m->count)
                return 0;
            error = go_on(m);
            continue;
        }
        at_ns = at_ns > now->begin_ns ? at_ns : now->begin_ns;
        uint64_t end_ns = now->end_ns < span->end_ns ? now->end_ns : span->end_ns;
        if (at_ns >= end_ns)
            return 0;
        error = notify(context, device, (uint32_t)now->numbers[WAIT_FOR], !m->is_reported, at_ns,
                       end_ns);
        m->is_reported = true;
        at_ns = end_ns;
    }
    return error;
}

int rank_waits_report(struct rank_waits *w, uint32_t device, struct span_reader *alone,
                      rank_waited_fn *notify, void *context)
{
    struct merge m;
    if (!w->firsts[device])
        return 0;
    int error = merge_init(&m, w, device), more = 1;
    while (error == 0 && (more = span_next(alone, (struct span_kind){0})) > 0)
        error = report_span(&m, device, &alone->span, notify, context);
    free(m.readers);
    free(m.heap);
    return more < 0 ? more : error;
}
