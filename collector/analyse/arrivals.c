/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/arrivals.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "read/recording.h"

#define HISTOGRAM_ROWS_LEFT 16384

int arrivals_init(struct arrivals *a, struct walk *walk)
{
    *a = (struct arrivals){.places = {.walk = walk, .has_all_texts = true},
                           .histogram_rows = HISTOGRAM_ROWS_LEFT,
                           .late_of.count_max = ARRIVAL_LATE_MAX};
    a->kinds = calloc(ARRIVAL_KINDS_MAX, sizeof *a->kinds);
    return a->kinds ? 0 : GPUPROF_NO_MEMORY;
}

void arrivals_release(struct arrivals *a)
{
    for (uint32_t i = 0; i < a->row_count; i++)
        histogram_release(&a->rows[i].skews);
    for (uint32_t i = 0; i < a->kind_count; i++)
        free(a->kinds[i]);
    work_places_release(&a->places);
    free(a->rows);
    free(a->late);
    free(a->kinds);
    key_map_release(&a->row_of);
    key_map_release(&a->late_of);
    *a = (struct arrivals){0};
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Finds "AllReduce" in ncclDevKernel_AllReduce_Sum_f32_RING_LL(...). Returns its length. */
static size_t kind_in(const char *name, const char **kind)
{
    const char *end = name + strcspn(name, "(<");
    const char *line = memchr(name, '_', (size_t)(end - name));
    *kind = line ? line + 1 : name;
    size_t length = strcspn(*kind, "_(<");
    return *kind + length > end ? (size_t)(end - *kind) : length;
}

int arrivals_kind_named(struct arrivals *a, const char *name, size_t length, uint32_t *number)
{
    uint32_t i = 0;
    while (i < a->kind_count &&
           (strlen(a->kinds[i]) != length || memcmp(a->kinds[i], name, length) != 0))
        i++;
    *number = i < ARRIVAL_KINDS_MAX ? i : ARRIVAL_KINDS_MAX - 1;
    if (i < a->kind_count || i == ARRIVAL_KINDS_MAX)
        return 0;
    a->kinds[i] = i == ARRIVAL_KINDS_MAX - 1 ? strdup("others") : strndup(name, length);
    a->kind_count += a->kinds[i] != NULL;
    return a->kinds[i] ? 0 : GPUPROF_NO_MEMORY;
}

int arrivals_kind(struct arrivals *a, const struct kernel_name *name, uint32_t *number)
{
    const char *kind;
    size_t length = kind_in(name->shown, &kind);
    return arrivals_kind_named(a, kind, length, number);
}

/* ---- meetings -------------------------------------------------------------------------------- */

/* Sets *number to the row's place + 1. When rows are full, all communicators of a kind share one.
 * Returns 0 or GPUPROF_NO_MEMORY. */
static int arrivals_row_of(struct arrivals *a, uint64_t communicator, uint32_t kind, uint32_t job,
                           uint32_t *number)
{
    struct key key = {communicator, kind, job};
    const struct arrival_row new = {.communicator = communicator, .kind = kind, .job = job};
    bool is_others = !communicator && job == JOB_NONE;
    int error = KEY_MAP_ITEM(&a->row_of, key, a->rows, a->row_count,
                             is_others ? UINT32_MAX : ARRIVAL_ROWS_MAX, &new, number);
    return error == 0 && !*number ? arrivals_row_of(a, 0, kind, JOB_NONE, number) : error;
}

static int add_late(struct arrivals *a, uint32_t row, uint32_t device, uint32_t place, uint64_t ns)
{
    const struct arrival_late new = {.row = row, .device = device, .place = place};
    uint32_t number;
    int error = KEY_MAP_ITEM(&a->late_of, ((struct key){row, device, place}), a->late,
                             a->late_count, ARRIVAL_LATE_MAX, &new, &number);
    if (!number)
        return error;
    a->late[number - 1].count++;
    a->late[number - 1].ns += ns;
    return 0;
}

int arrivals_met(struct arrivals *a, const struct rank_meeting *m, uint32_t job)
{
    const struct rank_kernel_facts *facts = &m->last.facts;
    uint64_t ns = m->last.begin_ns - m->first_ns;
    uint32_t number;
    int error = arrivals_row_of(a, m->sequence->communicator, facts->kind, job, &number);
    if (error < 0)
        return error;
    struct arrival_row *row = &a->rows[number - 1];
    row->count++;
    row->ranks = m->count > row->ranks ? m->count : row->ranks;
    row->skew_ns += ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    error = histogram_add(&row->skews, ns, 1, &a->histogram_rows);
    uint32_t place =
        facts->idle_ns >= ns / 2 && facts->idle_place ? facts->idle_place : facts->work_place;
    return error == 0 && ns ? add_late(a, number - 1, m->sequence->device, place, ns) : error;
}

void arrivals_missed(struct arrivals *a, const struct rank_kernel *k, enum rank_miss why)
{
    a->missed[why] += strcmp(a->kinds[k->facts.kind], "SendRecv") != 0;
}

/* ---- when all is known ----------------------------------------------------------------------- */

/* Sorts by row and device, then places by time, longest first. Equal ones stay in the order of
 * their first use. */
static int compare_late(const void *left, const void *right)
{
    const struct arrival_late *a = left, *b = right;
    return ORDER(a->row, b->row) ?: ORDER(a->device, b->device) ?: ORDER(b->ns, a->ns) ?:
           ORDER(a->place, b->place);
}

static int arrivals_compare_rows(const void *left, const void *right, void *context)
{
    const struct arrival_row *a = left, *b = right;
    const struct arrivals *of = context;
    return ORDER(b->skew_ns, a->skew_ns) ?: strcmp(of->kinds[a->kind], of->kinds[b->kind]) ?:
           ORDER(a->job, b->job) ?: ORDER(a->communicator, b->communicator);
}

void arrivals_finish(struct arrivals *a)
{
    if (a->late_count)
        qsort(a->late, a->late_count, sizeof *a->late, compare_late);
    for (uint32_t i = 0; i < a->late_count;) {
        const struct arrival_late *first = &a->late[i];
        struct arrival_row *row = &a->rows[first->row];
        uint64_t count = 0, ns = 0;
        for (; i < a->late_count && a->late[i].row == first->row &&
               a->late[i].device == first->device;
             i++) {
            count += a->late[i].count;
            ns += a->late[i].ns;
        }
        /* How often it was last says little: when ranks arrive together, one is last by a few
         * ns. */
        if (ns <= row->late_ns)
            continue;
        row->late = first->device;
        row->place = first->place;
        row->late_count = count;
        row->late_ns = ns;
    }
    if (a->row_count)
        qsort_r(a->rows, a->row_count, sizeof *a->rows, arrivals_compare_rows, a);
}
