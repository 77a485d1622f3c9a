/* SPDX-License-Identifier: Apache-2.0 */
#include "report/step_part.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

#define STEP_PART_BYTES 5 /* in a part, at least */

static void carry_step(struct part *p, struct step *s, uint32_t *process, uint64_t *before_ns)
{
    uint64_t delta_ns = s->begin_ns - *before_ns, ns = s->end_ns - s->begin_ns;
    part_u32(p, process);
    part_number(p, &delta_ns);
    part_number(p, &ns);
    part_number(p, &s->number);
    part_flag(p, &s->is_partial);
    s->begin_ns = *before_ns + delta_ns;
    *before_ns = s->end_ns = s->begin_ns + ns;
}

void step_part_put(const struct steps *s, struct part *p)
{
    uint32_t kind = s ? s->kind : STEPS_NONE, count = s ? s->count : 0;
    uint64_t beyond = s ? s->beyond : 0, before_ns = 0;
    bool has_sampled = s && s->has_sampled;
    part_u32(p, &kind);
    part_flag(p, &has_sampled);
    part_number(p, &beyond);
    part_count(p, &count, STEP_PART_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        struct step step = s->list[i];
        carry_step(p, &step, &(uint32_t){step.process->index}, &before_ns);
    }
}

int step_part_add(struct steps *s, struct part *p, struct process *const *processes,
                  uint32_t process_count, bool *has_more)
{
    uint32_t kind = STEPS_NONE, count = 0;
    uint64_t beyond = 0, before_ns = 0;
    bool has_sampled = false;
    part_u32(p, &kind);
    part_flag(p, &has_sampled);
    part_number(p, &beyond);
    part_count(p, &count, STEP_PART_BYTES);
    p->has_failed |= kind > STEPS_NONE;
    *has_more |= beyond != 0;
    s->has_sampled |= has_sampled;
    if (kind < s->kind) {
        s->kind = (enum step_kind)kind;
        s->count = 0;
    }
    for (uint32_t i = 0; i < count && !p->has_failed; i++) {
        struct step step = {0}, *list;
        uint32_t process = 0;
        carry_step(p, &step, &process, &before_ns);
        p->has_failed |= process >= process_count;
        if (p->has_failed || kind > s->kind)
            continue;
        if (!(list = array_room(s->list, s->count, &s->capacity, sizeof *list, 256)))
            return GPUPROF_NO_MEMORY;
        s->list = list;
        step.process = processes[process];
        list[s->count++] = step;
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    if (a->process->index != b->process->index)
        return a->process->index < b->process->index ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

void step_part_add_end(struct steps *s)
{
    if (s->kind == STEPS_GRAPH && s->has_sampled) /* as if one process had recorded them all */
        s->count = 0;
    if (s->count)
        qsort(s->list, s->count, sizeof *s->list, compare);
    for (uint32_t i = 0; i < s->count; i++)
        s->firsts[s->list[i].process->index + 1]++;
    for (uint32_t i = 0; i < s->walk->rec->count; i++)
        s->firsts[i + 1] += s->firsts[i];
}
