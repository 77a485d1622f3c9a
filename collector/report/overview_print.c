/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/findings.h"
#include "analyse/idle.h"
#include "analyse/step_report.h"
#include "base/json_text.h"
#include "base/next_words.h"
#include "base/text.h"
#include "memory/memory_report.h"
#include "read/process.h"
#include "report/report.h"
#include "resolve/missing_reason.h"
#include "resolve/selection.h"

#define FINDINGS_SHOWN  3
#define LINES_BELOW     5 /* the most lines printed below the findings */
#define FUNCTIONS_SHOWN 4 /* if there is no GPU work */
#define LOSSES_BYTES    1024

/* ---- what went wrong ---- */

static void print_failures(struct screen *s, const struct report *r)
{
    char number[UNIT_TEXT_BYTES], name[FAILURE_TEXT_BYTES];
    const struct sums *failures = &r->sums[ANALYSIS_failures_sums];
    if (failures->count)
        screen_line(s, "error", sums_name(failures, failures->rows, 0, NULL),
                    "%s failed; first %s of ", count_text(number, failures->whole[0]),
                    failure_name(failures->rows, name));
}

/* Prints the last failed allocation, which is often the end of the program. */
static void print_shortage(struct screen *s, const struct report *r)
{
    char count[UNIT_TEXT_BYTES];
    if (r->memory && r->memory->ooms.count) {
        memory_print_failure(r->memory, r->next, s);
        return;
    }
    char *next = r->peaks.ooms ? next_line(r->next, "gpuprof memory DATA") : NULL;
    if (next)
        screen_line(s, "no memory", NULL, "%s allocation%s failed: %s",
                    count_text(count, r->peaks.ooms), plural_end(r->peaks.ooms), next);
    free(next);
}

/* ---- what was recorded ---- */

char *overview_missing_text(const struct report *r)
{
    const struct recording *rec = r->rec;
    const struct missing_ranks *first = NULL;
    char ranks[MISSING_RANKS_BYTES], job[32] = "";
    for (uint32_t i = 0; !first && i < rec->missing_count; i++)
        first = overview_has_missing(r, &rec->missing[i]) ? &rec->missing[i] : NULL;
    if (!first)
        return NULL;
    if (rec->job_count > 1)
        snprintf(job, sizeof job, "in job %u ", first->job);
    return text_printf("%s%s %s no file%s", job, missing_ranks_text(first, ranks),
                       first->count > 1 ? "have" : "has",
                       r->idle && idle_lacks_ranks(r->idle) ? "; who waited for whom is not known"
                                                            : "");
}

static void print_piece(struct screen *s, const struct report *r)
{
    char *text = r->time.selection ? selection_text(r->time.selection) : NULL;
    char *begun = r->time.selection ? selection_begun_text(r->time.selection) : NULL;
    if (text)
        screen_line(s, "selection", NULL, "%s", text);
    if (begun)
        screen_line(s, "", NULL, "%s", begun);
    if (r->rec->left_out)
        screen_line(s, "left out", NULL, "%u of %u processes%s", r->rec->left_out,
                    r->rec->left_out + r->rec->count,
                    r->rec->left_out_ranks && r->idle && idle_lacks_ranks(r->idle)
                        ? "; who waited for whom is not known"
                        : "");
    free(text);
    free(begun);
    /* While the program runs, ranks may still start. */
    text = s->is_short ? NULL : overview_missing_text(r);
    if (text)
        screen_long(s, "missing", "%s", text);
    free(text);
}

static void print_program(struct screen *s, const struct overview *o)
{
    const struct report *r = o->report;
    char time[UNIT_TEXT_BYTES], calls[UNIT_TEXT_BYTES], where[32] = "";
    unsigned threads = r->rec->thread_count - r->rec->own_thread_count;
    if (!s->is_short && o->program)
        screen_line(s, "program", o->program, "%s", "");
    if (o->ranks > 1)
        snprintf(where, sizeof where, " (%u ranks)", o->ranks);
    print_piece(s, r);
    screen_line(s, "wall time", NULL, "%s; %u process%s%s, %u thread%s%s, %s%s call%s",
                time_text(time, r->time.whole_ns ? r->time.whole_ns
                                                 : r->time.wall_end_ns - r->time.wall_begin_ns),
                r->rec->count, r->rec->count == 1 ? "" : "es", where, threads,
                threads == 1 ? "" : "s", r->time.selection ? " in the whole recording" : "",
                r->total.is_estimated ? "about " : "", count_text(calls, r->total.calls),
                r->total.calls == 1 ? "" : "s");
    if (r->time.whole_ns)
        screen_line(s, "read", NULL,
                    "quick summary of the first %s; 'gpuprof report' reads everything",
                    time_text(time, r->time.wall_end_ns - r->time.wall_begin_ns));
}

const char *overview_start_up_end(const struct overview *o)
{
    const struct idle_device *first = overview_first_device(o->report);
    if (!first)
        return "the first call";
    if (first->begin_ns + first->causes[IDLE_START_UP] <= first->first_ns)
        return "a GPU's first work";
    return o->steps && o->marks->kind != STEPS_GRAPH
               ? "the steps ran"
               : "a GPU's first work, and long pauses soon after it";
}

/* Prints the start-up, unless its share rounds to 0.0%. */
static void print_start_up(struct screen *s, const struct overview *o)
{
    const struct report *r = o->report;
    char time[UNIT_TEXT_BYTES];
    const struct idle *d = r->idle && r->idle->device_count ? r->idle : NULL;
    uint64_t ns = overview_start_up_ns(r), wall_ns = r->time.wall_end_ns - r->time.wall_begin_ns;
    bool is_there = overview_percent(ns, r->time.whole_ns ? r->time.whole_ns : wall_ns) >= 0.05;
    if (is_there)
        screen_line(s, "start-up", NULL, "%s until %s%s", time_text(time, ns),
                    overview_start_up_end(o),
                    d && !d->all.stopped_ns ? "; shares leave it out" : "");
    if (!d || !d->all.stopped_ns)
        return;
    double recorded = 100 - overview_percent(d->all.stopped_ns, d->window_ns);
    screen_line(s, "recorded", NULL, "%.1f%% of the GPUs' time; shares refer to that%s",
                recorded < 99.9 ? recorded : 99.9, /* not all */
                d->all.causes[IDLE_START_UP] ? ", without start-up" : "");
}

static void print_steps(struct screen *s, const struct overview *o)
{
    char median[UNIT_TEXT_BYTES], slowest[UNIT_TEXT_BYTES], count[UNIT_TEXT_BYTES], of[64] = "";
    char who[RANK_TITLE_BYTES];
    if (!o->steps)
        return;
    if (o->report->rec->count > 1)
        snprintf(of, sizeof of, " of %s", process_who(o->slowest->process, who));
    screen_long(s, "steps", "%s (by %s), median %s, slowest %s (step %" PRIu64 "%s)",
                count_text(count, o->steps), step_kinds[o->marks->kind].text,
                time_text(median, o->step_median_ns),
                time_text(slowest, o->slowest->end_ns - o->slowest->begin_ns), o->slowest->number,
                of);
}

/* Prints the dumps, or the schedule and windows of the process with most of them. */
static void print_windows(struct screen *s, const struct overview *o)
{
    uint64_t count;
    const struct process_dump *last = dumps_last(o->report->rec, &count);
    char *why = last ? dump_line(last) : NULL;
    if (last)
        screen_line(s, "dumps", NULL, "%" PRIu64 "; the last: %s", count, why);
    else if (o->schedule)
        screen_line(s, "windows", o->schedule, "%" PRIu64 " recorded; ", o->windows);
    else if (o->windows)
        screen_line(s, "windows", NULL, "%" PRIu64 " recorded; --cycle=N shows one alone",
                    o->windows);
    free(why);
}

/* Prints the functions with most time, if there is no GPU work. */
static void print_functions(struct screen *s, const struct report *r)
{
    char time[UNIT_TEXT_BYTES], number[UNIT_TEXT_BYTES];
    struct table t = {.info = &functions_sums.table, .source = &r->sums[ANALYSIS_functions_sums]};
    int called = table_column(t.info, "calls"), total = table_column(t.info, "total"),
        shared = table_column(t.info, "share");
    sums_begin(&t);
    for (uint32_t i = 0; i < t.count && i < FUNCTIONS_SHOWN; i++) {
        struct cell cells[TABLE_COLUMNS_MAX] = {{0}};
        char part[16] = "";
        sums_show(&t, i, cells);
        if (cells[shared].kind == CELL_REAL)
            snprintf(part, sizeof part, "%.1f%%", 100 * cells[shared].real);
        screen_line(s, i ? "" : "calls", cells[0].text, "%6s  %10s  %s x ", part,
                    time_text(time, cells[total].number), count_text(number, cells[called].number));
        cells_release(cells);
    }
    if (r->total.copy_calls)
        screen_line(s, "copied", NULL, "%s in %s call%s", bytes_text(time, r->total.copy_bytes),
                    count_text(number, r->total.copy_calls), r->total.copy_calls == 1 ? "" : "s");
}

/* ---- what to do ---- */

/* Prints a command to copy. It is never cut: on a narrow screen it starts farther left. */
static void print_next(struct screen *s, const struct findings *f, const struct finding *found)
{
    char *command = finding_next_line(f, found);
    size_t room = SCREEN_LABEL_WIDTH + 21, length = text_width(command, strlen(command)) + 6;
    if (s->width && room + length > s->width)
        room = s->width > length + 2 ? s->width - length : 2;
    char *text = text_printf("%*snext: %s", (int)room, "", command);
    screen_print(s, text);
    free(text);
    free(command);
}

/* Prints the device, if there are several, and what the thread did while the GPU waited, or the
 * place of the finding. */
static void print_place(struct screen *s, const struct findings *f, const struct finding *found)
{
    char on[80] = "", who[RANK_TITLE_BYTES], ns[UNIT_TEXT_BYTES], of[UNIT_TEXT_BYTES], *did = NULL;
    const struct finding_row *most = found->row_count ? &found->rows[0] : NULL;
    bool is_of_rank = found->kind == &finding_kinds[FINDING_STRAGGLER] || found->says.is_awaited;
    const char *place = found->where;
    if (!place && most && !is_of_rank) /* else the name is the rank itself */
        place = most->name;
    if (f->idle && f->idle->device_count > 1 && found->device != UINT64_MAX)
        snprintf(on, sizeof on, "%s, GPU %llu", process_who(found->process, who),
                 (unsigned long long)found->device);
    else if (found->says.is_awaited)
        process_who(found->process, on);
    if (most && most->did)
        did = text_printf("for %s: %s of %s%s", most->name, time_text(ns, most->ns),
                          time_text(of, found->ns),
                          most->did == DID_RUNNING && most->where ? " sampled there" : "");
    if (did || place || on[0])
        screen_line(s, "", did ? did : place, "%20s%s%s%s", "", on, on[0] && place ? ", " : "",
                    place && !did ? idle_at(place) : "");
    free(did);
}

/* Prints the most expensive findings, each with its place and the next command. If the screen is
 * full, places go first, then commands, then findings. */
static void print_findings(struct screen *s, const struct findings *f)
{
    char time[UNIT_TEXT_BYTES];
    unsigned wanted = s->is_short ? 1 : FINDINGS_SHOWN;
    unsigned count = !f ? 0 : f->count < wanted ? f->count : wanted;
    unsigned room = OVERVIEW_LINES_MAX - LINES_BELOW;
    room = room > s->lines ? room - s->lines : 0;
    unsigned each = s->is_short ? 1 : 3 * count <= room ? 3 : 2;
    count = count < room ? count : room;
    for (unsigned i = 0; i < count; i++) {
        const struct finding *found = &f->list[i];
        unsigned others = count - 1 - i, lines = room - others < each ? room - others : each;
        room -= lines;
        screen_line(s, i ? "" : "finding", NULL, "%5.1f%%  %10s  %s%s",
                    found->bytes ? overview_percent(found->bytes, found->of_bytes)
                                 : overview_percent(found->ns, found->of_ns),
                    found->bytes ? bytes_text(time, found->bytes) : time_text(time, found->ns),
                    finding_title(found), finding_base(found));
        if (lines > 2)
            print_place(s, f, found);
        if (lines > 1)
            print_next(s, f, found);
    }
    if (f && f->count > count && !s->is_short && room)
        screen_line(s, "", NULL, "... and %u more: --table=findings", f->count - count);
}

/* ---- what is missing, and what it cost ---- */

static const char *of_whole(const struct report *r)
{
    return r->time.selection ? ", of the whole recording" : "";
}

uint64_t overview_held_back(const struct report *r)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < r->rec->count; i++)
        held += unfinished_waits(&r->hang.unfinished, r->rec->processes[i])
                    ? r->walk.losses[i].gpu_missing
                    : 0;
    return held < r->total.losses.gpu_missing ? held : r->total.losses.gpu_missing;
}

static void overview_print_losses(struct screen *s, const struct report *r)
{
    char text[LOSSES_BYTES], number[UNIT_TEXT_BYTES];
    struct losses losses = r->total.losses;
    uint64_t held = overview_held_back(r);
    losses.gpu_missing -= held;
    if (held) /* CUPTI delivers full buffers only, and a hanging kernel blocks them */
        screen_line(s, "held back", NULL,
                    "%s kernels, copies and fills: CUPTI had not delivered their records",
                    count_text(number, held));
    const struct selection *piece = r->time.selection;
    bool is_partial = piece && piece->filter.is_near && !r->request.whole;
    uint32_t unread = r->rec->unread_files;
    if (unread)
        screen_line(s, "lost", NULL, "%u file%s that cannot be read", unread, plural_end(unread));
    if (losses_weight(&losses) != LOSS_NONE)
        screen_line(s, unread ? "" : "lost", NULL, "%s%s", losses_text(&losses, text, sizeof text),
                    of_whole(r));
    else if (!unread)
        screen_line(s, "lost", NULL, "nothing%s",
                    r->time.whole_ns ? " of what was read"
                    : is_partial     ? ", of what was read"
                                     : of_whole(r));
    if (r->total.losses.running)
        screen_line(s, "running", NULL, "%s process%s, with the calls so far",
                    count_text(number, r->total.losses.running),
                    r->total.losses.running == 1 ? "" : "es");
}

/* Prints what was given up, if anything was. */
static void print_given_up(struct screen *s, const struct cost_report *c)
{
    const struct step_taken *steps = c->steps, *last = steps;
    uint32_t processes = 0;
    for (uint32_t i = 0; i < c->step_count; i++) {
        processes += i == 0 || steps[i].process != steps[i - 1].process;
        last = steps[i].step->step > last->step->step ? &steps[i] : last;
    }
    if (last)
        screen_line_freed(s, "given up", json_line(last->step->text),
                          "in %u process%s, to keep --overhead-max; most recently: ", processes,
                          processes == 1 ? "" : "es");
}

static void print_cost(struct screen *s, const struct report *r)
{
    const struct cost_report *c = &r->cost;
    if (!c->worst && !c->sum[COST_SUM_WALL_NS])
        return;
    double of_steps = overview_cost_of_steps(r);
    char more[64] = "";
    if (of_steps > 0)
        snprintf(more, sizeof more, "; up to %.2f%% of the steps", 100 * of_steps);
    if (c->is_blind)
        screen_line(s, "gpuprof", NULL, "its own cost was not measured");
    else
        screen_line(
            s, "gpuprof", NULL, "took %s%.2f%% of the threads' time and %.2f%% of a CPU%s%s%s",
            cost_is_rough(c) ? "~" : "", 100 * cost_of_threads(c), 100 * cost_of_processor(c), more,
            of_whole(r), s->is_short ? "" : "; --table=cost");
}

/* Prints what the first screen and the summary have in common. */
static void print_most(struct screen *s, const struct overview *o)
{
    const struct report *r = o->report;
    hang_print_summary(&r->hang, s);
    print_shortage(s, r);
    print_failures(s, r);
    print_program(s, o);
    print_start_up(s, o);
    print_windows(s, o);
    print_steps(s, o);
    overview_print_devices(o, s);
    if (!r->idle || !r->idle->window_ns)
        print_functions(s, r);
    print_findings(s, r->findings);
    overview_print_losses(s, r);
    print_given_up(s, &r->cost);
    print_cost(s, r);
}

void overview_print(const struct overview *o, const struct table_view *how, FILE *out)
{
    struct screen s = {.out = out, .width = how->width, .has_colour = how->has_colour};
    print_most(&s, o);
    char *help = next_line(o->report->next, "gpuprof help report");
    screen_line(&s, "more", NULL, "%s; --full, --table=NAME, --by=WHAT; -o page.html", help);
    free(help);
}

void overview_print_head(const struct overview *o, const struct table_view *how, FILE *out)
{
    struct screen s = {.out = out, .width = how->width, .has_colour = how->has_colour};
    print_program(&s, o);
    overview_print_missing_reason(o->report, &s);
}

void report_print_summary(const struct report *r, FILE *out)
{
    struct screen s = {
        .out = out, .is_short = true, .has_colour = terminal_has_colour(fileno(out))};
    struct overview o;
    overview_init(&o, r);
    print_most(&s, &o);
}
