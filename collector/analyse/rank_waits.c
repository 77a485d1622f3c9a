/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/rank_waits.h"

#include <stdlib.h>

#include "base/numbers.h"
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

/* The waits of a sequence, from the next one on. */
struct source {
    struct span_reader reader;
    bool has_next;
};

/* Merges the waits of a device's few sequences. */
struct merge {
    struct source *sources; /* owned */
    uint32_t count;
    struct span now; /* current wait */
    bool is_reported;
};

static int advance(struct source *s)
{
    int more = span_next(&s->reader, wait_kind);
    s->has_next = more > 0;
    return more < 0 ? more : 0;
}

static int merge_init(struct merge *m, struct rank_waits *w, uint32_t device)
{
    uint32_t count = 0;
    int error = 0;
    for (uint32_t i = w->firsts[device]; i; i = w->sequences[i - 1].next)
        count++;
    *m = (struct merge){.sources = calloc(count, sizeof *m->sources), .count = count};
    if (!m->sources)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = w->firsts[device]; i && error == 0; i = w->sequences[i - 1].next) {
        struct source *source = &m->sources[--count];
        span_reader_init(&source->reader, &w->spool, &w->sequences[i - 1].stream);
        error = advance(source);
    }
    return error;
}

/* Moves to the wait of the earliest kernel: 1, 0 at the end, or an error. */
static int go_on(struct merge *m)
{
    struct source *first = NULL;
    for (struct source *s = m->sources; s < m->sources + m->count; s++)
        if (s->has_next &&
            (!first || s->reader.span.numbers[WAIT_PLACE] < first->reader.span.numbers[WAIT_PLACE]))
            first = s;
    if (!first)
        return 0;
    m->now = first->reader.span;
    m->is_reported = false;
    int error = advance(first);
    return error < 0 ? error : 1;
}

static int report_span(struct merge *m, uint32_t device, const struct span *span,
                       rank_waited_fn *notify, void *context)
{
    uint64_t at_ns = span->begin_ns;
    int error = 0;
    while (error == 0 && at_ns < span->end_ns) {
        const struct span *now = &m->now;
        while (now->end_ns <= at_ns)
            if ((error = go_on(m)) <= 0)
                return error;
        error = 0;
        at_ns = max_of(at_ns, now->begin_ns);
        uint64_t end_ns = min_of(now->end_ns, span->end_ns);
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
    free(m.sources);
    return more < 0 ? more : error;
}
