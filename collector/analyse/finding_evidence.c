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

/* What may be evidence, of one place: a sum or a row. */
struct candidate {
    const struct finding_sum *sum; /* NULL: it is a row */
    const struct idle_row *row;
    const char *where; /* owned of a row, a view of a sum; NULL: not known */
    char *name;    /* owned: of a row that is one with others of that name; NULL: `what` says all */
    uint64_t what; /* the same of what has the same name */
    uint64_t ns;
    uint64_t count;
    uint64_t longest_ns, at_ns; /* as of struct finding_row */
};

/* A line, and how many ways lead there; the text has the one with most time. */
struct told_line {
    const char *text; /* NULL: not known */
    unsigned ways;
};

/* All of one name. */
struct evidence {
    const struct candidate *from, *end;
    struct candidate all;   /* the one with the longest; but for what all of them add up */
    struct told_line where; /* where most of it is */
};

/* The candidates of a finding. */
struct candidates {
    struct candidate *list; /* owned */
    uint32_t count;
};

/* Is the row of idle time evidence of this finding, of the device at `place`? */
static bool is_evidence(const struct findings *f, const struct finding *found, uint32_t place,
                        const struct idle_row *row)
{
    enum finding_id id = (enum finding_id)(found->kind - finding_kinds);
    if (id == FINDING_STRAGGLER)
        return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
               (uint32_t)row->place.word == found->process->index;
    return row->device == place && !row->place.is_open && finding_is_charged(f, id, row);
}

/* In new memory; NULL: it is not known, or *error is GPUPROF_NO_MEMORY. */
static char *line_text(const struct told_line *line, int *error)
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
    uint32_t processes;          /* that these are of */
    uint64_t least_ns, most_ns;  /* that one of them waited in all */
    const struct process *first; /* of one of them */
};

/* 0 or GPUPROF_NO_MEMORY. */
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

/* "rank 3 waits", or how many do, and how long; in new memory. NULL: there is none. */
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

/* Of waits for a rank: who waited, and to what that rank came late from where. 0 or
 * GPUPROF_NO_MEMORY. */
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

/* 0 or GPUPROF_NO_MEMORY. */
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
    else if (e->where.text && strstr(e->where.text, PLACE_CALLED)) /* that is its name */
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

/* Of the sorted candidates from *from to `to` the time of the first line, behind which *from is
 * then. Most calls have no stack as a rule: those tell nothing. */
static uint64_t take_line(const struct candidate **from, const struct candidate *to,
                          struct told_line *line)
{
    const struct candidate *first = *from, *c = first;
    uint64_t ns = 0, most_ns = 0;
    *line = (struct told_line){.text = first->where};
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

/* Of these the line that has most time; none if idle time that is at no line has more. */
static struct told_line most_of(const struct candidate *from, const struct candidate *to)
{
    struct told_line most = {0}, line;
    uint64_t most_ns = 0;
    while (from < to) {
        uint64_t ns = take_line(&from, to, &line);
        if (ns > most_ns) {
            most = line;
            most_ns = ns;
        }
    }
    return most;
}

/* Of as much time the one whose longest began first: the numbers of names say nothing. */
static bool is_more(const void *item, const void *other)
{
    const struct candidate *a = &((const struct evidence *)item)->all;
    const struct candidate *b = &((const struct evidence *)other)->all;
    return a->ns != b->ns ? a->ns > b->ns : a->at_ns < b->at_ns;
}

/* Those of one name. Of two that are as long the one that began first is the longest. */
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

/* A place is met on many ways, each with a stack of its own: who reads its name takes it for one.
 */
static void unite(struct candidates *c)
{
    if (c->count)
        qsort(c->list, c->count, sizeof *c->list, by_text);
    for (uint32_t i = 1; i < c->count; i++)
        if (c->list[i].name && place_compare_lines(c->list[i - 1].name, c->list[i].name) == 0)
            c->list[i].what = c->list[i - 1].what;
}

/* Each row has one of its own, in their order. Waits of all others for a rank are one; each device
 * of its own is, too, which its others wait for. */
static uint64_t row_what(const struct idle_row *row, uint32_t index)
{
    bool is_own = row->process == (uint32_t)row->place.word;
    uint64_t wait = is_own ? 1 + (row->place.word >> 32) : 0;
    return UINT64_MAX - (row->place.kind == IDLE_WORD_DEVICE ? wait : index);
}

/* 0 or GPUPROF_NO_MEMORY. */
static int add_row(const struct findings *f, const struct idle_row *row, uint32_t index,
                   struct candidates *c)
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

/* 0 or GPUPROF_NO_MEMORY; candidates_release in both cases. */
static int find_candidates(const struct findings *f, const struct finding *to, uint32_t place,
                           struct candidates *c)
{
    uint32_t sums = finding_worked(f, place) ? f->sums.count : 0;
    enum finding_id kind = (enum finding_id)(to->kind - finding_kinds);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < sums; i++) {
        const struct finding_sum *sum = &f->sums.rows[i];
        const struct candidate new = {.sum = sum,
                                      .where = work_places_text(&f->gpu.wheres, sum->where),
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
            error = add_row(f, &f->idle->rows.list[i], i, c);
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

/* Has what is evidence more than the finding costs (not all copies would fit beside kernels), each
 * has its share of that. */
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
    const struct candidate *next = all.list, *end = all.list + all.count;
    if (to->kind != &finding_kinds[FINDING_STRAGGLER]) /* costs the mean of several ranks' waits */
        share_out(&all, to->ns);
    if (error == 0 && all.count) {
        qsort(all.list, all.count, sizeof *all.list, by_place);
        const struct told_line most = most_of(next, end);
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
