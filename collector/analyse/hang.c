/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/hang.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"
#include "record/gpu_record.h"

/* ---- calls that did not return ----------------------------------------------------------------
 */

static bool is_open_longer(const void *item, const void *other)
{
    return ((const struct open_call *)item)->duration_ns >
           ((const struct open_call *)other)->duration_ns;
}

static void open_calls_add(struct open_calls *o, struct open_call *new, const uint64_t *args)
{
    memcpy(new->args, args, sizeof new->args);
    o->total++;
    ARRAY_KEEP(o->calls, o->count, OPEN_CALLS_MAX, new, is_open_longer);
}

void open_calls_take(struct open_calls *o, const struct slice *s)
{
    const struct event *e = &s->event;
    if (!(e->record->flags & RECORD_OPEN))
        return;
    struct open_call c = {.function = e->function,
                          .process = e->process,
                          .thread = e->thread,
                          .kernel = walk_launched(s),
                          .begin_ns = e->begin_ns,
                          .duration_ns = e->end_ns - e->begin_ns,
                          .arg_count = e->record->arg_count,
                          .reported = {.process = e->process, .stack = e->record->stack_id}};
    open_calls_add(o, &c, e->record->args);
}

void open_calls_take_library(struct open_calls *o, const struct slice *s)
{
    const struct host_span *l = s->span;
    uint64_t end_ns = walk_lived_ns(s->walk, l->process);
    struct open_call c = {.function = l->function,
                          .process = l->process,
                          .thread = l->thread,
                          .begin_ns = l->begin_ns,
                          .duration_ns = end_ns - l->begin_ns,
                          .arg_count = l->arg_count,
                          .reported = {.process = l->process, .stack = l->stack}};
    if (l->process->end_reason != END_EXIT && end_ns >= l->seen_ns + SURVEY_HANG_NS)
        open_calls_add(o, &c, l->args);
}

/* "cudaMemcpy count=64, in thread 7 of process 5", as new text. */
static char *call_text(const struct open_call *c)
{
    char title[1200];
    struct new_text text;
    FILE *out = new_text_begin(&text);
    fputs(c->function->name, out);
    for (unsigned k = 0; k < c->arg_count && k < c->function->arg_count; k++) {
        struct shown_arg a;
        if (!function_show(c->function, c->args, c->arg_count, k, &a))
            continue;
        fprintf(out, " %s=", a.label);
        if (c->kernel && a.kind == ARG_KERNEL)
            fputs(c->kernel->shown, out);
        else
            argument_print(a.kind, a.value, out);
    }
    fprintf(out, ", in %s", thread_title(c->process, c->thread, title, sizeof title));
    return new_text_end(&text, out);
}

enum { NAME, LASTED, DOMAIN = 3 };

static const struct column columns[] = {
    [NAME] = {NULL, "call, thread and process", COLUMN_LINES,
              .doc = "the call with its arguments, its thread and process"},
    [LASTED] = {"lasted_ns", "lasted", COLUMN_NS, 13, MEMBER(struct open_call, duration_ns),
                .doc = "how long it had been open when its process was last seen"},
    {"function", MEMBER_OF(struct open_call, function, name), .doc = "the function"},
    [DOMAIN] = {"domain", .doc = "the library that it belongs to"},
    {"kernel", MEMBER_OF(struct open_call, kernel, shown), .doc = "the kernel that it launches"},
    {"line", .lacks = LACKS_ZERO, MEMBER(struct open_call, reported.line),
     .doc = "the line of the program that made it"},
    {"stack", .type = COLUMN_LIST, .lacks = LACKS_ZERO, MEMBER(struct open_call, reported.json),
     .doc = "its stack, the innermost frame first"},
    COLUMN_HOST(struct open_call, process),
    COLUMN_RANK(struct open_call, process),
    COLUMN_JOB(struct open_call, process),
    COLUMN_PID(struct open_call, process),
    {"tid", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(struct open_call, thread, tid),
     .doc = "the thread"},
    {"thread", MEMBER_OF(struct open_call, thread, name), .doc = "the name of the thread"},
};

static void open_calls_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct open_calls *o = t->source;
    const struct open_call *c = &o->calls[index];
    bool is_text = t->format == FORMAT_TEXT;
    cells[NAME] = is_text ? cell_owned(reported_stack_below(&c->reported, call_text(c)))
                          : cell_text(c->function->name);
    if (is_text && !c->duration_ns)
        cells[LASTED] = cell_text("just begun");
    cells[DOMAIN] = cell_text(api_domain_name(c->function->domain));
}

const struct table_info open_calls_table = {
    .name = "open_calls",
    .key = "open_calls",
    .needs = PART_HANGS,
    .title = "calls that had not returned at the end of the recording",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct open_calls, calls, count), .total = offsetof(struct open_calls, total)},
    /* Its time is already in its function's, so it must not be added up here. */
    .place = PLACE_URGENT,
    .row = open_calls_fill_row,
};

char *open_calls_text(const struct open_calls *o)
{
    char who[RANK_TITLE_BYTES], lasted[UNIT_TEXT_BYTES];
    const struct open_call *c = o->calls; /* the longest */
    /* A running program usually is in some call. */
    if (!o->total || (c->process->losses.running && c->duration_ns < SURVEY_HANG_NS))
        return NULL;
    /* The process may have been killed while it worked, or its recording could not go on. */
    bool has_time = c->duration_ns && !c->process->losses.counters[COUNTER_ENDED];
    return text_printf("%s had not returned %s%s, in %s%s%s", c->function->name,
                       has_time ? "after " : "at the end of its recording",
                       has_time ? time_text(lasted, c->duration_ns) : "",
                       process_who(c->process, who), c->reported.line ? ", at " : "",
                       c->reported.line ? c->reported.line : "");
}

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
        ARRAY_KEEP(q->rows, q->count, QUIET_ROWS_MAX, &row, is_longer);
    }
}

const char *quiet_until(const struct quiet_row *row)
{
    return process_runs(row->process) ? "now" : has_ended_itself(row->process) ? "end" : "killed";
}

static char *quiet_text(const struct quiet *q, uint64_t origin_ns)
{
    char silent[UNIT_TEXT_BYTES], at[UNIT_TEXT_BYTES], who[RANK_TITLE_BYTES];
    const struct quiet_row *row = &q->rows[0];
    if (!q->count)
        return NULL;
    const struct process_place *place = row->place;
    const char *until = quiet_until(row), *line = row->reported.line;
    return text_printf("no call for %s until %s, in %s: its last call was %s, at %s%s%s",
                       time_text(silent, row->for_ns),
                       *until == 'k'   ? "it was killed"
                       : *until == 'e' ? "its end"
                                       : "now",
                       process_who(row->process, who), place->function->name,
                       time_text(at, place->begin_ns > origin_ns ? place->begin_ns - origin_ns : 0),
                       line ? "; its newest stack is at " : "", line ? line : "");
}

/* ---- all parts ------------------------------------------------------------------------------- */

void hang_init(struct hang *h, struct walk *walk)
{
    unfinished_init(&h->unfinished, walk);
    collectives_init(&h->collectives, walk, &h->unfinished);
    h->needs_stacks = unfinished_may_be(&h->unfinished);
    for (uint32_t i = 0; i < walk->rec->count; i++) { /* or if a process can be quiet */
        const struct process *p = walk->rec->processes[i];
        h->needs_stacks |=
            p->min_ns <= p->max_ns && p->lived_ns >= p->max_ns + QUIET_NS_MIN && !hang_is_unsure(p);
    }
}

/* Lists the stacks of all rows. */
static void list_stacks(struct hang *h)
{
    struct reported_stack **next = h->reported =
        memory_new(h->open.count + h->unfinished.row_count + h->collectives.pending.row_count +
                       h->quiet.count + 1u,
                   sizeof *next);
    for (uint32_t i = 0; i < h->open.count; i++)
        *next++ = &h->open.calls[i].reported;
    for (uint32_t i = 0; i < h->unfinished.row_count; i++)
        *next++ = &h->unfinished.rows[i].reported;
    for (uint32_t i = 0; i < h->collectives.pending.row_count; i++)
        *next++ = &h->collectives.pending.rows[i].reported;
    for (uint32_t i = 0; i < h->quiet.count; i++)
        *next++ = &h->quiet.rows[i].reported;
    h->reported_count = (uint32_t)(next - h->reported);
}

void hang_finish(struct hang *h, const char *symbol_folder, struct sums *calls)
{
    struct walk *walk = h->unfinished.walk;
    collectives_judge(&h->collectives);
    quiet_judge(&h->quiet, &h->collectives);
    if (calls && calls->info)
        collectives_add_calls(&h->collectives, calls);
    if (!h->needs_stacks) /* no stacks were read */
        return;
    list_stacks(h);
    reported_stacks_find(&walk->survey, symbol_folder, h->reported, h->reported_count);
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
    print_line(s, "unfinished",
               text_printf("%s, launched %s ago", what, time_text(text, u->rows[0].age_ns)));
    free(what);
}
