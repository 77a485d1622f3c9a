/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of the slowest step (step_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/step_report.h"
#include "analyse/step_waits.h"
#include "base/array.h"
#include "error.h"

/* 0 if it began in the median step, 1 in the slowest, -1 in neither. */
static int compared_in(const struct step_differences *d, const struct process *p, uint64_t begin_ns)
{
    for (int i = 0; d->compared[0] && i < 2; i++) {
        const struct step *step = d->compared[i];
        if (step->process == p && step->begin_ns <= begin_ns && begin_ns < step->end_ns)
            return i;
    }
    return -1;
}

void step_differences_release(struct step_differences *d)
{
    free(d->list);
    key_map_release(&d->places);
}

int step_differences_add(struct step_differences *d, enum change_kind kind,
                         const struct process *process, uint64_t begin_ns,
                         const struct kernel_name *name, uint64_t ns)
{
    struct step_change new = {.kind = kind, .name = name ? name->shown : "(others)"};
    int which = compared_in(d, process, begin_ns);
    uint32_t number;
    if (which < 0)
        return 0;
    int error = KEY_MAP_ITEM(&d->places, ((struct key){kind, (uintptr_t)name, 0}), d->list,
                             d->count, STEP_CHANGES_MAX, &new, &number);
    if (number) {
        d->list[number - 1].count[which]++;
        d->list[number - 1].ns[which] += ns;
    }
    return error;
}

static uint64_t difference(const struct step_change *c)
{
    return c->ns[1] > c->ns[0] ? c->ns[1] - c->ns[0] : c->ns[0] - c->ns[1];
}

static int compare_changes(const void *left, const void *right)
{
    const struct step_change *a = left, *b = right;
    int order = ORDER(a->kind, b->kind);
    order = order ? order : ORDER(difference(b), difference(a));
    return order ? order : strcmp(a->name, b->name);
}

int step_differences_list(struct step_differences *d)
{
    int error = 0;
    for (uint32_t i = 0; d->compared[0] && error == 0 && i < STEP_PARTS; i++) {
        struct step_change change = {.kind = CHANGE_PART,
                                     .name = step_part_names[i],
                                     .ns = {d->compared[0]->parts[i], d->compared[1]->parts[i]}};
        error = ARRAY_PUSH(d->list, d->count, &change);
    }
    if (d->count)
        qsort(d->list, d->count, sizeof *d->list, compare_changes);
    return error;
}

static void find_slowest(struct step_report *r)
{
    for (uint32_t i = 0; i < r->all.whole && r->differs.slowest_count < SLOWEST_SHOWN; i++) {
        const struct step *step = &r->steps.list[r->order[i]];
        if (!step_has_only_waited(&r->steps, r->waits, step))
            r->differs.slowest[r->differs.slowest_count++] = step;
    }
}

/* Compares the slowest step with the median one of its process. */
static void compare_slowest(struct step_report *r)
{
    const struct step *slowest = r->differs.slowest[0], *step = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->all.whole; i++)
        count += r->steps.list[r->order[i]].process == slowest->process;
    for (uint32_t i = 0, left = count / 2 + 1; left > 0 && i < r->all.whole; i++) {
        step = &r->steps.list[r->order[i]];
        left -= step->process == slowest->process;
    }
    if (count > 1 && step != slowest && !step->is_blind && !slowest->is_blind) {
        r->differs.compared[0] = step;
        r->differs.compared[1] = slowest;
    }
}

void step_differences_find(struct step_report *r)
{
    find_slowest(r);
    if (r->differs.slowest_count)
        compare_slowest(r);
}
