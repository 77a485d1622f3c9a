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

/* Count and time of each kind and name, in the median step and in the slowest. */
static const struct sums_info differ_info = {.keys = {KEY_NUMBER, KEY_TEXT},
                                             .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD},
                                             .rows_max = STEP_CHANGES_MAX};

void step_differences_init(struct step_differences *d, struct walk *walk)
{
    sums_init(&d->sums, &differ_info, walk, NULL);
}

void step_differences_release(struct step_differences *d)
{
    free(d->list);
    sums_release(&d->sums);
}

int step_differences_add(struct step_differences *d, enum change_kind kind,
                         const struct process *process, uint64_t begin_ns,
                         const struct kernel_name *name, uint64_t ns)
{
    int which = compared_in(d, process, begin_ns);
    struct sums_row *row = which < 0 ? NULL : sums_row(&d->sums, kind, sums_name_key(name), 0);
    if (!row)
        return which < 0 ? 0 : GPUPROF_NO_MEMORY;
    row->values[which]++;
    row->values[2 + which] += ns;
    return 0;
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

/* Unnamed items, and those beyond the maximum, share one row. */
int step_differences_list(struct step_differences *d)
{
    int error = 0;
    if (!d->compared[0])
        return 0;
    for (uint32_t i = 0; error == 0 && i < STEP_PARTS + d->sums.count; i++) {
        struct step_change change = {.kind = CHANGE_PART};
        if (i < STEP_PARTS) {
            change.name = step_part_names[i];
            change.ns[0] = d->compared[0]->parts[i];
            change.ns[1] = d->compared[1]->parts[i];
        } else {
            const struct sums_row *row = &d->sums.rows[i - STEP_PARTS];
            bool is_others = sums_is_others(row) || !row->keys[1];
            const struct kernel_name *name = (const void *)(uintptr_t)row->keys[1];
            change.kind = sums_is_others(row) ? CHANGE_OPERATOR : (enum change_kind)row->keys[0];
            change.name = is_others ? "(others)" : name->shown;
            memcpy(change.count, row->values, sizeof change.count);
            memcpy(change.ns, row->values + 2, sizeof change.ns);
        }
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
