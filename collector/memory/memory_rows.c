/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/memory_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/message.h"
#include "error.h"

static void memory_rows_release(struct memory_rows *r)
{
    if (r->has_tree)
        call_tree_release(&r->tree);
    free(r->list);
    free(r->leaks);
}

static void sum(struct memory_amount *to, struct memory_amount more)
{
    to->bytes += more.bytes;
    to->blocks += more.blocks;
}

static void add_owner(struct memory_row *row, const struct memory_place *p,
                      const struct memory_owner *o)
{
    struct memory_slope slope;
    row->places++;
    row->processes += p->process != row->process;
    row->process = p->process;
    sum(&row->at_peak, memory_at_peak(p, &o->level));
    sum(&row->end, o->level.live);
    sum(&row->asked, o->asked);
    sum(&row->got, o->got);
    sum(&row->temporary, o->temporary);
    if (!memory_slope(&o->growth, &slope))
        return;
    row->slope += slope.bytes;
    row->error = sqrt(row->error * row->error + slope.error * slope.error);
    row->leaks |= memory_leaks(&o->growth);
    row->grown += o->growth.last > o->growth.first ? o->growth.last - o->growth.first : 0;
}

/* The tree changes only by the looked-up names. */
char *memory_owner_text(const struct memory_rows *r, uint32_t origin)
{
    struct call_tree *tree = r->has_tree ? (struct call_tree *)&r->tree : NULL;
    return memory_origin_text(r->report, origin, tree);
}

struct memory_amount memory_row_shown(const struct memory_rows *r, const struct memory_row *row)
{
    return r->at == MEMORY_AT_PEAK ? row->at_peak : r->at == MEMORY_AT_END ? row->end : row->asked;
}

static int memory_rows_compare(const void *left, const void *right, void *context)
{
    const struct memory_row *a = left, *b = right;
    uint64_t x = memory_row_shown(context, a).bytes, y = memory_row_shown(context, b).bytes;
    return ORDER(a->where, b->where)
               ?: ORDER(y, x) ?: ORDER(b->got.bytes, a->got.bytes) ?: ORDER(a->origin, b->origin);
}

/* Orders leaks by growth, largest first. */
static int compare_leaks(const void *left, const void *right)
{
    const struct memory_row *a = left, *b = right;
    return ORDER(b->grown, a->grown) ?: ORDER(a->origin, b->origin);
}

static int memory_rows_gather(struct memory_rows *r)
{
    static const struct number_kind kind = NUMBER_KEY(struct memory_row, where);
    const struct memory_report *m = r->report;
    struct number_set numbers = {0};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < m->owners.count; i++) {
        const struct memory_owner *o = &m->owners.list[i];
        struct memory_row row = {.origin = o->origin, .where = m->places.list[o->place].where};
        int64_t number = NUMBER_ADD(&numbers, &kind, r->list, r->count, UINT32_MAX, &row);
        if (number < 0)
            error = (int)number;
        else
            add_owner(&r->list[number - 1], &m->places.list[o->place], o);
    }
    number_set_release(&numbers);
    return error;
}

static int memory_rows_make(struct memory_rows *r, struct memory_report *m, enum memory_at at,
                            const char *symbols)
{
    *r = (struct memory_rows){.report = m, .at = at, .has_tree = m->by == MEMORY_BY_STACK};
    int error = memory_rows_gather(r);
    if (r->has_tree) {
        int made = call_tree_init(&r->tree, &m->walk.survey, symbols);
        error = error < 0 ? error : made;
    }
    r->leaks = error < 0 ? NULL : calloc(r->count + 1u, sizeof *r->leaks);
    if (!r->leaks)
        return error < 0 ? error : GPUPROF_NO_MEMORY;
    if (r->count)
        qsort_r(r->list, r->count, sizeof *r->list, memory_rows_compare, r);
    for (uint32_t i = 0; i < r->count; i++) {
        r->at_all[r->list[i].where] += memory_row_shown(r, &r->list[i]).bytes;
        if (r->list[i].leaks)
            r->leaks[r->leak_count++] = r->list[i];
    }
    if (r->leak_count)
        qsort(r->leaks, r->leak_count, sizeof *r->leaks, compare_leaks);
    return 0;
}

struct memory_look *memory_look_create(struct recording *rec, const struct memory_request *request,
                                       const char *symbols, int *error)
{
    struct memory_look *look = calloc(1, sizeof *look);
    *error = look ? memory_report_make(&look->report, rec, request) : GPUPROF_NO_MEMORY;
    if (look && *error >= 0) {
        *error = memory_rows_make(&look->rows, &look->report, request->at, symbols);
        say_error("memory", *error);
    }
    if (*error >= 0)
        return look;
    memory_look_free(look);
    return NULL;
}

void memory_look_free(struct memory_look *look)
{
    if (!look)
        return;
    memory_rows_release(&look->rows);
    memory_report_release(&look->report);
    free(look);
}
