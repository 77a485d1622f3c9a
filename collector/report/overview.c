/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/device_report.h"
#include "analyse/idle.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "rank.h"
#include "read/process.h"
#include "resolve/missing_reason.h"

/* The share of a thread's time says enough if it lived no longer than this times its steps. */
#define STEPS_NEWS 1.5

#define CAUSES_SHOWN          3
#define ALARMING_LINES        7 /* above the causes; the summary of a run then has room for one */
#define MISSING_REASONS_SHOWN 2 /* missing reasons */
#define BAR_WIDTH             40

static void count_devices_and_ranks(struct overview *o)
{
    const struct idle *idle = o->report->idle;
    const struct recording *rec = o->report->rec;
    struct key_map known = {0}, ranks = {0}; /* forked children have their parent's rank */
    for (uint32_t i = 0; i < rec->count; i++)
        if (rec->processes[i]->rank != RANK_NONE)
            key_map_set(&ranks, (struct key){rec->processes[i]->job, rec->processes[i]->rank, 0},
                        1);
    for (uint32_t i = 0; idle && i < idle->device_count; i++) {
        const struct idle_device *d = &idle->devices[i];
        const struct surveyed_device *s = survey_device(&idle->walk->survey, d->process, d->device);
        if (s && s->name[0] && !o->device)
            o->device = s->name;
        key_map_set(&known, surveyed_device_key(s, d->process, d->device), 1);
    }
    o->devices = known.count;
    o->ranks = ranks.count;
    const struct device_sources *sources = &o->report->walk.sources; /* they have names, too */
    if (o->devices && !o->device && sources->count && sources->list[0]->title[0])
        o->device = sources->list[0]->title;
    key_map_release(&known);
    key_map_release(&ranks);
}

/* Counts processes that lack GPU work and have no device: in a job that hangs often all but one. */
static void count_workless(struct overview *o)
{
    const struct report *r = o->report;
    bool *works = memory_new(r->rec->count, sizeof *works);
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++)
        works[r->idle->devices[i].process->index] = true;
    for (uint32_t i = 0; !r->time.selection && i < r->rec->count; i++)
        o->workless += !works[i] && r->walk.losses[i].gpu_missing;
    free(works);
}

bool overview_has_missing(const struct report *r, const struct missing_ranks *m)
{
    return missing_ranks_are_sure(m) || (r->idle && idle_communicates(r->idle, m->job));
}

double overview_cost_of_steps(const struct report *r)
{
    const struct steps *steps = r->time.selection ? NULL : r->program_steps;
    double worst = 0;
    for (uint32_t i = 0; steps && steps->firsts && i < r->rec->count; i++) {
        const uint64_t *sum = r->rec->processes[i]->costs.sum;
        uint64_t steps_ns = 0;
        for (uint32_t k = steps->firsts[i]; k < steps->firsts[i + 1]; k++)
            steps_ns += steps->list[k].end_ns - steps->list[k].begin_ns;
        double share = cost_share(sum[COST_SUM_WORST_COST_NS], steps_ns);
        bool is_news = (double)sum[COST_SUM_WORST_WALL_NS] > STEPS_NEWS * (double)steps_ns;
        worst = is_news && share <= 1 && share > worst ? share : worst;
    }
    return worst;
}

const struct idle_device *overview_first_device(const struct report *r)
{
    const struct idle_device *first = NULL;
    for (uint32_t i = 0; r->idle && i < r->idle->device_count; i++)
        if (!first || r->idle->devices[i].first_ns < first->first_ns)
            first = &r->idle->devices[i];
    return first;
}

uint64_t overview_start_up_ns(const struct report *r)
{
    const struct idle *idle = r->idle;
    const struct idle_device *first = overview_first_device(r);
    if (r->time.is_selection && (!idle || !idle->all.causes[IDLE_START_UP]))
        return 0;
    uint64_t until_ns = first ? first->begin_ns : r->total.begin_ns;
    until_ns = until_ns < r->time.wall_end_ns ? until_ns : r->time.wall_end_ns;
    uint64_t ns = until_ns > r->time.wall_begin_ns ? until_ns - r->time.wall_begin_ns : 0;
    /* Only recorded time can be start-up. */
    return ns + (first ? first->causes[IDLE_START_UP] : 0);
}

/* Finds the slowest step and the median as in the table of steps. */
static void measure_steps(struct overview *o)
{
    const struct report *r = o->report;
    const struct steps *s = r->program_steps;
    o->marks = s;
    if (!s || !s->count)
        return;
    uint64_t *times = memory_new(s->count, sizeof *times);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct step *step = &s->list[i];
        uint64_t ns = step->end_ns - step->begin_ns;
        if (step->is_partial)
            continue;
        times[o->steps++] = ns;
        bool is_slowest = !o->slowest || ns > o->slowest->end_ns - o->slowest->begin_ns;
        if (is_slowest && !step_has_only_waited(s, step))
            o->slowest = step;
    }
    if (o->steps) {
        array_sort_whole(times, o->steps);
        o->step_median_ns = times[(o->steps - 1) / 2];
    }
    free(times);
}

void overview_init(struct overview *o, const struct report *r)
{
    *o = (struct overview){.report = r};
    for (uint32_t i = 0; i < r->rec->count; i++) {
        uint64_t windows = r->walk.recorded[i].window;
        o->windows = windows > o->windows ? windows : o->windows;
        o->schedule =
            o->schedule ? o->schedule : process_meta(r->rec->processes[i], "schedule_steps");
    }
    if (r->rec->count) {
        const char *command = process_meta(r->rec->processes[0], "cmdline");
        o->program = command && command[0] ? command : process_meta(r->rec->processes[0], "exe");
    }
    count_devices_and_ranks(o);
    count_workless(o);
    measure_steps(o);
}

/* ---- what the devices did, and why data is missing ------------------------------------------ */

/* Prints a bar with a letter per kind of work, at least one if the share is not shown as 0.0%. */
static void print_bar(struct screen *s, const struct overview *o)
{
    const struct idle *d = o->report->idle;
    static const char letters[IDLE_PARTS] = {
        [IDLE_COMPUTE] = '#', [IDLE_COMMUNICATING] = '=', [IDLE_COPYING] = '-', [IDLE_OTHER] = ':'};
    char bar[BAR_WIDTH + 1];
    unsigned at = 0;
    for (unsigned i = 0; i < IDLE_PARTS; i++) {
        double share = overview_percent(d->all.parts[i], idle_run_ns(d));
        unsigned length = (unsigned)(share * BAR_WIDTH / 100 + 0.5);
        length = share >= 0.05 && !length ? 1 : length;
        for (; length > 0 && at < BAR_WIDTH; length--)
            bar[at++] = letters[i];
    }
    memset(bar + at, '.', BAR_WIDTH - at);
    bar[BAR_WIDTH] = '\0';
    char workless[64] = "";
    if (o->workless)
        snprintf(workless, sizeof workless, "; of %u process%s no GPU work is recorded",
                 o->workless, o->workless == 1 ? "" : "es");
    screen_line(s, "", NULL, "[%s] %u x %s%s", bar, o->devices, o->device ? o->device : "GPU",
                workless);
}

/* Prints the places with most idle time in all processes. Shares refer to the time after start-up,
 * like those of the line above and of findings, so that numbers can be compared. The line on
 * start-up has its own length. */
static void print_causes(struct screen *s, const struct idle *d)
{
    char time[UNIT_TEXT_BYTES];
    unsigned count = !s->is_short ? CAUSES_SHOWN : s->lines < ALARMING_LINES ? 2 : 1;
    for (uint32_t i = 0, shown = 0; i < d->totals.count && shown < count; i++) {
        const struct sums_row *total = &d->totals.rows[i];
        const char *place = sums_shown(total->keys[IDLE_PLACE]);
        uint64_t cause = total->keys[IDLE_CAUSE], ns = total->values[0];
        if (cause != IDLE_START_UP)
            screen_line(s, shown++ ? "" : "idle", place ? place : "?", "%5.1f%%  %10s  %-13s  ",
                        overview_percent(ns, idle_share_of(d, cause)), time_text(time, ns),
                        idle_cause_words[cause]);
    }
}

/* Returns whether a process was killed before CUPTI delivered the work of its launches. */
static bool was_killed_too_soon(const struct report *r)
{
    bool is_killed = false;
    for (uint32_t i = 0; i < r->rec->count; i++) {
        const struct process *p = r->rec->processes[i];
        is_killed |= !p->losses.running && (!p->end_reason || p->end_reason == END_KILLED);
    }
    return is_killed && r->total.losses.gpu_missing;
}

/* Prints the reason and the advice, without the folders where a library was searched. */
static void print_missing(struct screen *s, const char *before, const char *reason)
{
    static const char looked_at[] = "; looked at ";
    const char *end = strstr(reason, looked_at);
    int length = end ? (int)(end - reason) : (int)strlen(reason);
    screen_long(s, "GPU", "%s%.*s", before, length, reason);
}

/* Prints in one line why GPU rows are missing in some or all processes. */
void overview_print_missing_reason(const struct report *r, struct screen *s)
{
    struct missing_reason found[MISSING_REASONS_MAX];
    const char *rows = recording_gpu_rows(r->rec);
    bool has_gpu = recording_any(r->rec, process_has_gpu); /* even if only readings of devices */
    bool has_worked = r->idle ? r->idle->window_ns : has_gpu;
    unsigned count = has_gpu ? missing_reasons_find(r->rec, "gpu_rows", found) : 0;
    if (!has_gpu && strncmp(rows, "absent", 6) == 0)
        print_missing(s, "rows ", rows);
    else if (!has_worked && was_killed_too_soon(r))
        screen_line(s, "GPU", NULL,
                    "killed before CUPTI delivered any work (try run --tune gpu-flush=50ms)");
    else if (!has_gpu)
        screen_line(s, "GPU", NULL, "no work recorded");
    for (unsigned i = 0; i < count && i < MISSING_REASONS_SHOWN; i++) {
        char *text = missing_reason_text(&found[i], r->rec, "rows");
        print_missing(s, "", text);
        free(text);
    }
}

/* Prints a line if a device was throttled for a relevant share of the time. */
static void print_throttled(struct screen *s, const struct report *r)
{
    enum throttle why = THROTTLE_POWER;
    double share;
    const struct device_row *row = device_report_worst(r->devices, &why, &share);
    char *title = row && share >= THROTTLED_SHARE_MIN ? device_row_title(row) : NULL;
    if (title)
        screen_line(s, "throttled", NULL, "%s %.1f%% of the time, %s: --table=device_counters",
                    throttle_words[why], 100 * share, title);
    free(title);
}

/* Prints why --device could not read counters, or not to the end. */
static void print_unread(struct screen *s, const struct report *r)
{
    const struct device_report *d = r->devices;
    unsigned shown = 0;
    for (uint32_t i = 0; d && i < d->missing_reason_count && shown < MISSING_REASONS_SHOWN; i++) {
        const struct device_missing *a = &d->missing_reasons[i];
        bool is_whole = !a->group && !a->counters; /* every counter */
        char *text = is_whole ? device_missing_text(d, a) : NULL;
        if (text)
            screen_long(s, shown++ ? "" : "--device", "%s", text);
        free(text);
    }
}

/* Prints what the recording lacks, once for all processes. */
static void print_lacks(struct screen *s, const struct recording *rec, const char *head,
                        const char *before, const struct missing_reason *found, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char of[64] = "";
        if (rec->count > 1)
            snprintf(of, sizeof of, " (%u of %u processes)", found[i].processes, rec->count);
        screen_long(s, i ? "" : head, "%s%s%s", before, found[i].reason, of);
    }
}

void overview_print_devices(const struct overview *o, struct screen *s)
{
    const struct idle *d = o->report->idle;
    const struct recording *rec = o->report->rec;
    struct missing_reason found[MISSING_REASONS_MAX];
    if (d && d->window_ns) {
        uint64_t run_ns = idle_run_ns(d);
        char other[40] = "";
        if (d->all.parts[IDLE_OTHER])
            snprintf(other, sizeof other, "  other work %.1f%%",
                     overview_percent(d->all.parts[IDLE_OTHER], run_ns));
        screen_line(s, "GPU time", NULL,
                    "compute %.1f%%  communication %.1f%%  copies %.1f%%  idle %.1f%%%s",
                    overview_percent(d->all.parts[IDLE_COMPUTE], run_ns),
                    overview_percent(d->all.parts[IDLE_COMMUNICATING], run_ns),
                    overview_percent(d->all.parts[IDLE_COPYING], run_ns),
                    overview_percent(d->all.idle_ns - d->all.causes[IDLE_START_UP], run_ns), other);
        if (!s->is_short)
            print_bar(s, o);
        print_causes(s, d);
    }
    print_throttled(s, o->report);
    print_unread(s, o->report);
    overview_print_missing_reason(o->report, s);
    print_lacks(s, rec, "GPU", "rows without ", found, gpu_lacks_find(rec, found));
    print_lacks(s, rec, "note", "", found, notes_find(rec, found));
}
