/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "memory/memory_report.h"

/* Begins a range; returns its slot + 1, or 0 if there is no room. */
static uint32_t memory_ranges_begin(struct memory_report *m, const struct process *p,
                                    const struct kernel_name *name)
{
    struct memory_process *own = &m->processes[p->index];
    if (~own->ranges.open == 0) {
        m->ranges.beyond++;
        return 0;
    }
    unsigned slot = (unsigned)__builtin_ctzll(~own->ranges.open);
    own->ranges.open |= 1ull << slot;
    own->ranges.names[slot] = name;
    for (uint32_t i = own->ranges.first_place; i; i = m->places.list[i - 1].in_ranges.next) {
        struct memory_place *place = &m->places.list[i - 1];
        place->in_ranges.begin[slot] = place->in_ranges.peak[slot] = place->all.live.bytes;
    }
    return slot + 1;
}

static int memory_ranges_end(struct memory_report *m, const struct process *p, uint32_t number)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_range_row, place);
    struct memory_process *own = &m->processes[p->index];
    unsigned slot = number - 1;
    if (!number || number > MEMORY_RANGES_OPEN || !(own->ranges.open >> slot & 1))
        return 0;
    own->ranges.open &= ~(1ull << slot);
    for (uint32_t i = own->ranges.first_place; i; i = m->places.list[i - 1].in_ranges.next) {
        struct memory_place *place = &m->places.list[i - 1];
        uint64_t from = place->in_ranges.begin[slot], peak = place->in_ranges.peak[slot];
        const struct memory_range_row wanted = {.name = own->ranges.names[slot], .place = i - 1};
        int64_t found = NUMBER_ADD(&m->ranges.numbers, &kind, m->ranges.rows, m->ranges.count,
                                   MEMORY_RANGE_ROWS_MAX, &wanted);
        if (found < 0)
            return (int)found;
        place->in_ranges.begin[slot] = place->in_ranges.peak[slot] = 0;
        m->ranges.beyond += found == 0;
        if (!found)
            continue;
        struct memory_range_row *row = &m->ranges.rows[found - 1];
        row->count++;
        row->peak = peak > row->peak ? peak : row->peak;
        row->rise = peak - from > row->rise ? peak - from : row->rise;
        row->kept += (double)place->all.live.bytes - (double)from;
    }
    return 0;
}

int memory_ranges_take(struct memory_report *m, const struct slice *s)
{
    bool is_label = s->op_change != OP_SAME && op_is_label(s->op);
    bool is_range = s->op_change == OP_SAME;
    int error = 0;
    if (s->replaced && op_is_label(s->replaced))
        error = memory_ranges_end(m, s->replaced->process, s->replaced->row);
    if (error < 0)
        return error;
    if (is_label && s->op_change == OP_OPENED)
        s->op->row = memory_ranges_begin(m, s->op->process, s->op->text);
    else if (is_label)
        return memory_ranges_end(m, s->op->process, s->op->row);
    else if (is_range && s->change == RANGE_OPENED)
        s->range->row = memory_ranges_begin(m, s->event.process, s->range->text);
    else if (is_range && (s->change == RANGE_CLOSED || s->change == RANGE_LEFT))
        return memory_ranges_end(m, s->range->process, s->range->row);
    return 0;
}

static int memory_ranges_compare(const void *left, const void *right)
{
    const struct memory_range_row *a = left, *b = right;
    return ORDER(b->peak, a->peak)
               ?: strcmp(a->name ? a->name->raw : "", b->name ? b->name->raw : "")
               ?: ORDER(a->place, b->place);
}

void memory_ranges_sort(struct memory_report *m)
{
    if (m->ranges.count)
        qsort(m->ranges.rows, m->ranges.count, sizeof *m->ranges.rows, memory_ranges_compare);
}
