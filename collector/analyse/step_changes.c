/* SPDX-License-Identifier: Apache-2.0 */
/* What steps waited for; and the differences between the slowest step and the median step of its
 * process, with their table. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "analyse/step_report.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/next_words.h"
#include "base/text.h"
#include "read/process.h"
#include "resolve/selection.h"

char *step_text(const struct step_report *r, const struct step *step)
{
    char who[RANK_TITLE_BYTES];
    if (r->processes < 2)
        return text_printf("step %" PRIu64, step->number);
    return text_printf("step %" PRIu64 " of %s", step->number, process_who(step->process, who));
}

/* ---- waits ---- */

/* How long a device waited for each process in one step. */
struct awaited {
    uint64_t *ns;     /* owned, by process index; 0 except for those in `waited` */
    uint32_t *waited; /* owned: process indexes */
    uint32_t count;
    uint64_t all_ns; /* including waits for an unknown process */
};

static void add_awaited(struct awaited *s, const struct step *step, const struct idle_wait *wait)
{
    uint64_t ns = overlap_ns(wait->begin_ns, wait->end_ns, step->begin_ns, step->end_ns);
    s->all_ns += ns;
    if (!ns || wait->process == IDLE_NONE)
        return;
    if (!s->ns[wait->process])
        s->waited[s->count++] = wait->process;
    s->ns[wait->process] += ns;
}

/* Ends a step: updates its longest wait, and clears the sums. */
static void settle_awaited(struct awaited *s, struct process *const *processes, struct step *step)
{
    for (; s->count; s->count--) {
        uint32_t process = s->waited[s->count - 1];
        if (s->ns[process] > step->awaited_ns) {
            step->awaited = processes[process];
            step->awaited_ns = s->ns[process];
        }
        s->ns[process] = 0;
    }
    step->all_awaited_ns = max_of(s->all_ns, step->all_awaited_ns);
    s->all_ns = 0;
}

/* Adds a device's waits; steps and waits are in time order. */
static void take_device_waits(const struct steps *steps, struct idle *idle, uint32_t device,
                              struct awaited *sums)
{
    struct process *const *processes = steps->walk->rec->processes;
    uint32_t process = idle->devices[device].process->index;
    uint32_t at = steps->firsts[process], end = steps->firsts[process + 1];
    uint64_t place = 0;
    struct idle_wait wait;
    while (at < end && idle_wait_at(idle, device, place, &wait)) {
        const struct step *step = &steps->list[at];
        add_awaited(sums, step, &wait);
        if (wait.end_ns <= step->end_ns)
            place++;
        else
            settle_awaited(sums, processes, &steps->list[at++]);
    }
    if (at < end)
        settle_awaited(sums, processes, &steps->list[at]);
}

void step_waits_find(struct steps *steps, struct idle *idle)
{
    steps->has_waits = steps->count && idle && idle->waits.count;
    if (!steps->has_waits)
        return;
    uint32_t count = steps->walk->rec->count;
    struct awaited sums = {.ns = memory_new(count, sizeof *sums.ns),
                           .waited = memory_new(count, sizeof *sums.waited)};
    for (uint32_t i = 0; i < idle->device_count; i++)
        take_device_waits(steps, idle, i, &sums);
    free(sums.ns);
    free(sums.waited);
}

static void end_piece(struct report *r)
{
    if (r->marks && r->time.selection)
        selection_keep_steps(r->time.selection, r->marks);
    if (r->marks)
        step_waits_find(r->marks, r->idle);
}

const struct analysis piece_analysis = {.end = end_piece};

/* The step with the same number of the process that `step` waited for; NULL if there is none. */
static const struct step *step_awaited(const struct steps *steps, const struct step *step)
{
    uint64_t middle_ns = step->begin_ns + (step->end_ns - step->begin_ns) / 2;
    const struct step *other = step->awaited ? steps_at(steps, step->awaited, middle_ns) : NULL;
    return other && other != step && other->number == step->number ? other : NULL;
}

bool step_has_only_waited(const struct steps *steps, const struct step *step)
{
    const struct step *other = step_awaited(steps, step);
    uint64_t ns = step->end_ns - step->begin_ns;
    return other && !other->is_partial && other->end_ns - other->begin_ns >= ns - ns / 100 &&
           other->awaited_ns < step->awaited_ns;
}

char *step_wait_text(const struct step *step)
{
    char who[RANK_TITLE_BYTES], time[UNIT_TEXT_BYTES];
    if (!step->awaited || step->awaited_ns < STEP_WAIT_NS)
        return NULL;
    return text_printf("%s, %s", process_who(step->awaited, who),
                       time_text(time, step->awaited_ns));
}

/* ---- differences ---- */

#define CHANGES_SHOWN 5 /* rows of kernels in text, and as many of operators */

/* 0 if it began in the median step, 1 in the slowest, -1 in neither. */
static int compared_in(const struct step_differences *d, const struct process *p, uint64_t begin_ns)
{
    for (int i = 0; d->compared[0] && i < 2; i++) {
        const struct step *step = d->compared[i];
        if (step->process == p && step->begin_ns <= begin_ns && begin_ns < step->end_ns)
            return i;
    }
    return -1;
}

void step_differences_release(struct step_differences *d)
{
    free(d->list);
    key_map_release(&d->places);
}

void step_differences_add(struct step_differences *d, enum change_kind kind,
                          const struct process *process, uint64_t begin_ns,
                          const struct kernel_name *name, uint64_t ns)
{
    struct step_change new = {.kind = kind, .name = name ? name->shown : "(others)"};
    int which = compared_in(d, process, begin_ns);
    uint32_t number;
    if (which < 0)
        return;
    number = KEY_MAP_ITEM(&d->places, ((struct key){kind, (uintptr_t)name, 0}), d->list, d->count,
                          STEP_CHANGES_MAX, &new);
    if (number) {
        d->list[number - 1].count[which]++;
        d->list[number - 1].ns[which] += ns;
    }
}

static uint64_t difference(const struct step_change *c)
{
    return c->ns[1] > c->ns[0] ? c->ns[1] - c->ns[0] : c->ns[0] - c->ns[1];
}

static int compare_changes(const void *left, const void *right)
{
    const struct step_change *a = left, *b = right;
    return ORDER(a->kind, b->kind)
               ?: ORDER(difference(b), difference(a))
               ?: strcmp(a->name, b->name);
}

void step_differences_list(struct step_differences *d)
{
    for (uint32_t i = 0; d->compared[0] && i < STEP_PARTS; i++) {
        struct step_change change = {.kind = CHANGE_PART,
                                     .name = step_parts[i].name,
                                     .ns = {d->compared[0]->parts[i], d->compared[1]->parts[i]}};
        ARRAY_PUSH(d->list, d->count, &change);
    }
    ARRAY_SORT(d->list, d->count, compare_changes);
}

/* Compares the slowest step with the median one of its process. */
static void compare_slowest(struct step_report *r)
{
    const struct step *slowest = r->differs.slowest[0], *step = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->all.whole; i++)
        count += r->steps.list[r->order[i]].process == slowest->process;
    for (uint32_t i = 0, left = count / 2 + 1; left > 0 && i < r->all.whole; i++) {
        step = &r->steps.list[r->order[i]];
        left -= step->process == slowest->process;
    }
    if (count > 1 && step != slowest && !step->is_blind && !slowest->is_blind) {
        r->differs.compared[0] = step;
        r->differs.compared[1] = slowest;
    }
}

void step_differences_find(struct step_report *r)
{
    struct step_differences *d = &r->differs;
    for (uint32_t i = 0; i < r->all.whole && d->slowest_count < SLOWEST_SHOWN; i++) {
        const struct step *step = &r->steps.list[r->order[i]];
        if (!step_has_only_waited(&r->steps, step))
            d->slowest[d->slowest_count++] = step;
    }
    if (d->slowest_count)
        compare_slowest(r);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { CHANGE_NAME, CHANGE_KIND, SLOWEST_COUNT = 4, MEDIAN_COUNT, DIFFERENCE };

static const struct column change_columns[] = {
    [CHANGE_NAME] = {"name", "name", MEMBER(struct step_change, name),
                     .doc = "the part, kernel or operator"},
    [CHANGE_KIND] = {"kind", "", COLUMN_TEXT, 8, .doc = "part, kernel or operator"},
    {"slowest_ns", "slowest", COLUMN_NS, 12, MEMBER(struct step_change, ns[1]),
     .doc = "its time in the slowest step"},
    {"median_ns", "median", COLUMN_NS, 12, MEMBER(struct step_change, ns[0]),
     .doc = "its time in the median step of the same process"},
    [SLOWEST_COUNT] = {"slowest_count", "count", COLUMN_COUNT, 7, .spare = 1,
                       .doc = "the number of them in the slowest step"},
    [MEDIAN_COUNT] = {"median_count", "median count", COLUMN_COUNT, 12, .spare = 1,
                      .doc = "the number of them in the median step"},
    [DIFFERENCE] = {"difference_ns", NULL, COLUMN_NUMBER, .doc = "slowest_ns minus median_ns"},
};

/* Returns whether a row explains the difference: by its count, or a hundredth of the time. */
static bool differs(const struct step_report *r, const struct step_change *c)
{
    uint64_t ns = difference(c);
    uint64_t longer_ns = step_ns(r->differs.compared[1]) - step_ns(r->differs.compared[0]);
    return c->count[0] != c->count[1] || (ns && ns >= longer_ns / 100);
}

static void changes_begin(struct table *t)
{
    const struct step_report *r = t->source;
    bool any = t->format != FORMAT_TEXT;
    for (uint32_t i = 0; r && r->differs.compared[0] && i < r->differs.count && !any; i++)
        any = differs(r, &r->differs.list[i]);
    t->is_there = r && r->differs.compared[0] && any;
    t->count = t->is_there ? r->differs.count : 0;
}

/* Text has only the largest differences. */
static bool has_change(const struct table *t, uint32_t index)
{
    const struct step_report *r = t->source;
    const struct step_change *changes = r->differs.list;
    if (t->format != FORMAT_TEXT)
        return true;
    if (!differs(r, &changes[index]))
        return false;
    return changes[index].kind == CHANGE_PART || index < CHANGES_SHOWN ||
           changes[index - CHANGES_SHOWN].kind != changes[index].kind;
}

static void fill_change(const struct table *t, uint32_t index, struct cell *cells)
{
    static const char *const kinds[CHANGE_KINDS] = {
        [CHANGE_PART] = "part", [CHANGE_KERNEL] = "kernel", [CHANGE_OPERATOR] = "operator"};
    const struct step_change *c = table_item(t, index);
    for (unsigned i = 0; i < STEP_PARTS && c->kind == CHANGE_PART && t->format == FORMAT_TEXT; i++)
        if (strcmp(c->name, step_parts[i].name) == 0)
            cells[CHANGE_NAME] = cell_text(step_parts[i].title);
    cells[CHANGE_KIND] = cell_text(kinds[c->kind]);
    cells[DIFFERENCE] = cell_number(c->ns[1] - c->ns[0]); /* shown with a sign */
    if (c->kind == CHANGE_PART)
        return;
    cells[SLOWEST_COUNT] = cell_number(c->count[1]);
    cells[MEDIAN_COUNT] = cell_number(c->count[0]);
}

/* Prints a command that shows the ranges and calls of the step. If it waited for another rank for
 * half of the difference or more, the command shows that rank's step. */
static void print_alone(const struct step_report *r, FILE *out)
{
    const struct step *step = r->differs.compared[1], *awaited = step_awaited(&r->steps, step);
    uint64_t longer_ns = step_ns(step) - step_ns(r->differs.compared[0]);
    bool is_awaited = awaited && step->awaited_ns >= longer_ns - longer_ns / 2;
    step = is_awaited ? awaited : step;
    char text[160], pid[16], who[RANK_TITLE_BYTES];
    const char *rank = process_rank(step->process);
    snprintf(pid, sizeof pid, "%u", step->process->header.pid);
    snprintf(text, sizeof text,
             "gpuprof report --step=%" PRIu64 " --%s=%.16s --table=nvtx_sum,functions DATA",
             step->number, rank ? "rank" : "pid", rank ? rank : pid);
    char *next = next_line(r->report->next, text);
    fprintf(out, "  %s%s ranges and calls: %s\n",
            is_awaited ? process_who(step->process, who) : "its", is_awaited ? "'s" : "", next);
    free(next);
}

/* Prints which rank the slowest step and the median step waited for. */
static void print_waits(const struct step_report *r, FILE *out)
{
    char *slowest = step_wait_text(r->differs.compared[1]);
    char *median = step_wait_text(r->differs.compared[0]);
    if (slowest)
        fprintf(out, "  waited for: %s in the slowest step, %s in the median step\n", slowest,
                median ? median : "nobody");
    free(slowest);
    free(median);
}

static void changes_before(const struct table *t, FILE *out)
{
    const struct step_report *r = t->source;
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES];
    char *slowest = step_text(r, r->differs.compared[1]),
         *median = step_text(r, r->differs.compared[0]);
    fprintf(out, "difference between the slowest step, %s (%s), and the median step, %s (%s)\n",
            slowest, time_text(a, step_ns(r->differs.compared[1])), median,
            time_text(b, step_ns(r->differs.compared[0])));
    free(slowest);
    free(median);
    print_waits(r, out);
    print_alone(r, out);
}

const struct table_info step_changes_table = {
    .name = "steps",
    .place = PLACE_STEPS,
    .key = "slowest_step",
    TABLE_COLUMNS(change_columns),
    .rows = {ROWS_IN(struct step_report, differs.list, differs.count)},
    .is_further = true,
    .begin = changes_begin,
    .has = has_change,
    .row = fill_change,
    .text_before = changes_before,
};
