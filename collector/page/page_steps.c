/* SPDX-License-Identifier: Apache-2.0 */
#include "page/page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyse/op_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"

#define DURATIONS_BYTES_MAX (6u << 20)

void page_steps_release(struct page_steps *s)
{
    free(s->details);
    free(s->places);
    free(s->medians);
}

struct named {
    const struct kernel_name *name;
    uint64_t ns;
};

static bool is_longer(const void *row, const void *other)
{
    return ((const struct named *)row)->ns > ((const struct named *)other)->ns;
}

/* The place of the name; the first free place if it has none, or PAGE_NAMES_MAX. */
static unsigned place_of(const struct page_steps *s, enum page_name_kind kind,
                         const struct kernel_name *name)
{
    unsigned place = 0;
    while (place < PAGE_NAMES_MAX && s->names[kind][place] && s->names[kind][place] != name)
        place++;
    return place;
}

/* Names the rows with most time of their own. Rows may be grouped by more than the name. */
static void name_longest(struct page_steps *s, enum page_name_kind kind, const struct sums *sums,
                         unsigned value)
{
    struct named best[PAGE_NAMES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < sums->shown; i++) {
        const struct sums_row *row = &sums->rows[i];
        struct named one = {(const void *)(uintptr_t)row->keys[0], row->values[value]};
        if (one.name && one.ns && !sums_is_others(row))
            ARRAY_KEEP(best, count, PAGE_NAMES_MAX, &one, is_longer);
    }
    for (uint32_t i = 0; i < count; i++)
        s->names[kind][place_of(s, kind, best[i].name)] = best[i].name;
}

static void add_detail(struct page_steps *s, uint32_t step)
{
    if (s->places[step])
        return;
    s->details[s->detail_count].step = &s->report->steps.list[step];
    s->places[step] = ++s->detail_count;
}

/* Finds the median step of each process, the same as in the report. */
static void find_medians(struct page_steps *s)
{
    const struct step_report *r = s->report;
    uint32_t *left = memory_new(r->walk->rec->count, sizeof *left);
    for (uint32_t i = 0; i < r->all.whole; i++)
        left[r->steps.list[r->order[i]].process->index]++;
    for (uint32_t i = 0; i < r->walk->rec->count; i++)
        left[i] = left[i] ? left[i] / 2 + 1 : 0;
    for (uint32_t i = 0; i < r->all.whole; i++) {
        uint32_t process = r->steps.list[r->order[i]].process->index;
        if (left[process] && --left[process] == 0)
            s->medians[process] = r->order[i] + 1;
    }
    free(left);
}

void page_steps_init(struct page_steps *s, const struct report *r)
{
    *s = (struct page_steps){.walk = (struct walk *)&r->walk, .report = r->steps};
    uint32_t processes = r->rec->count;
    uint32_t steps = r->steps ? r->steps->steps.count : 0;
    if (!steps)
        return;
    uint32_t room = (steps < PAGE_STEPS_MAX ? steps : PAGE_STEPS_MAX) + processes;
    s->details = memory_new(room, sizeof *s->details);
    s->places = memory_new(steps, sizeof *s->places);
    s->medians = memory_new(processes, sizeof *s->medians);
    name_longest(s, NAME_KERNELS, &r->sums[ANALYSIS_kernels_sums], SUMS_TOTAL);
    name_longest(s, NAME_OPERATORS, &r->sums[ANALYSIS_ops_sums], OP_SELF);
    find_medians(s);
    for (uint32_t i = 0; i < processes; i++)
        if (s->medians[i])
            add_detail(s, s->medians[i] - 1);
    for (uint32_t i = 0; i < r->steps->all.whole && s->detail_count < room; i++)
        add_detail(s, r->steps->order[i]);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void page_steps_count(struct page_steps *s, const struct process *p, uint64_t begin_ns,
                             enum page_name_kind kind, const struct kernel_name *name, uint64_t ns)
{
    const struct step *step = steps_at(&s->report->steps, p, begin_ns);
    uint32_t detail = step && begin_ns < step->end_ns ? s->places[step - s->report->steps.list] : 0;
    unsigned place = detail && name ? place_of(s, kind, name) : PAGE_NAMES_MAX;
    if (place < PAGE_NAMES_MAX && s->names[kind][place]) {
        s->details[detail - 1].ns[kind][place] += ns;
        s->details[detail - 1].count[kind][place]++;
    }
}

static int page_steps_take(void *context, const struct slice *s)
{
    struct page_steps *steps = context;
    const struct event *e = &s->event;
    const struct host_span *op = s->span;
    if (e->record && e->record->type == RECORD_KERNEL)
        page_steps_count(steps, e->process, e->begin_ns, NAME_KERNELS,
                         walk_kernel(s->walk, e->process, record_arg(e->record, KERNEL_NAME_INDEX)),
                         e->end_ns - e->begin_ns);
    if (slice_change(s, SPAN_OP) == SPAN_CLOSED && !s->is_filtered && op_works(op) &&
        !op->is_moved && op->end_ns - op->begin_ns > op->inner_ns)
        page_steps_count(steps, op->process, op->begin_ns, NAME_OPERATORS, op->text,
                         op->end_ns - op->begin_ns - op->inner_ns);
    return 0;
}

struct consumer page_steps_consumer(struct page_steps *s)
{
    return (struct consumer){.context = s, .needs = WALK_SPANS, .take = page_steps_take};
}

/* ---- the data -------------------------------------------------------------------------------- */

static void put_names(const struct page_steps *s, enum page_name_kind kind, struct page_data *d)
{
    for (unsigned i = 0; i < PAGE_NAMES_MAX && s->names[kind][i]; i++)
        page_printf(d, i ? ", %s" : "%s", s->names[kind][i]->shown);
}

/* Writes the processes: [index, place of the median step or -1, steps]; a step: [number, duration
 * (negative: a partial step), wait for other ranks]. Returns the number left out. */
static uint32_t put_processes(const struct page_steps *s, struct page_data *d)
{
    const struct steps *steps = &s->report->steps;
    uint64_t before = page_data_written(d);
    const char *separator = "";
    uint32_t left_out = 0;
    for (uint32_t p = 0; p < s->walk->rec->count; p++) {
        uint32_t from = steps->firsts[p], to = steps->firsts[p + 1];
        if (from == to)
            continue;
        if (page_data_written(d) - before > DURATIONS_BYTES_MAX) {
            left_out++;
            continue;
        }
        fprintf(d->stream, "%s\n[%u, %d, [", separator, p,
                s->medians[p] ? (int)(s->medians[p] - 1 - from) : -1);
        for (const struct step *step = steps->list + from; step < steps->list + to; step++)
            fprintf(d->stream, "%s[%" PRIu64 ",%s%" PRIu64 ",%" PRIu64 "]",
                    step > steps->list + from ? "," : "", step->number, step->is_partial ? "-" : "",
                    step_ns(step), step->all_awaited_ns);
        fputs("]]", d->stream);
        separator = ",";
    }
    return left_out;
}

/* Writes [process, place, begin in the recording, parts, kernel times, operator times, process that
 * it waited for longest or -1, how long]. */
static void put_detail(const struct page_steps *s, const struct page_step *detail,
                       uint64_t origin_ns, FILE *out)
{
    const struct step *step = detail->step;
    uint32_t place = (uint32_t)(step - s->report->steps.list);
    uint32_t process = step->process->index;
    fprintf(out, "[%u,%u,%" PRId64 ",[", process, place - s->report->steps.firsts[process],
            (int64_t)(step->begin_ns - origin_ns));
    for (unsigned i = 0; i < STEP_PARTS; i++)
        fprintf(out, "%s%" PRIu64, i ? "," : "", step->parts[i]);
    for (unsigned kind = 0; kind < NAME_KINDS; kind++) {
        fputs("],[", out);
        for (unsigned i = 0; i < PAGE_NAMES_MAX && s->names[kind][i]; i++)
            fprintf(out, "%s%" PRIu64 ",%u", i ? "," : "", detail->ns[kind][i],
                    detail->count[kind][i]);
    }
    fprintf(out, "],%d,%" PRIu64 "]", step->awaited ? (int)step->awaited->index : -1,
            step->awaited_ns);
}

void page_put_steps(const struct page *p, struct page_data *d)
{
    const struct page_steps *s = &p->steps;
    const struct step_report *r = s->report;
    fprintf(d->stream, "{\"by\": \"%s\"", r ? step_kinds[r->steps.kind].word : "none");
    if (!s->detail_count) {
        fputs("}", d->stream);
        return;
    }
    fprintf(d->stream, ", \"whole\": %u, \"knows_waits\": %s, \"parts\": [", r->all.whole,
            r->steps.has_waits ? "true" : "false");
    for (unsigned i = 0; i < STEP_PARTS; i++)
        fprintf(d->stream, "%s[\"%s\", \"%s\"]", i ? ", " : "", step_parts[i].name,
                step_parts[i].title);
    fputs("],\n\"kernels\": [", d->stream);
    put_names(s, NAME_KERNELS, d);
    fputs("],\n\"operators\": [", d->stream);
    put_names(s, NAME_OPERATORS, d);
    fputs("],\n\"processes\": [", d->stream);
    uint32_t left_out = put_processes(s, d);
    fprintf(d->stream, "],\n\"left_out\": %u,\n\"details\": [", left_out);
    for (uint32_t i = 0; i < s->detail_count; i++) {
        fputs(i ? ",\n" : "\n", d->stream);
        put_detail(s, &s->details[i], p->report->walk.survey.origin_ns, d->stream);
    }
    fputs("]}", d->stream);
}
