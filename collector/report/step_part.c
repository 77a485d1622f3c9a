/* SPDX-License-Identifier: Apache-2.0 */
/* The program's steps in a part. */
#include <stdlib.h>

#include "analyse/rank_report.h"
#include "base/array.h"
#include "error.h"
#include "report/part_report.h"
#include "resolve/steps.h"

static const struct part_field whole_fields[] = {PART(struct steps, kind, .below = STEPS_NONE + 1),
                                                 PART(struct steps, has_sampled),
                                                 PART(struct steps, beyond),
                                                 {0}};

static const struct part_field fields[] = {
    PART(struct step, process), PART(struct step, begin_ns),   PART(struct step, end_ns),
    PART(struct step, number),  PART(struct step, is_partial), {0}};

static int step_part_put(struct report *r, struct part *p)
{
    static const struct steps nothing = {.kind = STEPS_NONE};
    const struct steps *s = r->marks ? r->marks : &nothing;
    part_put(p, whole_fields, s);
    for (uint32_t i = 0; i < s->count; i++)
        part_put_row(p, fields, &s->list[i]);
    part_put_end(p);
    return 0;
}

static int step_part_add(struct combination *c, struct part *p)
{
    struct steps *s = c->report.marks, whole = {0};
    part_get(p, whole_fields, &whole);
    p->has_more |= whole.beyond != 0;
    s->has_sampled |= whole.has_sampled;
    if (!p->has_failed && whole.kind < s->kind) {
        s->kind = whole.kind;
        s->count = 0;
    }
    for (struct step row = {0}; part_get_row(p, fields, &row); row = (struct step){0}) {
        p->has_failed |= row.end_ns < row.begin_ns;
        if (whole.kind <= s->kind && ARRAY_PUSH(s->list, s->count, &row) < 0)
            return GPUPROF_NO_MEMORY;
    }
    return 0;
}

static int step_part_compare(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    return ORDER(a->process->index, b->process->index)
               ?: ORDER(a->begin_ns, b->begin_ns)
               ?: ORDER(a->end_ns, b->end_ns);
}

static int step_part_end(struct combination *c)
{
    struct steps *s = c->report.marks;
    if (s->kind == STEPS_GRAPH && s->has_sampled) /* the same as if one process had recorded all */
        s->count = 0;
    if (s->count)
        qsort(s->list, s->count, sizeof *s->list, step_part_compare);
    for (uint32_t i = 0; i < s->count; i++)
        s->firsts[s->list[i].process->index + 1]++;
    for (uint32_t i = 0; i < c->rec.count; i++)
        s->firsts[i + 1] += s->firsts[i];
    return rank_report_init(&c->report.ranks, &c->rec, s);
}

const struct part_section step_part = {step_part_put, step_part_add, step_part_end};
