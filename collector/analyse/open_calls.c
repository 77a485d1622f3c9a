/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/open_calls.h"

#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/text.h"
#include "read/process.h"
#include "record/gpu_record.h"

static bool is_longer(const void *item, const void *other)
{
    return ((const struct open_call *)item)->duration_ns >
           ((const struct open_call *)other)->duration_ns;
}

static void open_calls_add(struct open_calls *o, struct open_call *new, const uint64_t *args)
{
    memcpy(new->args, args, sizeof new->args);
    o->total++;
    ARRAY_KEEP(o->calls, o->count, OPEN_CALLS_MAX, new, is_longer);
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
    const struct library_call *l = s->library;
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
    if (!out)
        return NULL;
    fputs(c->function->name, out);
    for (unsigned k = 0; k < c->arg_count && k < c->function->arg_count; k++) {
        unsigned kind = c->function->args[k].kind;
        uint64_t value;
        if (!function_value(c->args, c->arg_count, k, &kind, &value))
            continue;
        fprintf(out, " %s=", c->function->args[k].label);
        if (c->kernel && kind == ARG_KERNEL)
            fputs(c->kernel->shown, out);
        else
            argument_print(kind, value, out);
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

/* Proposes --backtrace: only the thread itself could have recorded native frames, when the call
 * began. */
static void print_note(const struct table *t, FILE *out)
{
    const struct open_calls *o = t->source;
    bool lacks = false;
    for (uint32_t i = 0; i < o->count; i++) {
        const struct reported_stack *s = &o->calls[i].reported;
        lacks |= o->calls[i].duration_ns >= SURVEY_HANG_NS && (!s->json || s->is_python);
    }
    if (lacks)
        fputs("\n'gpuprof run " OPEN_CALLS_BACKTRACE "' gives such a call its stack, frames in C "
              "too\n",
              out);
}

const struct table_info open_calls_table = {
    .name = "open_calls",
    .key = "open_calls",
    .title = "calls that had not returned at the end of the recording",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct open_calls, calls, count), .total = offsetof(struct open_calls, total)},
    /* Its time is already in its function's, so it must not be added up here. */
    .place = PLACE_URGENT,
    .row = open_calls_fill_row,
    .text_behind = print_note,
};

char *open_calls_text(const struct open_calls *o)
{
    char who[RANK_TITLE_BYTES], lasted[UNIT_TEXT_BYTES], number[UNIT_TEXT_BYTES], more[64] = "";
    const struct open_call *c = o->calls; /* the longest */
    /* A running program usually is in some call. */
    if (!o->total || (c->process->losses.running && c->duration_ns < SURVEY_HANG_NS))
        return NULL;
    /* The process was killed while it worked, without a hang, or its recording could not go on. */
    bool is_ended = c->process->losses.counters[COUNTER_ENDED], has_time = c->duration_ns;
    if (o->total > 1)
        snprintf(more, sizeof more, "; nor had %s more", count_text(number, o->total - 1));
    return text_printf("%s had not returned %s%s, in %s%s%s%s", c->function->name,
                       is_ended   ? "when the recording ended (the disk was full?)"
                       : has_time ? "after "
                                  : "at the end",
                       has_time && !is_ended ? time_text(lasted, c->duration_ns) : "",
                       process_who(c->process, who), c->reported.line ? ", at " : "",
                       c->reported.line ? c->reported.line : "", more);
}
