/* SPDX-License-Identifier: Apache-2.0 */
/* Charges the time of devices to findings: work by finding_gpu.h, idle time by its cause and by
 * what the thread did. And picks the evidence of a finding from the same sums and rows. */
#include <stdlib.h>
#include <string.h>

#include "analyse/findings.h"
#include "base/array.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"

static bool launches_block(const struct process *p)
{
    const char *value = process_meta(p, "env.CUDA_LAUNCH_BLOCKING");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* The finding for idle time of a cause; FINDING_KINDS: none. With blocking launches, nobody knows
 * what else the device would have waited for. */
static enum finding_id kind_of(enum idle_cause cause, bool is_blocking)
{
    switch (cause) {
    case IDLE_LAUNCH: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_LAUNCH_BOUND;
    case IDLE_HOST: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_HOST_BOUND;
    case IDLE_WAITING:
    case IDLE_PREEMPTED: return is_blocking ? FINDING_LAUNCH_BLOCKING : FINDING_KINDS;
    case IDLE_SYNC: return FINDING_SYNC_IN_LOOP;
    case IDLE_COPY: return FINDING_PAGEABLE_COPIES;
    case IDLE_LOADER: return FINDING_SLOW_LOADER;
    case IDLE_ALLOCATION: return FINDING_ALLOCATION_CHURN;
    case IDLE_CAPTURE:
    case IDLE_START_UP: return FINDING_START_UP;
    default: return FINDING_KINDS;
    }
}

/* No call for seconds, and then one. After the last work there is no next call. */
static bool is_between(const struct idle_row *row)
{
    const char *text =
        row->place.kind == IDLE_WORD_OURS ? (const char *)(uintptr_t)row->place.word : "";
    return row->cause == IDLE_NOTHING && strcmp(text, idle_behind_all) != 0;
}

/* The finding for a row of idle time: by what the thread did, if that is known, else by cause.
 * Whatever the thread does to load data counts for the loader. */
static enum finding_id kind_of_row(const struct idle_row *row, bool is_blocking)
{
    enum finding_id by_cause =
        is_between(row) ? FINDING_HOST_BOUND : kind_of((enum idle_cause)row->cause, is_blocking);
    if (is_blocking)
        return by_cause;
    if (row->cause == IDLE_LOADER)
        return row->did == DID_WORKERS ? FINDING_FEW_LOADER_WORKERS : by_cause;
    if (row->cause == IDLE_START_UP)
        return row->did == DID_IMPORT ? FINDING_SLOW_IMPORT : by_cause;
    switch (row->did) {
    case DID_GIL: return FINDING_GIL_CONTENTION;
    case DID_GC: return FINDING_GC_PAUSES;
    case DID_LOCK: return FINDING_LOCK_WAIT;
    case DID_FILE: return FINDING_BLOCKING_IO;
    case DID_IMPORT: return FINDING_SLOW_IMPORT;
    case DID_THROTTLED: return FINDING_CPU_QUOTA;
    case DID_SLEEP:
    case DID_CHILD: return FINDING_HOST_BOUND;
    default: return by_cause;
    }
}

/* The finding that gets the time of the row; FINDING_KINDS: none, since calls that never returned
 * are nobody's cost, and rows of what the thread did hold the time of a cause that is split.
 * Start-up stands by its cause, apart from imports. */
static enum finding_id finding_of(const struct findings *f, const struct idle_row *row,
                                  bool is_blocking)
{
    enum finding_id id = kind_of_row(row, is_blocking);
    bool is_split = idle_cause_is_split((enum idle_cause)row->cause) || is_between(row);
    if (row->did ? row->cause == IDLE_START_UP && id == FINDING_START_UP
                 : row->place.is_open || (f->idle->devices[row->device].is_split && is_split))
        return FINDING_KINDS;
    return id;
}

/* Is the cause frequent enough to report? Done once, at the start or the end, it is no habit. */
static bool is_habit(enum idle_cause cause, const struct finding_costs *of, struct judged_time time)
{
    /* There is some after a wait in a synchronisation, too, but not after one in a copy. */
    uint64_t at = of->gaps[false][cause], after = of->gaps[true][cause];
    uint64_t gaps = at > after ? at : after;
    bool may_be_once = cause != IDLE_SYNC && cause != IDLE_ALLOCATION && cause != IDLE_LOADER;
    return may_be_once || (double)gaps >= FINDING_HABIT_GAPS * time.part;
}

/* A busy device gets its launches fast enough, however short its kernels are. */
static bool is_busy(const struct idle_device *device, struct judged_time time)
{
    uint64_t idle_ns = device->idle_ns - device->causes[IDLE_START_UP];
    return (double)idle_ns < (1 - FINDING_BUSY) * (double)time.judged_ns;
}

struct finding_costs *finding_costs_make(const struct findings *f)
{
    const struct idle *d = f->idle;
    struct finding_costs *all = calloc(d->device_count + 1u, sizeof *all);
    if (!all)
        return NULL;
    for (uint32_t i = 0; i < d->device_count; i++) {
        all[i].is_blocking = launches_block(d->devices[i].process);
        for (unsigned id = 0; i < f->gpu.device_count && id < FINDING_KINDS; id++)
            all[i].ns[id] = (int64_t)f->gpu.devices[i].ns[id];
    }
    for (const struct idle_row *row = d->rows.list; row < d->rows.list + d->rows.count; row++)
        if (!row->did && !row->place.is_open)
            all[row->device].gaps[row->place.side == IDLE_AFTER][row->cause] += row->count;
    for (const struct idle_row *row = d->rows.list; row < d->rows.list + d->rows.count; row++) {
        struct finding_costs *to = &all[row->device];
        enum finding_id id = finding_of(f, row, to->is_blocking);
        bool counts = (row->did && row->cause != IDLE_LOADER) ||
                      is_habit((enum idle_cause)row->cause, to,
                               judged_time_of(f->walk, &d->devices[row->device]));
        if (id == FINDING_KINDS || !counts)
            continue;
        to->ns[id] += (int64_t)row->ns;
        if (row->did && row->cause == IDLE_START_UP) /* the row of the cause has this time, too */
            to->ns[FINDING_START_UP] -= (int64_t)row->ns;
    }
    for (uint32_t i = 0; i < d->device_count; i++) {
        int64_t *ns = all[i].ns;
        if (is_busy(&d->devices[i], judged_time_of(f->walk, &d->devices[i])))
            ns[FINDING_LAUNCH_BOUND] = ns[FINDING_TINY_KERNELS] = 0;
        ns[FINDING_START_UP] = ns[FINDING_START_UP] < 0 ? 0 : ns[FINDING_START_UP];
        ns[FINDING_EXPOSED_COMMUNICATION] = (int64_t)d->devices[i].parts[IDLE_COMMUNICATING];
    }
    return all;
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* Possible evidence at one place: a sum of work or a row of idle time. */
struct candidate {
    struct finding_row is;
    const struct idle_row *row; /* NULL: it is a sum */
};

/* All candidates of one name. Many call paths, each with its own stack, lead to a place. */
struct evidence {
    const struct candidate *from, *end;
    struct candidate all; /* views; the candidate with the longest; count and ns are sums */
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
    enum finding_id id = finding_id_of(found);
    if (id == FINDING_STRAGGLER)
        return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
               (uint32_t)row->place.word == found->process->index;
    return row->device == place &&
           finding_of(f, row, launches_block(f->idle->devices[place].process)) == id;
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

/* Describes waits for a rank: who waited, at which collective it was late, and from where. */
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

/* Fills a row. */
static int make_row(const struct findings *f, const struct evidence *e, struct finding_row *made)
{
    const struct idle_row *row = e->all.row;
    const char *where = e->all.is.where;
    bool is_place = row && where && strstr(where, PLACE_CALLED); /* the place is its name */
    int error = 0;
    *made = e->all.is;
    made->longest_ns = made->longest_ns < made->ns ? made->longest_ns : made->ns;
    made->name = strdup(is_place ? where : made->name);
    made->where = NULL;
    if (row) {
        made->did = row->did;
        made->tid = row->tid;
        made->work_share = row->work_share;
        made->is_of_minor = row->cause == IDLE_HOST && made->work_share < FINDING_MINOR;
    }
    if (row && row->place.kind == IDLE_WORD_DEVICE)
        error = wait_text(f, e, &made->where);
    else if (where && !(made->where = strdup(where)))
        error = GPUPROF_NO_MEMORY;
    return made->name ? error : GPUPROF_NO_MEMORY;
}

/* The length of the place's text without its caller. */
static size_t line_length(const char *place)
{
    const char *called = strstr(place, PLACE_CALLED);
    return called ? (size_t)(called - place) : strlen(place);
}

/* Compare places, which may be NULL, without and with their callers. Places that are equal in the
 * first order are adjacent in the second. */
static int compare_lines(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    size_t length = line_length(a), other = line_length(b);
    int order = memcmp(a, b, length < other ? length : other);
    return order ? order : (length > other) - (length < other);
}

static int compare_places(const char *a, const char *b)
{
    return compare_lines(a, b) ?: a && b ? strcmp(a, b) : 0;
}

static int by_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return compare_places(a->is.where, b->is.where);
}

static int by_name_and_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return compare_lines(a->is.name, b->is.name) ?: compare_places(a->is.where, b->is.where);
}

/* The line with most time in a sorted list, by its longest way; NULL if idle time without a line
 * has more. Work without a place counts nothing: most calls have no stack. */
static char *most_of(const struct candidate *from, const struct candidate *to)
{
    char *most = NULL;
    uint64_t most_ns = 0;
    while (from < to) {
        const struct candidate *first = from, *longest = from;
        uint64_t ns = 0;
        for (; from < to && compare_lines(from->is.where, first->is.where) == 0; from++) {
            ns += from->is.where || from->row ? from->is.ns : 0;
            longest = from->is.ns > longest->is.ns ? from : longest;
        }
        if (ns > most_ns) {
            most = longest->is.where;
            most_ns = ns;
        }
    }
    return most;
}

/* More time first. Equal ones go by the begin of the longest, since numbers of names are arbitrary.
 */
static bool is_more(const void *item, const void *other)
{
    const struct finding_row *a = &((const struct evidence *)item)->all.is;
    const struct finding_row *b = &((const struct evidence *)other)->all.is;
    return a->ns != b->ns ? a->ns > b->ns : a->at_ns < b->at_ns;
}

/* Merges the candidates of one name. Of equally long ones, the first counts as the longest. */
static struct evidence add_together(const struct candidate *from, const struct candidate *end)
{
    struct evidence e = {.from = from, .all = *from};
    const struct candidate *c = from + 1;
    for (; c < end && compare_lines(c->is.name, from->is.name) == 0; c++) {
        struct finding_row so_far = e.all.is;
        if (c->is.longest_ns > so_far.longest_ns ||
            (c->is.longest_ns == so_far.longest_ns && c->is.at_ns < so_far.at_ns))
            e.all = *c;
        e.all.is.count = so_far.count + c->is.count;
        e.all.is.ns = so_far.ns + c->is.ns;
    }
    e.end = c;
    e.all.is.where = most_of(from, c);
    return e;
}

static int add_sum(const struct findings *f, const struct finding_sum *sum, struct candidates *c)
{
    char text[GPU_TITLE_BYTES];
    const struct work_place *where = work_places_at(&f->gpu.wheres, sum->where);
    const char *line = where ? where->text : NULL;
    const struct candidate new = {.is = {.name = strdup(finding_gpu_text(&f->gpu, sum->what, text)),
                                         .where = line ? strdup(line) : NULL,
                                         .ns = sum->ns,
                                         .count = sum->count,
                                         .longest_ns = sum->longest_ns,
                                         .at_ns = sum->at_ns}};
    int error = ARRAY_PUSH(c->list, c->count, &new);
    return new.is.name && !line == !new.is.where ? error : GPUPROF_NO_MEMORY;
}

static int add_row(const struct idle_row *row, struct candidates *c)
{
    struct candidate new = {.row = row,
                            .is = {.name = idle_did_text(row),
                                   .where = row->where ? strdup(row->where) : NULL,
                                   .ns = row->ns,
                                   .count = row->count,
                                   .longest_ns = row->longest_ns,
                                   .at_ns = row->longest_at_ns}};
    int error = ARRAY_PUSH(c->list, c->count, &new);
    return new.is.name && !new.is.where == !row->where ? error : GPUPROF_NO_MEMORY;
}

/* Call candidates_release in any case. */
static int find_candidates(const struct findings *f, const struct finding *to, uint32_t place,
                           struct candidates *c)
{
    enum finding_id kind = finding_id_of(to);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < f->gpu.sums.count; i++)
        if (f->gpu.sums.rows[i].kind == kind && f->gpu.sums.rows[i].device == place)
            error = add_sum(f, &f->gpu.sums.rows[i], c);
    for (uint32_t i = 0; error == 0 && i < f->idle->rows.count; i++)
        if (is_evidence(f, to, place, &f->idle->rows.list[i]))
            error = add_row(&f->idle->rows.list[i], c);
    return error;
}

static void candidates_release(struct candidates *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        free(c->list[i].is.name);
        free(c->list[i].is.where);
    }
    free(c->list);
}

/* Scales the evidence down if it exceeds the finding's cost (not all copies fit beside kernels). */
static void share_out(struct candidates *c, uint64_t ns)
{
    unsigned __int128 all = 0;
    for (uint32_t i = 0; i < c->count; i++)
        all += c->list[i].is.ns;
    for (uint32_t i = 0; all > ns && i < c->count; i++)
        c->list[i].is.ns = (uint64_t)((unsigned __int128)c->list[i].is.ns * ns / all);
}

int finding_add_evidence(const struct findings *f, struct finding *to, uint32_t place)
{
    struct evidence kept[FINDING_ROWS] = {0};
    struct candidates all = {0};
    uint32_t count = 0;
    int error = find_candidates(f, to, place, &all);
    const struct candidate *next = all.list, *end = next ? next + all.count : NULL;
    if (finding_id_of(to) != FINDING_STRAGGLER) /* its cost is a mean of ranks' waits */
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
