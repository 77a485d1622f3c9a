/* SPDX-License-Identifier: Apache-2.0 */
#include "record/cost_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "client_note.h"
#include "record/gpu_record.h"

/* Rows are matched by name, since numbers may change. */
static void take_row(struct cost_table *t, const struct record *r)
{
    for (unsigned i = 0; r->bytes && i < COST_COUNT; i++) {
        if (!word_is((const char *)r->bytes, r->byte_count, cost_infos[i].name))
            continue;
        t->rows[i] = (struct cost_row){
            .count = record_arg(r, COST_ARG_COUNT),
            .timed = record_arg(r, COST_ARG_TIMED),
            .total_ns = record_arg(r, COST_ARG_TOTAL_NS),
        };
        if (!t->rows[i].timed && !t->rows[i].total_ns)
            t->rows[i].unmeasured = t->rows[i].count;
    }
}

static void cost_table_take_step(struct cost_table *t, const struct record *r)
{
    size_t length = r->byte_count < STEP_DOWN_TEXT_BYTES ? r->byte_count : STEP_DOWN_TEXT_BYTES - 1;
    struct step_down s = {.step = r->code,
                          .begin_ns = r->begin,
                          .share = record_arg(r, STEP_DOWN_SHARE),
                          .budget = record_arg(r, STEP_DOWN_BUDGET)};
    if (r->bytes)
        memcpy(s.text, r->bytes, length);
    if (t->step_count < STEPS_DOWN_MAX)
        ARRAY_PUSH(t->steps, t->step_count, &s);
}

void cost_table_take(struct cost_table *t, const struct record *r)
{
    switch (r->type) {
    case RECORD_COST: take_row(t, r); break;
    case RECORD_COST_SUM:
        for (unsigned i = 0; i < COST_SUM_ARG_COUNT; i++)
            t->sum[i] = record_arg(r, i);
        break;
    case RECORD_STEP_DOWN: cost_table_take_step(t, r); break;
    default: break;
    }
}

void cost_table_release(struct cost_table *t)
{
    free(t->steps);
}

uint64_t cost_table_step_ns(const struct cost_table *t, enum ladder_step step)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < t->step_count; i++)
        if (t->steps[i].step == (uint16_t)step && t->steps[i].begin_ns < first_ns)
            first_ns = t->steps[i].begin_ns;
    return first_ns;
}

uint64_t cost_table_untied_ns(const struct cost_table *t)
{
    uint64_t first_ns = UINT64_MAX;
    for (unsigned step = LADDER_QUERIES; step < LADDER_STEP_COUNT; step++) {
        uint64_t ns = cost_table_step_ns(t, (enum ladder_step)step);
        first_ns = ns < first_ns ? ns : first_ns;
    }
    return first_ns;
}

bool cost_table_is_blind(const struct cost_table *t)
{
    uint64_t unmeasured = 0;
    for (unsigned i = 0; i < COST_COUNT; i++)
        unmeasured |= t->rows[i].unmeasured;
    return unmeasured && !t->sum[COST_SUM_COST_NS];
}

/*
 * gpuprof's work before a thread's first record and after its last is not part of the thread's
 * counted time. A short thread can thus cost more than its time.
 */
double cost_share(uint64_t part_ns, uint64_t whole_ns)
{
    if (whole_ns && part_ns >= whole_ns)
        return 1;
    return whole_ns ? (double)part_ns / (double)whole_ns : 0;
}

/* ---- blind times ----------------------------------------------------------------------------- */

static bool says(const struct record *r, const char *text)
{
    return r->bytes && word_is((const char *)r->bytes, r->byte_count, text);
}

void blind_times_take(struct blind_times *t, const struct record *r)
{
    bool is_note = r->type == RECORD_NOTE, gives_up = r->type == RECORD_STEP_DOWN;
    bool is_blind = (gives_up && r->code == LADDER_CUPTI) || (is_note && says(r, CLIENT_NOTE_HAS));
    const struct blind_change change = {r->begin, is_blind};
    if ((is_blind || (is_note && says(r, CLIENT_NOTE_HAD))) && r->begin < CLOCK_NS_MAX &&
        t->count < BLIND_CHANGES_MAX)
        ARRAY_PUSH(t->changes, t->count, &change);
}

void blind_times_release(struct blind_times *t)
{
    free(t->changes);
    *t = (struct blind_times){0};
}

static int cost_table_compare(const void *left, const void *right)
{
    const struct blind_change *a = left, *b = right;
    return ORDER(a->ns, b->ns) ?: a->is_blind - b->is_blind;
}

uint32_t blind_times_find(struct blind_times *t, struct clock_map *clock, struct blind_time **times)
{
    struct blind_time *found = memory_new(t->count + 1u, sizeof *found);
    uint32_t count = 0;
    ARRAY_SORT(t->changes, t->count, cost_table_compare); /* threads have separate blocks */
    for (uint32_t i = 0; i < t->count; i++) {
        bool is_open = count && found[count - 1].end_ns == UINT64_MAX;
        uint64_t ns = clock_map_ns(clock, t->changes[i].ns);
        if (t->changes[i].is_blind && !is_open)
            found[count++] = (struct blind_time){ns, UINT64_MAX};
        else if (!t->changes[i].is_blind && is_open)
            found[count - 1].end_ns = ns;
    }
    *times = found;
    return count;
}
