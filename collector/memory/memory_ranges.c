/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "memory/memory_report.h"

int memory_ranges_init(struct memory_ranges *r, uint32_t process_count)
{
    r->processes = calloc(process_count + 1u, sizeof *r->processes);
    return r->processes ? 0 : GPUPROF_NO_MEMORY;
}

void memory_ranges_release(struct memory_ranges *r)
{
    free(r->processes);
    free(r->places);
    free(r->rows);
    number_set_release(&r->numbers);
    *r = (struct memory_ranges){0};
}

int memory_ranges_add_place(struct memory_ranges *r, uint32_t process)
{
    const struct memory_in_ranges new = {.process = process,
                                         .next = r->processes[process].first_place};
    int error = ARRAY_PUSH(r->places, r->place_count, &new);
    r->processes[process].first_place = r->place_count;
    return error;
}

/* Begins a range; returns its slot + 1, or 0 if there is no room. */
static uint32_t memory_ranges_begin(struct memory_ranges *r, const struct process *p,
                                    const struct kernel_name *name)
{
    struct memory_open_ranges *process = &r->processes[p->index];
    if (~process->open == 0) {
        r->beyond++;
        return 0;
    }
    unsigned slot = (unsigned)__builtin_ctzll(~process->open);
    process->open |= 1ull << slot;
    process->names[slot] = name;
    for (uint32_t i = process->first_place; i; i = r->places[i - 1].next)
        r->places[i - 1].begin[slot] = r->places[i - 1].peak[slot] = r->places[i - 1].live;
    return slot + 1;
}

static int memory_ranges_end(struct memory_ranges *r, const struct process *p, uint32_t number)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_range_row, place);
    struct memory_open_ranges *process = &r->processes[p->index];
    unsigned slot = number - 1;
    if (!number || number > MEMORY_RANGES_OPEN || !(process->open >> slot & 1))
        return 0;
    process->open &= ~(1ull << slot);
    for (uint32_t i = process->first_place; i; i = r->places[i - 1].next) {
        struct memory_in_ranges *in = &r->places[i - 1];
        uint64_t from = in->begin[slot], peak = in->peak[slot];
        const struct memory_range_row wanted = {.name = process->names[slot], .place = i - 1};
        int64_t found =
            NUMBER_ADD(&r->numbers, &kind, r->rows, r->count, MEMORY_RANGE_ROWS_MAX, &wanted);
        if (found < 0)
            return (int)found;
        in->begin[slot] = in->peak[slot] = 0;
        r->beyond += found == 0;
        if (!found)
            continue;
        struct memory_range_row *row = &r->rows[found - 1];
        row->count++;
        row->peak = peak > row->peak ? peak : row->peak;
        row->rise = peak - from > row->rise ? peak - from : row->rise;
        row->kept += (double)in->live - (double)from;
    }
    return 0;
}

int memory_ranges_take(struct memory_ranges *r, const struct slice *s)
{
    bool is_label = s->op_change != OP_SAME && op_is_label(s->op);
    int error = 0;
    if (s->replaced && op_is_label(s->replaced))
        error = memory_ranges_end(r, s->replaced->process, s->replaced->row);
    if (error < 0)
        return error;
    if (is_label && s->op_change == OP_OPENED)
        s->op->row = memory_ranges_begin(r, s->op->process, s->op->text);
    else if (is_label)
        return memory_ranges_end(r, s->op->process, s->op->row);
    else if (s->op_change == OP_SAME && s->change == RANGE_OPENED)
        s->range->row = memory_ranges_begin(r, s->event.process, s->range->text);
    else if (s->op_change == OP_SAME && (s->change == RANGE_CLOSED || s->change == RANGE_LEFT))
        return memory_ranges_end(r, s->range->process, s->range->row);
    return 0;
}

static int memory_ranges_compare(const void *left, const void *right)
{
    const struct memory_range_row *a = left, *b = right;
    return ORDER(b->peak, a->peak)
               ?: strcmp(a->name ? a->name->raw : "", b->name ? b->name->raw : "")
               ?: ORDER(a->place, b->place);
}

void memory_ranges_sort(struct memory_ranges *r)
{
    if (r->count)
        qsort(r->rows, r->count, sizeof *r->rows, memory_ranges_compare);
}
