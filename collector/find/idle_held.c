/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_held.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

/* A launch so soon behind a copy, as a part of what the device had been idle before that, may have
 * waited for it. */
#define SOON_PART 10

void idle_held_release(struct idle_held *h)
{
    free(h->spans);
    free(h->rows);
    *h = (struct idle_held){0};
}

bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_maker *launcher)
{
    const struct idle_thread *t = launcher->thread;
    const struct idle_entry *last = t ? idle_thread_last(t) : NULL;
    if (!last || t == gap->maker.thread || gap->call_end_ns <= gap->begin_ns)
        return false;
    return t->depth || last->cause != IDLE_SYNC || gap->end_ns >= last->end_ns;
}

int idle_held_add(struct idle_held *h, const struct idle_gap *gap)
{
    struct idle_rows rows = {0};
    uint64_t causes[IDLE_CAUSES] = {0};
    int error = idle_gap_charge(&rows, causes, gap);
    struct idle_span *spans =
        array_room(h->spans, h->span_count, &h->span_capacity, sizeof *spans, 16);
    h->spans = spans ? spans : h->spans;
    for (uint32_t i = 0; i < rows.count && spans && error == 0; i++) {
        struct idle_row *list =
            array_room(h->rows, h->row_count, &h->row_capacity, sizeof *list, 16);
        if (!list)
            error = GPUPROF_NO_MEMORY;
        h->rows = list ? list : h->rows;
        if (list)
            list[h->row_count++] = rows.list[i];
    }
    idle_rows_release(&rows);
    if (!spans || error < 0)
        return GPUPROF_NO_MEMORY;
    if (!h->span_count)
        h->gap = *gap;
    h->gap.end_ns = gap->end_ns;
    spans[h->span_count++] = (struct idle_span){.begin_ns = gap->begin_ns,
                                                .end_ns = gap->end_ns,
                                                .call_end_ns = gap->call_end_ns,
                                                .rows_end = h->row_count};
    return 0;
}

/* Of each: may the kernel have waited for the copy that ended it, as it had been called for half of
 * the time, or its call, as it came soon behind? */
static void judge(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns)
{
    uint64_t idle_ns = call_ns > busy_ns ? call_ns - busy_ns : 0; /* before the call */
    for (uint32_t i = h->span_count; i; i--) {
        struct idle_span *s = &h->spans[i - 1];
        uint64_t ns = s->end_ns - s->begin_ns;
        bool is_soon = s->call_end_ns <= call_ns && idle_ns < ns / SOON_PART;
        s->is_given = is_soon || call_ns <= s->begin_ns + ns / 2;
        if (call_ns > s->begin_ns)
            idle_ns += (call_ns < s->end_ns ? call_ns : s->end_ns) - s->begin_ns;
    }
}

int idle_held_give(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns, struct idle_rows *rows,
                   uint64_t causes[static IDLE_CAUSES])
{
    uint32_t kept = 0, row = 0;
    int error = 0;
    judge(h, busy_ns, call_ns);
    for (uint32_t i = 0; i < h->span_count; i++) {
        const struct idle_span *s = &h->spans[i];
        for (; row < s->rows_end; row++) {
            const struct idle_row *r = &h->rows[row];
            if (s->is_given && error == 0) {
                error = idle_rows_add_sum(rows, r);
                causes[r->cause] += r->ns;
            }
        }
        if (!s->is_given)
            h->spans[kept++] = *s;
    }
    h->span_count = kept;
    h->row_count = 0;
    return error;
}

int idle_held_charge(struct idle_held *h, const struct idle_gap *of, struct idle_rows *rows,
                     uint64_t causes[static IDLE_CAUSES])
{
    struct idle_gap gap = h->gap;
    gap.begin_ns = h->spans[0].begin_ns;
    gap.spans = h->spans;
    gap.span_count = h->span_count;
    gap.maker = of->maker;
    gap.before = of->before; /* a copy may have been the last to begin before it */
    gap.call_begin_ns = of->call_begin_ns;
    gap.call_end_ns = of->call_end_ns;
    gap.function = of->function;
    gap.stack = of->stack;
    h->span_count = h->row_count = 0;
    return idle_gap_charge(rows, causes, &gap);
}
