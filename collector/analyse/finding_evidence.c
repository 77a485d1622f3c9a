/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/finding_charges.h"
#include "base/array.h"
#include "base/new_text.h"
#include "error.h"
#include "read/process_title.h"

/* Possible evidence at one place: a sum of work or a row of idle time. */
struct candidate {
    const struct idle_row *row; /* NULL: it is a sum */
    const char *where;          /* owned for a row, a view for a sum; NULL: not known */
    char *name;                 /* owned */
    uint64_t ns;
    uint64_t count;
    uint64_t longest_ns, at_ns; /* as of struct finding_row */
};

/* All candidates of one name. Many call paths, each with its own stack, lead to a place. */
struct evidence {
    const struct candidate *from, *end;
    struct candidate all; /* the candidate with the longest; count and ns are sums */
    const char *where;    /* the line with most of it; NULL: not known */
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

/* Counts the devices that waited for a rank. *one is the process of one of them. */
static uint32_t count_waiters(const struct findings *f, const struct evidence *e,
                              const struct process **one)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        const struct candidate *c = e->from;
        while (c < e->end && c->row->device != i)
            c++;
        *one = c < e->end ? f->idle->devices[i].process : *one;
        count += c < e->end;
    }
    return count;
}

/* Describes waits for a rank: who waited, at which collective it was late, and from where. Returns
 * 0 or GPUPROF_NO_MEMORY. */
static int wait_text(const struct findings *f, const struct evidence *e, char **text)
{
    const struct process *late = f->walk->rec->processes[(uint32_t)e->all.row->place.word];
    const struct process *one = late;
    uint32_t count = count_waiters(f, e, &one);
    char who[RANK_TITLE_BYTES], *where = NULL;
    int error = arrivals_late_text(f->idle, late, &where);
    const char *joint = where ? "; " : "", *at = where ? where : "";
    *text = error < 0    ? NULL
            : count == 1 ? text_printf("%s waits%s%s", process_who(one, who), joint, at)
                         : text_printf("%u GPUs wait%s%s", count, joint, at);
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
    const struct candidate *all = &e->all;
    const struct idle_row *row = all->row;
    int error = 0;
    *made =
        (struct finding_row){.count = all->count,
                             .ns = all->ns,
                             .longest_ns = all->longest_ns < all->ns ? all->longest_ns : all->ns,
                             .at_ns = all->at_ns};
    bool is_place = row && e->where && strstr(e->where, PLACE_CALLED); /* the place is its name */
    made->name = strdup(is_place ? e->where : all->name);
    if (row) {
        made->did = row->did;
        made->thread = idle_row_thread(f->idle, row);
        made->work_share = idle_row_work_share(f->idle, row);
        made->is_of_minor = is_of_minor(f, row);
    }
    if (row && row->place.kind == IDLE_WORD_DEVICE)
        error = wait_text(f, e, &made->where);
    else if (e->where && !(made->where = strdup(e->where)))
        error = GPUPROF_NO_MEMORY;
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
    return place_compare_lines(a->name, b->name) ?: place_compare(a->where, b->where);
}

/* The line with most time in a sorted list, by its longest way; NULL if idle time without a line
 * has more. Work without a place counts nothing: most calls have no stack. */
static const char *most_of(const struct candidate *from, const struct candidate *to)
{
    const char *most = NULL;
    uint64_t most_ns = 0;
    while (from < to) {
        const struct candidate *first = from, *longest = from;
        uint64_t ns = 0;
        for (; from < to && place_compare_lines(from->where, first->where) == 0; from++) {
            ns += from->where || from->row ? from->ns : 0;
            longest = from->ns > longest->ns ? from : longest;
        }
        if (ns > most_ns) {
            most = longest->where;
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
    for (; c < end && place_compare_lines(c->name, from->name) == 0; c++) {
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

/* Adds a row of idle time. Returns 0 or GPUPROF_NO_MEMORY. */
static int finding_evidence_add_row(const struct findings *f, const struct idle_row *row,
                                    struct candidates *c)
{
    struct candidate new = {.row = row,
                            .name = idle_did_text(f->walk, &f->idle->lines, row),
                            .ns = row->ns,
                            .count = row->count,
                            .longest_ns = row->longest_ns,
                            .at_ns = row->longest_at_ns};
    char *where = NULL;
    int error = idle_where_text(f->walk, &f->idle->lines, row, &where);
    new.where = where;
    int pushed = ARRAY_PUSH(c->list, c->count, &new);
    return !new.name ? GPUPROF_NO_MEMORY : error < 0 ? error : pushed;
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
        char text[GPU_TITLE_BYTES];
        if (sum->kind != kind || sum->device != place)
            continue;
        const struct work_place *where = work_places_at(&f->gpu.wheres, sum->where);
        const struct candidate new = {.where = where ? where->text : NULL,
                                      .name = strdup(finding_gpu_text(&f->gpu, sum->what, text)),
                                      .ns = sum->ns,
                                      .count = sum->count,
                                      .longest_ns = sum->longest_ns,
                                      .at_ns = sum->at_ns};
        error = ARRAY_PUSH(c->list, c->count, &new);
        error = new.name ? error : GPUPROF_NO_MEMORY;
    }
    for (uint32_t i = 0; error == 0 && i < f->idle->rows.count; i++)
        if (is_evidence(f, to, place, &f->idle->rows.list[i]))
            error = finding_evidence_add_row(f, &f->idle->rows.list[i], c);
    return error;
}

static void candidates_release(struct candidates *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->list[i].row)
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
    if (to->kind != &finding_kinds[FINDING_STRAGGLER]) /* its cost is a mean of ranks' waits */
        share_out(&all, to->ns);
    if (error == 0 && all.count) {
        qsort(all.list, all.count, sizeof *all.list, by_place);
        const char *most = most_of(next, end);
        to->where = most ? strdup(most) : NULL;
        error = most && !to->where ? GPUPROF_NO_MEMORY : 0;
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
