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

enum { NAME, KIND, COUNTS = 4, SIGNED = 6 }; /* columns; the first two are keys, too */
/* Values; the first is enum change_kind. */
enum { IS, DIFFERENCE, MEDIAN_NS, SLOWEST_NS, MEDIAN_COUNT, SLOWEST_COUNT };

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

void step_differences_add(struct step_differences *d, enum change_kind kind,
                          const struct process *process, uint64_t begin_ns,
                          const struct kernel_name *name, uint64_t ns)
{
    struct sums *s = &d->changes;
    int which = compared_in(d, process, begin_ns);
    if (which < 0)
        return;
    uint64_t key = name ? sums_name_key(name) : sums_text(s, "(others)");
    uint64_t *values = sums_row(s, key, kind, 0)->values;
    values[IS] = kind;
    values[MEDIAN_NS + which] += ns;
    values[MEDIAN_COUNT + which]++;
}

void step_differences_finish(struct step_report *r)
{
    struct sums *s = &r->differs.changes;
    const struct step *median = r->differs.compared[0], *slowest = r->differs.compared[1];
    if (!median)
        return;
    for (uint32_t i = 0; i < STEP_PARTS; i++) {
        const uint64_t values[] = {CHANGE_PART, 0, median->parts[i], slowest->parts[i], 0, 0};
        sums_row_add(s, (struct key){sums_text(s, step_parts[i].name), CHANGE_PART, 0}, values);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t *v = s->rows[i].values;
        v[DIFFERENCE] = max_of(v[SLOWEST_NS], v[MEDIAN_NS]) - min_of(v[SLOWEST_NS], v[MEDIAN_NS]);
    }
    sums_finish(s);
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
    sums_init(&d->changes, &step_changes, r->walk, NULL);
    d->changes.owner = r;
    if (d->slowest_count)
        compare_slowest(r);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct column columns[] = {
    [NAME] = {"name", "name", SHOW(KEY, NAME), .doc = "the part, kernel or operator"},
    [KIND] = {"kind", "", COLUMN_TEXT, 8, .doc = "part, kernel or operator"},
    {"slowest_ns", "slowest", COLUMN_NS, 12, SHOW(VALUE, SLOWEST_NS),
     .doc = "its time in the slowest step"},
    {"median_ns", "median", COLUMN_NS, 12, SHOW(VALUE, MEDIAN_NS),
     .doc = "its time in the median step of the same process"},
    {"slowest_count", "count", COLUMN_COUNT, 7, .spare = 1, SHOW(VALUE, SLOWEST_COUNT),
     .doc = "the number of them in the slowest step"},
    {"median_count", "median count", COLUMN_COUNT, 12, .spare = 1, SHOW(VALUE, MEDIAN_COUNT),
     .doc = "the number of them in the median step"},
    {"difference_ns", NULL, COLUMN_NUMBER, .doc = "slowest_ns minus median_ns"},
};

/* Returns whether a row explains the difference: by its count, or a hundredth of the time. */
static bool differs(const struct sums *s, uint32_t index)
{
    const struct step_differences *d = &((const struct step_report *)s->owner)->differs;
    const uint64_t *v = s->rows[index].values;
    uint64_t longer_ns = step_ns(d->compared[1]) - step_ns(d->compared[0]);
    return v[MEDIAN_COUNT] != v[SLOWEST_COUNT] ||
           (v[DIFFERENCE] && v[DIFFERENCE] >= longer_ns / 100);
}

static void changes_begin(struct table *t)
{
    bool any = t->format != FORMAT_TEXT;
    sums_begin(t);
    for (uint32_t i = 0; i < t->count && !any; i++)
        any = differs(t->source, i);
    t->count = any ? t->count : 0;
    t->is_there = t->count > 0;
}

/* Text has only the largest differences. */
static bool has_change(const struct table *t, uint32_t index)
{
    const struct sums *s = t->source;
    uint64_t kind = s->rows[index].values[IS];
    return t->format != FORMAT_TEXT ||
           (differs(s, index) && (kind == CHANGE_PART || index < CHANGES_SHOWN ||
                                  s->rows[index - CHANGES_SHOWN].values[IS] != kind));
}

static void fill_change(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    static const char *const kinds[] = {
        [CHANGE_OPERATOR] = "operator", [CHANGE_KERNEL] = "kernel", [CHANGE_PART] = "part"};
    bool is_part = row->values[IS] == CHANGE_PART;
    for (unsigned i = 0; i < STEP_PARTS && is_part && t->format == FORMAT_TEXT; i++)
        if (strcmp(cells[NAME].text, step_parts[i].name) == 0)
            cells[NAME] = cell_text(step_parts[i].title);
    cells[KIND] = cell_text(kinds[row->values[IS]]);
    cells[SIGNED] = /* shown with a sign */
        cell_number(row->values[SLOWEST_NS] - row->values[MEDIAN_NS]);
    if (is_part)
        cells[COUNTS] = cells[COUNTS + 1] = (struct cell){0};
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

/* Prints which steps are compared, and which rank each of them waited for. */
static void changes_before(const struct table *t, FILE *out)
{
    const struct step_report *r = ((const struct sums *)t->source)->owner;
    char times[2][UNIT_TEXT_BYTES], *names[2], *waits[2];
    for (unsigned i = 0; i < 2; i++) {
        names[i] = step_text(r, r->differs.compared[i]);
        waits[i] = step_wait_text(r->differs.compared[i]);
        time_text(times[i], step_ns(r->differs.compared[i]));
    }
    fprintf(out, "difference between the slowest step, %s (%s), and the median step, %s (%s)\n",
            names[1], times[1], names[0], times[0]);
    if (waits[1])
        fprintf(out, "  waited for: %s in the slowest step, %s in the median step\n", waits[1],
                waits[0] ? waits[0] : "nobody");
    for (unsigned i = 0; i < 2; i++) {
        free(names[i]);
        free(waits[i]);
    }
    print_alone(r, out);
}

const struct sums_info step_changes = {
    .keys = {KEY_TEXT, KEY_NUMBER},
    .values = {JOIN_MOST, JOIN_MOST, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD},
    .rows_max = STEP_CHANGES_MAX,
    .order = IS,
    .then = {DIFFERENCE},
    .fill = fill_change,
    .table = {.begin = changes_begin,
              .has = has_change,
              .row = sums_show,
              .name = "steps",
              .place = PLACE_STEPS,
              .key = "slowest_step",
              TABLE_COLUMNS(columns),
              .is_further = true,
              .text_before = changes_before},
};
