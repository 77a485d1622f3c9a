/* SPDX-License-Identifier: Apache-2.0 */
/* Makes steps from the marks of a program (steps.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "resolve/steps.h"

static int compare_marks(const void *left, const void *right)
{
    const struct step_mark *a = left, *b = right;
    return ORDER(a->process->index, b->process->index) ?: ORDER(a->begin_ns, b->begin_ns) ?:
           ORDER(a->order, b->order);
}

/* Adds a step, cut so that steps never overlap, whatever times a file has. */
static void add_step(struct steps *s, const struct step_mark *mark, uint64_t number,
                     uint64_t begin_ns, uint64_t end_ns, bool is_partial)
{
    if (s->count && s->list[s->count - 1].process == mark->process &&
        s->list[s->count - 1].end_ns > begin_ns)
        begin_ns = s->list[s->count - 1].end_ns;
    struct step step = {.begin_ns = begin_ns,
                        .end_ns = end_ns > begin_ns ? end_ns : begin_ns,
                        .number = number,
                        .process = mark->process,
                        .made_of = mark->text,
                        .is_partial = is_partial};
    ARRAY_PUSH(s->list, s->count, &step);
}

/* The number at the end of a name, unless the pattern has no wildcard and all names are equal. */
static uint64_t step_make_number_of(const struct steps *s, const struct step_mark *mark,
                                    uint64_t otherwise)
{
    const char *text = mark->text->shown;
    const char *end = text + strlen(text), *digits = end;
    while (digits > text && isdigit((unsigned char)digits[-1]))
        digits--;
    bool is_same = s->pattern && strcmp(s->pattern, text) == 0;
    return is_same || digits == end || end - digits > 18 ? otherwise : strtoull(digits, NULL, 10);
}

/* Makes steps of marks that have an end each. */
static void make_of_spans(struct steps *s, const struct step_mark *marks, uint32_t count)
{
    uint64_t free_ns = 0, number = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct step_mark *m = &marks[i];
        uint64_t end_ns = m->end_ns ? m->end_ns : s->walk->last_ns[m->process->index];
        if (m->begin_ns < free_ns) {
            s->overlapping++;
            continue;
        }
        add_step(s, m, step_make_number_of(s, m, number), m->begin_ns, end_ns,
                 !m->end_ns || m->is_cut);
        free_ns = end_ns;
        number++;
    }
}

/* Which graph launches are marks. */
struct launched {
    uint64_t graph;
    bool has_pauses; /* a wait of the launching thread ends its step */
};

static bool is_launch(const struct step_mark *m, uint64_t graph)
{
    return m->number == graph && !m->ends;
}

static bool is_pause(const struct step_mark *m, const struct step_mark *last)
{
    return m->ends && last && m->thread == last->thread;
}

/* Makes steps from each mark to the next. `thread` (or NULL) and `l` (or NULL) select the marks. */
static void make_of_begins(struct steps *s, const struct step_mark *marks, uint32_t count,
                           const struct thread *thread, const struct launched *l)
{
    const struct step_mark *last = NULL;
    uint64_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct step_mark *m = &marks[i];
        if ((thread && m->thread != thread) ||
            (l && !is_launch(m, l->graph) && !(l->has_pauses && is_pause(m, last))))
            continue;
        if (last)
            add_step(s, last, s->kind == STEPS_CALLED ? last->number : number++, last->begin_ns,
                     m->begin_ns, false);
        last = m->ends ? NULL : m;
    }
    if (last)
        add_step(s, last, s->kind == STEPS_CALLED ? last->number : number, last->begin_ns,
                 s->walk->last_ns[last->process->index], true);
}

/* Makes steps from the end of one mark to the end of the next. */
static void make_of_ends(struct steps *s, const struct step_mark *marks, uint32_t count)
{
    uint64_t begin_ns = s->walk->first_ns[marks->process->index], number = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct step_mark *m = &marks[i];
        if (m->text != marks->text || m->thread != marks->thread)
            continue;
        add_step(s, m, number, begin_ns, m->begin_ns, number == 0);
        begin_ns = m->begin_ns;
        number++;
    }
}

/* Whether the thread waits after bursts of launches. If it waits after most launches, the wait is
 * part of the iteration. */
static bool has_bursts(const struct step_mark *marks, uint32_t count, uint64_t graph)
{
    const struct step_mark *last = NULL;
    uint32_t launches = 0, pauses = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct step_mark *m = &marks[i];
        bool ends = is_pause(m, last);
        launches += is_launch(m, graph);
        pauses += ends;
        last = is_launch(m, graph) ? m : ends ? NULL : last;
    }
    return pauses <= launches / 2;
}

/* Uses the graph with the most launches, the first of several; one launch is not enough. */
static void make_of_launches(struct steps *s, const struct step_mark *marks, uint32_t count)
{
    struct key_map launches = {0};
    uint64_t most = 1, graph = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct key key = {marks[i].number, 0, 0};
        if (!marks[i].ends)
            key_map_set(&launches, key, key_map_get(&launches, key) + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t of_this = key_map_get(&launches, (struct key){marks[i].number, 0, 0});
        graph = !marks[i].ends && of_this > most ? marks[i].number : graph;
        most = !marks[i].ends && of_this > most ? of_this : most;
    }
    key_map_release(&launches);
    const struct launched l = {graph, has_bursts(marks, count, graph)};
    if (most > 1)
        make_of_begins(s, marks, count, NULL, &l);
}

static void step_make_make(struct steps *s, const struct step_mark *marks, uint32_t count)
{
    switch (s->kind) {
    case STEPS_CALLED: make_of_begins(s, marks, count, NULL, NULL); break;
    case STEPS_LOADER: make_of_begins(s, marks, count, marks->thread, NULL); break;
    case STEPS_OPTIMIZER: make_of_ends(s, marks, count); break;
    case STEPS_GRAPH: make_of_launches(s, marks, count); break;
    default: make_of_spans(s, marks, count);
    }
}

/* Whether the graph is launched only in a small part of the process's time (less than
 * 1/STEPS_GRAPH_PART). Such steps are left out unless requested. */
static bool is_passing(const struct steps *s, uint32_t first)
{
    const struct step *list = &s->list[first];
    uint32_t process = list->process->index;
    return s->kind == STEPS_GRAPH && !s->by && !s->pattern &&
           s->list[s->count - 1].begin_ns - list->begin_ns <
               (s->walk->last_ns[process] - s->walk->first_ns[process]) / STEPS_GRAPH_PART;
}

/* Removes the steps of a process inside its pauses, and marks those that overlap one as partial.
 * `list` is in the order of time. Returns the number of steps that remain. */
static uint32_t take_pauses(const struct survey *survey, struct step *list, uint32_t count)
{
    struct correlation_gap *gaps;
    uint32_t gap_count = survey_gaps(survey, list->process->index, &gaps), kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = ARRAY_UP_TO(gaps, gap_count, end_ns, list[i].begin_ns);
        const struct correlation_gap *gap = at < gap_count ? &gaps[at] : NULL;
        bool overlaps = gap && gap->begin_ns < list[i].end_ns;
        list[i].is_partial |= overlaps;
        if (!gap || gap->begin_ns > list[i].begin_ns || gap->end_ns < list[i].end_ns)
            list[kept++] = list[i];
    }
    free(gaps);
    return kept;
}

/* Marks blind steps. `list` is of one process, in the order of time, like the blind times. */
static void take_blind(struct process *p, struct step *list, uint32_t count)
{
    struct blind_time *times = NULL;
    uint32_t time_count = blind_times_find(&p->blind, &p->clock, &times);
    for (uint32_t i = 0; time_count && i < count; i++) {
        uint32_t at = ARRAY_UP_TO(times, time_count, end_ns, list[i].begin_ns);
        list[i].is_blind = at < time_count && times[at].begin_ns < list[i].end_ns;
    }
    free(times);
}

void steps_make(struct steps *s)
{
    ARRAY_SORT(s->marks, s->mark_count, compare_marks);
    for (uint32_t i = 0, next; i < s->mark_count; i = next) {
        for (next = i; next < s->mark_count && s->marks[next].process == s->marks[i].process;)
            next++;
        uint32_t first = s->count;
        if (s->kind != STEPS_GRAPH || !s->has_sampled)
            step_make_make(s, &s->marks[i], next - i);
        if (s->count > first && is_passing(s, first))
            s->count = first;
        if (s->count > first) {
            uint32_t count = s->count - first;
            uint32_t kept = take_pauses(&s->walk->survey, &s->list[first], count);
            s->count = first + kept;
            s->unrecorded += count - kept;
            take_blind(s->marks[i].process, &s->list[first], kept);
        }
    }
    for (uint32_t i = 0; i < s->count; i++)
        s->firsts[s->list[i].process->index + 1]++;
    for (uint32_t i = 0; i < s->walk->rec->count; i++)
        s->firsts[i + 1] += s->firsts[i];
    if (!s->count)
        s->kind = STEPS_NONE;
    free(s->marks);
    s->marks = NULL;
    s->mark_count = 0;
}
