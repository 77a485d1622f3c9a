/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"
#include "base/new_text.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/finding_charges.h"
#include "base/array.h"
#include "base/unit_text.h"
#include "error.h"
#include "read/process_title.h"

/* Possible evidence at one place: a sum of work or a row of idle time. */
struct candidate {
    const struct finding_sum *sum; /* NULL: it is a row */
    const struct idle_row *row;
    const char *where; /* owned for a row, a view for a sum; NULL: not known */
    char *name; /* owned: of a row that may be merged with others of that name; NULL: use `what` */
    uint64_t what; /* equal for equal names */
    uint64_t ns;
    uint64_t count;
    uint64_t longest_ns, at_ns; /* as of struct finding_row */
};

/* A line and the number of call paths to it. The text is of the path with most time. */
struct reported_line {
    const char *text; /* NULL: not known */
    unsigned ways;
};

/* All candidates of one name. */
struct evidence {
    const struct candidate *from, *end;
    struct candidate all;       /* the candidate with the longest; count and ns are sums */
    struct reported_line where; /* the line with most of it */
};

/* The candidates of a finding. */
struct candidates {
    struct candidate *list; /* owned */
    uint32_t count;
};

/* Is the row of idle time evidence for this finding of the device at `place`? */
static bool is_evidence(const struct findings *f, const struct finding *found, uint32_t place,
                        const struct idle_row *row)
{
    enum finding_id id = (enum finding_id)(found->kind - finding_kinds);
    if (id == FINDING_STRAGGLER)
        return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
               (uint32_t)row->place.word == found->process->index;
    return row->device == place && !row->place.is_open && finding_is_charged(f, id, row);
}

/* The line's text in new memory. NULL: not known, or *error is GPUPROF_NO_MEMORY. */
static char *line_text(const struct reported_line *line, int *error)
{
    char *text = !line->text      ? NULL
                 : line->ways > 1 ? text_printf("%s and %u other line%s", line->text,
                                                line->ways - 1, plural_end(line->ways - 1))
                                  : strdup(line->text);
    *error = line->text && !text ? GPUPROF_NO_MEMORY : *error;
    return text;
}

/* The devices that waited for a rank. */
struct waiters {
    uint32_t devices;
    uint32_t processes;          /* their processes */
    uint64_t least_ns, most_ns;  /* total wait of one of them */
    const struct process *first; /* process of one of them */
};

/* Counts the devices that waited. Returns 0 or GPUPROF_NO_MEMORY. */
static int count_waiters(const struct findings *f, const struct evidence *e, struct waiters *w)
{
    const struct idle_device *devices = f->idle->devices;
    uint64_t *ns = calloc(f->idle->device_count + 1u, sizeof *ns);
    bool *is_counted = calloc(f->walk->rec->count + 1u, sizeof *is_counted);
    *w = (struct waiters){.least_ns = UINT64_MAX};
    for (const struct candidate *c = e->from; ns && c < e->end; c++)
        ns[c->row->device] += c->ns;
    for (uint32_t i = 0; ns && is_counted && i < f->idle->device_count; i++) {
        const struct process *p = devices[i].process;
        if (!ns[i])
            continue;
        w->first = w->first ? w->first : p;
        w->devices++;
        w->processes += !is_counted[p->index];
        w->least_ns = ns[i] < w->least_ns ? ns[i] : w->least_ns;
        w->most_ns = ns[i] > w->most_ns ? ns[i] : w->most_ns;
        is_counted[p->index] = true;
    }
    int error = ns && is_counted ? 0 : GPUPROF_NO_MEMORY;
    free(ns);
    free(is_counted);
    return error;
}

/* "rank 3 waits", or how many wait and how long; in new memory, NULL if there is none. */
static char *waiters_text(const struct waiters *w)
{
    char who[RANK_TITLE_BYTES], least[UNIT_TEXT_BYTES], most[UNIT_TEXT_BYTES];
    const char *noun = w->devices > w->processes ? "GPUs"
                       : process_rank(w->first)  ? "ranks"
                                                 : "processes";
    time_text(least, w->least_ns);
    time_text(most, w->most_ns);
    bool is_same = strcmp(least, most) == 0;
    return w->devices == 1 ? text_printf("%s waits", process_who(w->first, who))
                           : text_printf("%u %s wait, %s%s%s each", w->devices, noun,
                                         is_same ? "" : least, is_same ? "" : " to ", most);
}

/* Describes waits for a rank: who waited, at which collective it was late, and from where. Returns
 * 0 or GPUPROF_NO_MEMORY. */
static int wait_text(const struct findings *f, const struct evidence *e, char **text)
{
    const struct process *late = f->walk->rec->processes[(uint32_t)e->all.row->place.word];
    struct waiters waiters;
    char *who = NULL, *where = NULL;
    int error = count_waiters(f, e, &waiters);
    *text = NULL;
    if (error == 0)
        error = arrivals_late_text(f->idle, late, &where);
    if (error == 0)
        who = waiters_text(&waiters);
    if (who)
        *text = text_printf("%s%s%s", who, where ? "; " : "", where ? where : "");
    free(who);
    free(where);
    return error == 0 && !*text ? GPUPROF_NO_MEMORY : error;
}

static bool is_of_minor(const struct findings *f, const struct idle_row *row)
{
    return row->cause == IDLE_HOST && idle_row_work_share(f->idle, row) < FINDING_MINOR;
}

/* Fills a row. Returns 0 or GPUPROF_NO_MEMORY. */
static int make_row(const struct findings *f, const struct evidence *e, struct finding_row *made)
{
    char text[GPU_TITLE_BYTES];
    const struct candidate *all = &e->all;
    const struct idle_row *row = all->row;
    int error = 0;
    *made =
        (struct finding_row){.count = all->count,
                             .ns = all->ns,
                             .longest_ns = all->longest_ns < all->ns ? all->longest_ns : all->ns,
                             .at_ns = all->at_ns,
                             .where = line_text(&e->where, &error)};
    if (!row)
        made->name = strdup(finding_gpu_text(&f->gpu, all->what, text));
    else if (e->where.text && strstr(e->where.text, PLACE_CALLED)) /* the place is its name */
        made->name = line_text(&e->where, &error);
    else
        made->name = idle_did_text(f->walk, &f->idle->lines, row);
    if (row) {
        made->did = row->did;
        made->thread = idle_row_thread(f->idle, row);
        made->work_share = idle_row_work_share(f->idle, row);
        made->is_of_minor = is_of_minor(f, row);
    }
    if (row && row->place.kind == IDLE_WORD_DEVICE && error == 0) {
        free(made->where);
        error = wait_text(f, e, &made->where);
    }
    return made->name ? error : GPUPROF_NO_MEMORY;
}

static int by_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return place_compare(a->where, b->where);
}

static int by_name_and_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return ORDER(a->what, b->what) ?: place_compare(a->where, b->where);
}

/* Sums the candidates of the first line in a sorted list, and moves *from behind them. Work without
 * a place counts nothing: most calls have no stack. */
static uint64_t finding_evidence_take_line(const struct candidate **from,
                                           const struct candidate *to, struct reported_line *line)
{
    const struct candidate *first = *from, *c = first;
    uint64_t ns = 0, most_ns = 0;
    *line = (struct reported_line){.text = first->where};
    while (c < to && place_compare_lines(c->where, first->where) == 0) {
        const struct candidate *way = c;
        uint64_t way_ns = 0;
        for (; c < to && by_place(c, way) == 0; c++)
            way_ns += c->where || c->row ? c->ns : 0;
        if (way_ns > most_ns) {
            line->text = way->where;
            most_ns = way_ns;
        }
        line->ways++;
        ns += way_ns;
    }
    *from = c;
    return ns;
}

/* The line with most time; none if idle time without a line has more. */
static struct reported_line most_of(const struct candidate *from, const struct candidate *to)
{
    struct reported_line most = {0}, line;
    uint64_t most_ns = 0;
    while (from < to) {
        uint64_t ns = finding_evidence_take_line(&from, to, &line);
        if (ns > most_ns) {
            most = line;
            most_ns = ns;
        }
    }
    return most;
}

/* More time first. Equal ones go by the begin of the longest, since numbers of names are arbitrary.
 */
static bool is_more(const void *item, const void *other)
{
    const struct candidate *a = &((const struct evidence *)item)->all;
    const struct candidate *b = &((const struct evidence *)other)->all;
    return a->ns != b->ns ? a->ns > b->ns : a->at_ns < b->at_ns;
}

/* Merges the candidates of one name. Of equally long ones, the first counts as the longest. */
static struct evidence add_together(const struct candidate *from, const struct candidate *end)
{
    struct evidence e = {.from = from, .all = *from};
    const struct candidate *c = from + 1;
    for (; c < end && c->what == from->what; c++) {
        struct candidate so_far = e.all;
        if (c->longest_ns > so_far.longest_ns ||
            (c->longest_ns == so_far.longest_ns && c->at_ns < so_far.at_ns))
            e.all = *c;
        e.all.count = so_far.count + c->count;
        e.all.ns = so_far.ns + c->ns;
    }
    e.end = c;
    e.where = most_of(from, c);
    return e;
}

static int by_text(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return place_compare(a->name, b->name);
}

/* Gives candidates of equal names one number: many call paths, each with its own stack, lead to a
 * place. */
static void unite(struct candidates *c)
{
    if (c->count)
        qsort(c->list, c->count, sizeof *c->list, by_text);
    for (uint32_t i = 1; i < c->count; i++)
        if (c->list[i].name && place_compare_lines(c->list[i - 1].name, c->list[i].name) == 0)
            c->list[i].what = c->list[i - 1].what;
}

/* The number of a row: its own, in order. The waits of all other ranks for a rank share one; so do
 * waits for each device of the same process. */
static uint64_t row_what(const struct idle_row *row, uint32_t index)
{
    bool is_own = row->process == (uint32_t)row->place.word;
    uint64_t wait = is_own ? 1 + (row->place.word >> 32) : 0;
    return UINT64_MAX - (row->place.kind == IDLE_WORD_DEVICE ? wait : index);
}

/* Adds a row of idle time. Returns 0 or GPUPROF_NO_MEMORY. */
static int finding_evidence_add_row(const struct findings *f, const struct idle_row *row,
                                    uint32_t index, struct candidates *c)
{
    struct candidate new = {.row = row,
                            .what = row_what(row, index),
                            .ns = row->ns,
                            .count = row->count,
                            .longest_ns = row->longest_ns,
                            .at_ns = row->longest_at_ns};
    char *where = NULL;
    int error = idle_where_text(f->walk, &f->idle->lines, row, &where);
    new.where = where;
    bool has_name = row->place.kind != IDLE_WORD_DEVICE && !is_of_minor(f, row);
    new.name = has_name ? idle_did_text(f->walk, &f->idle->lines, row) : NULL;
    int pushed = ARRAY_PUSH(c->list, c->count, &new);
    return has_name && !new.name ? GPUPROF_NO_MEMORY : error < 0 ? error : pushed;
}

/* Returns 0 or GPUPROF_NO_MEMORY; call candidates_release in both cases. */
static int find_candidates(const struct findings *f, const struct finding *to, uint32_t place,
                           struct candidates *c)
{
    uint32_t sums = finding_worked(f, place) ? f->sums.count : 0;
    enum finding_id kind = (enum finding_id)(to->kind - finding_kinds);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < sums; i++) {
        const struct finding_sum *sum = &f->sums.rows[i];
        const struct work_place *where = work_places_at(&f->gpu.wheres, sum->where);
        const struct candidate new = {.sum = sum,
                                      .where = where ? where->text : NULL,
                                      .what = sum->what,
                                      .ns = sum->ns,
                                      .count = sum->count,
                                      .longest_ns = sum->longest_ns,
                                      .at_ns = sum->at_ns};
        if (sum->kind == kind && sum->device == place)
            error = ARRAY_PUSH(c->list, c->count, &new);
    }
    for (uint32_t i = 0; error == 0 && i < f->idle->rows.count; i++)
        if (is_evidence(f, to, place, &f->idle->rows.list[i]))
            error = finding_evidence_add_row(f, &f->idle->rows.list[i], i, c);
    unite(c);
    return error;
}

static void candidates_release(struct candidates *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->list[i].row) {
            free((char *)c->list[i].where);
            free(c->list[i].name);
        }
    free(c->list);
}

/* Scales the evidence down if it exceeds the finding's cost (not all copies fit beside kernels). */
static void share_out(struct candidates *c, uint64_t ns)
{
    unsigned __int128 all = 0;
    for (uint32_t i = 0; i < c->count; i++)
        all += c->list[i].ns;
    for (uint32_t i = 0; all > ns && i < c->count; i++)
        c->list[i].ns = (uint64_t)((unsigned __int128)c->list[i].ns * ns / all);
}

int finding_add_evidence(const struct findings *f, struct finding *to, uint32_t place)
{
    struct evidence kept[FINDING_ROWS] = {0};
    struct candidates all = {0};
    uint32_t count = 0;
    int error = find_candidates(f, to, place, &all);
    const struct candidate *next = all.list, *end = next ? next + all.count : NULL;
    if (to->kind !=
        &finding_kinds[FINDING_STRAGGLER]) /* its cost is a mean of several ranks' waits */
        share_out(&all, to->ns);
    if (error == 0 && all.count) {
        qsort(all.list, all.count, sizeof *all.list, by_place);
        const struct reported_line most = most_of(next, end);
        to->where = line_text(&most, &error);
        qsort(all.list, all.count, sizeof *all.list, by_name_and_place);
    }
    while (error == 0 && next < end) {
        struct evidence evidence = add_together(next, end);
        next = evidence.end;
        ARRAY_KEEP(kept, count, FINDING_ROWS, &evidence, is_more);
    }
    for (; error == 0 && to->row_count < count; to->row_count++)
        error = make_row(f, &kept[to->row_count], &to->rows[to->row_count]);
    candidates_release(&all);
    return error;
}
