/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/hang.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"
#include "resolve/event_walk.h"

/* ---- processes that make no call ------------------------------------------------------------- */

#define LIFE_PART 10 /* share of its life, for a process that ended by itself */

static bool has_ended_itself(const struct process *p)
{
    return !process_runs(p) && p->end_reason && p->end_reason != END_KILLED;
}

/* Can it have made unrecorded calls? A flight recorder dumps late; --overhead-max first gives up
 * queries, in which a program may wait. */
static bool hang_is_unsure(const struct process *p)
{
    const uint64_t *counters = p->losses.counters;
    return counters[COUNTER_ENDED] || counters[COUNTER_PASSED_BY] || p->losses.flight_unread ||
           p->dump_count;
}

/* Before the walk: can the process be quiet, so that its stacks are needed? */
static bool quiet_may_be(const struct process *p)
{
    return p->min_ns <= p->max_ns && p->lived_ns >= p->max_ns + QUIET_NS_MIN && !hang_is_unsure(p);
}

/* Is it in a row of the collectives, waiting or waited for? */
static bool is_pending(const struct collectives *c, const struct process *p)
{
    for (uint32_t i = 0; i < c->pending.row_count; i++)
        if (c->pending.rows[i].process == p)
            return true;
    return false;
}

static bool is_longer(const void *item, const void *other)
{
    return ((const struct quiet_row *)item)->for_ns > ((const struct quiet_row *)other)->for_ns;
}

/* Finds quiet processes, after the walk and collectives_judge. */
static void quiet_judge(struct quiet *q, const struct collectives *c)
{
    const struct walk *w = c->walk;
    if (w->is_cut || (w->filter && w->filter->wants)) /* not everything was read */
        return;
    for (uint32_t i = 0; i < w->rec->count; i++) {
        const struct process *p = w->rec->processes[i];
        const struct process_place *place = &c->places[i];
        uint64_t end_ns = process_lived_ns(p), least_ns = place->gap_ns, start_ns;
        bool is_called =
            place->is_begun && p->end_reason != END_EXIT; /* reported as an open call */
        if (!place->has_worked || place->is_open || is_called || place->is_paused ||
            hang_is_unsure(p) || end_ns < place->end_ns || is_pending(c, p))
            continue;
        start_ns = process_start_ns(p);
        start_ns = start_ns && start_ns < w->first_ns[i] ? start_ns : w->first_ns[i];
        if (has_ended_itself(p) && least_ns < (end_ns - start_ns) / LIFE_PART)
            least_ns = (end_ns - start_ns) / LIFE_PART;
        struct quiet_row row = {.process = p,
                                .place = place,
                                .for_ns = end_ns - place->end_ns,
                                .reported = {.process = p, .stack = place->stack}};
        least_ns = least_ns > QUIET_NS_MIN ? least_ns : QUIET_NS_MIN;
        if (row.for_ns < least_ns)
            continue;
        q->total++;
        ARRAY_KEEP(q->rows, q->count, QUIET_ROWS_MAX, &row, is_longer);
    }
}

const char *quiet_until(const struct quiet_row *row)
{
    return process_runs(row->process) ? "now" : has_ended_itself(row->process) ? "end" : "killed";
}

static char *quiet_text(const struct quiet *q, uint64_t origin_ns)
{
    char silent[UNIT_TEXT_BYTES], at[UNIT_TEXT_BYTES], number[UNIT_TEXT_BYTES];
    char who[RANK_TITLE_BYTES], more[64] = "";
    const struct quiet_row *row = &q->rows[0];
    if (!q->count)
        return NULL;
    const struct process_place *place = row->place;
    const char *until = quiet_until(row);
    if (q->total > 1)
        snprintf(more, sizeof more, "; also in %s more", count_text(number, q->total - 1));
    return text_printf("no call for %s until %s, in %s: its last call was %s%s, at %s%s%s%s",
                       time_text(silent, row->for_ns),
                       *until == 'k'   ? "it was killed"
                       : *until == 'e' ? "its end"
                                       : "now",
                       process_who(row->process, who), place->function->name,
                       place->is_begun ? ", which has not returned" : "",
                       time_text(at, place->begin_ns > origin_ns ? place->begin_ns - origin_ns : 0),
                       row->reported.line ? "; its newest stack is at " : "",
                       row->reported.line ? row->reported.line : "", more);
}

/* ---- all parts ------------------------------------------------------------------------------- */

int hang_init(struct hang *h, struct walk *walk)
{
    int error = unfinished_init(&h->unfinished, walk);
    if (error == 0)
        error = collectives_init(&h->collectives, walk, &h->unfinished);
    h->needs_stacks = error == 0 && unfinished_may_be(&h->unfinished);
    for (uint32_t i = 0; i < walk->rec->count; i++)
        h->needs_stacks |= quiet_may_be(walk->rec->processes[i]);
    return error;
}

unsigned hang_consumers(struct hang *h, struct consumer *list)
{
    list[0] = collectives_consumer(&h->collectives, h->needs_stacks);
    list[1] = unfinished_consumer(&h->unfinished);
    return unfinished_may_be(&h->unfinished) ? 2 : 1;
}

/* Lists the stacks of all rows. */
static int list_stacks(struct hang *h)
{
    struct reported_stack **next =
        calloc(h->open.count + h->unfinished.row_count + h->collectives.pending.row_count +
                   h->quiet.count + 1u,
               sizeof(struct reported_stack *));
    h->reported = next;
    if (!next)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < h->open.count; i++)
        *next++ = &h->open.calls[i].reported;
    for (uint32_t i = 0; i < h->unfinished.row_count; i++)
        *next++ = &h->unfinished.rows[i].reported;
    for (uint32_t i = 0; i < h->collectives.pending.row_count; i++)
        *next++ = &h->collectives.pending.rows[i].reported;
    for (uint32_t i = 0; i < h->quiet.count; i++)
        *next++ = &h->quiet.rows[i].reported;
    h->reported_count = (uint32_t)(next - h->reported);
    return 0;
}

int hang_finish(struct hang *h, const char *symbol_folder, struct sums *calls)
{
    struct walk *walk = h->unfinished.walk;
    int error = collectives_judge(&h->collectives);
    if (error == 0)
        quiet_judge(&h->quiet, &h->collectives);
    if (error == 0 && calls)
        error = collectives_add_calls(&h->collectives, calls);
    if (error < 0 || !h->needs_stacks) /* no stacks were read */
        return error;
    error = list_stacks(h);
    return error < 0
               ? error
               : reported_stacks_find(&walk->survey, symbol_folder, h->reported, h->reported_count);
}

void hang_release(struct hang *h)
{
    for (uint32_t i = 0; i < h->reported_count; i++)
        reported_stack_release(h->reported[i]);
    free(h->reported);
    if (h->collectives.walk)
        collectives_release(&h->collectives);
    unfinished_release(&h->unfinished);
}

const struct open_call *hang_call(const struct hang *h)
{
    bool hangs = h->open.count && h->open.calls[0].duration_ns >= SURVEY_HANG_NS;
    return hangs ? &h->open.calls[0] : NULL;
}

/* Prints a line, whose text it frees; NULL: none. */
static void print_line(struct screen *s, const char *label, char *text)
{
    if (text)
        screen_long(s, label, "%s", text);
    free(text);
}

void hang_print_summary(const struct hang *h, struct screen *s)
{
    const struct unfinished *u = &h->unfinished;
    char text[UNIT_TEXT_BYTES];
    print_line(s, "collective", collectives_text(&h->collectives));
    print_line(s, "open", open_calls_text(&h->open));
    print_line(s, "quiet", quiet_text(&h->quiet, u->walk->survey.origin_ns));
    if (!u->row_count || u->rows[0].state == UNFINISHED_MAYBE)
        return;
    char *what = unfinished_text(&u->rows[0]);
    if (what)
        print_line(s, "unfinished",
                   text_printf("%s, launched %s ago", what, time_text(text, u->rows[0].age_ns)));
    free(what);
}
