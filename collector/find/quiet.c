/* SPDX-License-Identifier: Apache-2.0 */
#include "find/quiet.h"

#include <string.h>

#include "base/unit_text.h"
#include "model/event_walk.h"
#include "read/process_title.h"

#define LIFE_PART 10 /* of its life, for one that ended by itself */

static bool has_ended_itself(const struct process *p)
{
    return !process_runs(p) && p->end_reason && p->end_reason != END_KILLED;
}

/* May it have made calls that are not recorded? A flight recorder keeps what it has until a dump,
 * and --overhead-max gives up queries first, in which a program may wait. */
static bool is_unsure(const struct process *p)
{
    const uint64_t *counters = p->losses.counters;
    return counters[COUNTER_ENDED] || counters[COUNTER_PASSED_BY] || p->losses.flight_unread ||
           p->dump_count;
}

bool quiet_may_be(const struct process *p)
{
    return p->min_ns <= p->max_ns && p->lived_ns >= p->max_ns + QUIET_NS_MIN && !is_unsure(p);
}

/* Others wait for it, or it for others: that is said already. */
static bool is_pending(const struct collectives *c, const struct process *p)
{
    for (uint32_t i = 0; i < c->row_count; i++)
        if (c->rows[i].process == p)
            return true;
    return false;
}

static void add(struct quiet *q, const struct quiet_row *row)
{
    uint32_t place = q->count;
    q->total++;
    while (place > 0 && q->rows[place - 1].for_ns < row->for_ns)
        place--;
    if (place == QUIET_ROWS_MAX)
        return;
    if (q->count < QUIET_ROWS_MAX)
        q->count++;
    memmove(&q->rows[place + 1], &q->rows[place], (q->count - place - 1) * sizeof *row);
    q->rows[place] = *row;
}

/* Do other ranks of its job wait for something that only ranks can end? */
static bool is_waited_for(const struct unfinished *u, const struct process *p)
{
    for (uint32_t i = 0; i < u->row_count; i++) {
        const struct process *other = u->rows[i].launch.process;
        if (u->rows[i].state != UNFINISHED_MAYBE && other != p && other->job == p->job &&
            unfinished_waits_for_ranks(&u->rows[i].launch))
            return true;
    }
    return false;
}

void quiet_judge(struct quiet *q, const struct collectives *c, const struct unfinished *u)
{
    const struct walk *w = c->walk;
    if (w->is_cut || (w->filter && w->filter->wants)) /* not all was read */
        return;
    for (uint32_t i = 0; i < w->rec->count; i++) {
        const struct process *p = w->rec->processes[i];
        const struct process_place *place = &c->places[i];
        uint64_t end_ns = process_lived_ns(p), least_ns = place->gap_ns, start_ns;
        bool is_called = place->is_begun && p->end_reason != END_EXIT; /* told as an open call */
        if (!place->has_worked || place->is_open || is_called || place->is_paused || is_unsure(p) ||
            end_ns < place->end_ns || is_pending(c, p))
            continue;
        start_ns = process_start_ns(p);
        start_ns = start_ns && start_ns < w->first_ns[i] ? start_ns : w->first_ns[i];
        if (has_ended_itself(p) && least_ns < (end_ns - start_ns) / LIFE_PART)
            least_ns = (end_ns - start_ns) / LIFE_PART;
        struct quiet_row row = {.process = p,
                                .place = place,
                                .since_ns = place->end_ns,
                                .for_ns = end_ns - place->end_ns};
        least_ns = least_ns > QUIET_NS_MIN ? least_ns : QUIET_NS_MIN;
        if (row.for_ns >= (is_waited_for(u, p) ? SURVEY_HANG_NS : least_ns))
            add(q, &row);
    }
}

const char *quiet_until(const struct quiet_row *row)
{
    return process_runs(row->process) ? "now" : has_ended_itself(row->process) ? "end" : "killed";
}

void quiet_print_summary(const struct quiet *q, uint64_t origin_ns, FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    if (!q->count)
        return;
    const struct quiet_row *row = &q->rows[0];
    const char *until = quiet_until(row);
    char who[RANK_TITLE_BYTES];
    fprintf(out, "  quiet      no call for %s until %s, in %s", time_text(text, row->for_ns),
            *until == 'k'   ? "it was killed"
            : *until == 'e' ? "its end"
                            : "now",
            process_who(row->process, who));
    fprintf(
        out, ": its last was %s%s, at %s", row->place->function->name,
        row->place->is_begun ? ", which has not returned" : "",
        time_text(text, row->place->begin_ns > origin_ns ? row->place->begin_ns - origin_ns : 0));
    if (row->line)
        fprintf(out, ", its newest stack at %s", row->line);
    if (q->total > 1)
        fprintf(out, "; nor in %s more", count_text(text, q->total - 1));
    fputc('\n', out);
}
