/* SPDX-License-Identifier: Apache-2.0 */
/* Charges the time of devices to findings: work by finding_gpu.c, idle time by its cause and by
 * what the thread did. And picks the evidence of a finding from the same rows. */
#include <stdlib.h>
#include <string.h>

#include "analyse/findings.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

#define MINOR      100000 /* millionths of the work: a thread below this is a helper */
#define HABIT_GAPS 4      /* fewer waits, allocations or loads are no habit */
#define BUSY       0.97   /* a device that works for this share of its time is busy */

static bool launches_block(const struct process *p)
{
    const char *value = process_meta(p, "env.CUDA_LAUNCH_BLOCKING");
    return value && value[0] && strcmp(value, "0") != 0;
}

/* No call for seconds, and then one. After the last work there is no next call. */
static bool is_between(const struct idle_row *row)
{
    const char *text =
        row->place.kind == IDLE_WORD_OURS ? (const char *)(uintptr_t)row->place.word : "";
    return row->cause == IDLE_NOTHING && strcmp(text, idle_behind_all) != 0;
}

#define NONE FINDING_HANG /* no idle time is its */
_Static_assert(NONE == 0, "what the tables leave out");

/* The finding for idle time of a cause, and of what the thread did. */
static const uint8_t of_cause[IDLE_CAUSES] = {
    [IDLE_LAUNCH] = FINDING_LAUNCH_BOUND, [IDLE_HOST] = FINDING_HOST_BOUND,
    [IDLE_SYNC] = FINDING_SYNC_IN_LOOP,   [IDLE_COPY] = FINDING_PAGEABLE_COPIES,
    [IDLE_LOADER] = FINDING_SLOW_LOADER,  [IDLE_ALLOCATION] = FINDING_ALLOCATION_CHURN,
    [IDLE_CAPTURE] = FINDING_START_UP,    [IDLE_START_UP] = FINDING_START_UP};
static const uint8_t of_did[DID_KINDS] = {
    [DID_GIL] = FINDING_GIL_CONTENTION, [DID_GC] = FINDING_GC_PAUSES,
    [DID_LOCK] = FINDING_LOCK_WAIT,     [DID_FILE] = FINDING_BLOCKING_IO,
    [DID_IMPORT] = FINDING_SLOW_IMPORT, [DID_THROTTLED] = FINDING_CPU_QUOTA,
    [DID_SLEEP] = FINDING_HOST_BOUND,   [DID_CHILD] = FINDING_HOST_BOUND};

/* The finding for a row of idle time: by what the thread did, if that is known, else by cause.
 * Whatever the thread does to load data counts for the loader. With blocking launches, nobody knows
 * what else the device would have waited for. */
static enum finding_id kind_of(const struct idle_row *row, bool is_blocking)
{
    unsigned cause = is_between(row) ? (unsigned)IDLE_HOST : row->cause, by_did = of_did[row->did];
    if (is_blocking && (row->cause == IDLE_LAUNCH ||
                        (row->cause != IDLE_LOADER && idle_cause_is_split(row->cause))))
        return FINDING_LAUNCH_BLOCKING;
    if (row->cause == IDLE_LOADER && !is_blocking)
        return row->did == DID_WORKERS ? FINDING_FEW_LOADER_WORKERS : FINDING_SLOW_LOADER;
    if (row->cause == IDLE_START_UP && row->did != DID_IMPORT)
        return FINDING_START_UP;
    return (enum finding_id)(by_did && !is_blocking ? by_did : of_cause[cause]);
}

/* The finding that gets the time of the row, or NONE: calls that never returned are nobody's cost,
 * and rows of what the thread did hold the time of a cause that is split. Start-up stands by its
 * cause, apart from imports. */
static enum finding_id finding_of(const struct findings *f, const struct idle_row *row)
{
    const struct idle_device *device = &f->idle->devices[row->device];
    enum finding_id id = kind_of(row, launches_block(device->process));
    bool is_split = idle_cause_is_split((enum idle_cause)row->cause) || is_between(row);
    bool is_others = row->did ? row->cause == IDLE_START_UP && id == FINDING_START_UP
                              : row->place.is_open || (device->is_split && is_split);
    return is_others ? NONE : id;
}

/* Idle time of a device by cause: gaps, and those after a wait (IDLE_AFTER) apart. */
struct gaps {
    uint64_t count[2][IDLE_CAUSES];
};

/* Is the cause frequent enough to report? Done once, at the start or the end, it is no habit. */
static bool is_habit(enum idle_cause cause, const struct gaps *gaps, struct judged_time time)
{
    /* There is some after a wait in a synchronisation, too, but not after one in a copy. */
    uint64_t count = max_of(gaps->count[false][cause], gaps->count[true][cause]);
    bool may_be_once = cause != IDLE_SYNC && cause != IDLE_ALLOCATION && cause != IDLE_LOADER;
    return may_be_once || (double)count >= HABIT_GAPS * time.part;
}

/* A busy device gets its launches fast enough, however short its kernels are. */
static bool is_busy(const struct idle_device *device, struct judged_time time)
{
    uint64_t idle_ns = device->idle_ns - device->causes[IDLE_START_UP];
    return (double)idle_ns < (1 - BUSY) * (double)time.judged_ns;
}

struct finding_charges *finding_costs_make(const struct findings *f)
{
    const struct idle *d = f->idle;
    struct finding_charges *all = memory_new(d->device_count, sizeof *all);
    struct gaps *gaps = memory_new(d->device_count, sizeof *gaps);
    for (uint32_t i = 0; i < d->device_count && i < f->work.charged_count; i++)
        all[i] = f->work.charged[i];
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        if (!row->did && !row->place.is_open)
            gaps[row->device].count[row->place.side == IDLE_AFTER][row->cause] += row->count;
    }
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        enum idle_cause cause = (enum idle_cause)row->cause;
        enum finding_id id = finding_of(f, row);
        struct judged_time time = judged_time_of(f->walk, &d->devices[row->device]);
        uint64_t *ns = all[row->device].ns;
        if (id == NONE ||
            ((!row->did || cause == IDLE_LOADER) && !is_habit(cause, &gaps[row->device], time)))
            continue;
        ns[id] += row->ns;
        if (row->did && cause == IDLE_START_UP) /* the row of the cause has this time, too */
            ns[FINDING_START_UP] -= row->ns;
    }
    for (uint32_t i = 0; i < d->device_count; i++) {
        uint64_t *ns = all[i].ns;
        if (is_busy(&d->devices[i], judged_time_of(f->walk, &d->devices[i])))
            ns[FINDING_LAUNCH_BOUND] = ns[FINDING_TINY_KERNELS] = 0;
        if ((int64_t)ns[FINDING_START_UP] < 0)
            ns[FINDING_START_UP] = 0;
        ns[FINDING_EXPOSED_COMMUNICATION] = d->devices[i].parts[IDLE_COMMUNICATING];
    }
    free(gaps);
    return all;
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* Does the row wait for that process? */
static bool awaits(const struct idle_row *row, const struct process *p)
{
    return row->cause == IDLE_COMMUNICATION && row->place.kind == IDLE_WORD_DEVICE &&
           (uint32_t)row->place.word == p->index;
}

/* Describes waits for a rank: how many wait, at which collective it was late, and from where. */
static char *wait_text(const struct findings *f, const struct process *late)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->idle->device_count; i++) {
        const struct idle_row *row = f->idle->rows.list, *end = row + f->idle->rows.count;
        while (row < end && (row->device != i || !awaits(row, late)))
            row++;
        count += row < end;
    }
    char *where = arrivals_late_text(f->idle, late);
    char *text = text_printf("%u GPU%s%s%s", count, count == 1 ? " waits" : "s wait",
                             where ? "; " : "", where ? where : "");
    free(where);
    return text;
}

/* Completes a row of the finding, which keeps copies of its texts. */
static void make_row(const struct findings *f, const struct evidence *e, struct finding_row *made)
{
    const struct idle_row *row = e->row;
    const char *where = e->is.where;
    bool is_place = row && where && strstr(where, PLACE_CALLED); /* the place is its name */
    *made = e->is;
    made->longest_ns = min_of(made->longest_ns, made->ns);
    made->name = memory_text(is_place ? where : made->name);
    made->where = row && row->place.kind == IDLE_WORD_DEVICE
                      ? wait_text(f, f->walk->rec->processes[(uint32_t)row->place.word])
                      : memory_text(where);
    if (row) {
        made->did = row->did;
        made->tid = row->tid;
        made->work_share = row->work_share;
        made->is_of_minor = row->cause == IDLE_HOST && made->work_share < MINOR;
    }
}

/* The length of the place's text without its caller. */
static size_t line_length(const char *place)
{
    const char *called = strstr(place, PLACE_CALLED);
    return called ? (size_t)(called - place) : strlen(place);
}

/* Are both the same place, but for the caller? Places may be NULL. */
static bool is_one_line(const char *a, const char *b)
{
    return a && b ? line_length(a) == line_length(b) && strncmp(a, b, line_length(a)) == 0 : a == b;
}

static int compare_places(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int by_place(const void *left, const void *right)
{
    const struct evidence *a = left, *b = right;
    return compare_places(a->is.where, b->is.where);
}

static int by_name_and_place(const void *left, const void *right)
{
    const struct evidence *a = left, *b = right;
    return strcmp(a->is.name, b->is.name) ?: compare_places(a->is.where, b->is.where);
}

/* The line with most time in a sorted list, by its longest way; NULL if idle time without a line
 * has more. Work without a place counts nothing: most calls have no stack. */
static char *most_of(const struct evidence *from, const struct evidence *to)
{
    char *most = NULL;
    uint64_t most_ns = 0;
    while (from < to) {
        const struct evidence *first = from, *longest = from;
        uint64_t ns = 0;
        for (; from < to && is_one_line(from->is.where, first->is.where); from++) {
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
    const struct finding_row *a = &((const struct evidence *)item)->is;
    const struct finding_row *b = &((const struct evidence *)other)->is;
    return a->ns != b->ns ? a->ns > b->ns : a->at_ns < b->at_ns;
}

/* Adds up the evidence of one name from *next on, which moves behind it: many call paths, each with
 * its own stack, lead to a place. Of equally long ones, the first counts as the longest. */
static struct evidence add_together(const struct evidence **next, const struct evidence *end)
{
    const struct evidence *from = *next, *e = from + 1;
    struct evidence all = *from;
    for (; e < end && is_one_line(e->is.name, from->is.name); e++) {
        uint64_t count = all.is.count + e->is.count, ns = all.is.ns + e->is.ns;
        if (e->is.longest_ns > all.is.longest_ns ||
            (e->is.longest_ns == all.is.longest_ns && e->is.at_ns < all.is.at_ns))
            all = *e;
        all.is.count = count;
        all.is.ns = ns;
    }
    all.is.where = most_of(from, e);
    *next = e;
    return all;
}

/* Appends the row of idle time to the list, with a name of its own. */
static void add_row(const struct idle_row *row, struct evidence **list, uint32_t *count)
{
    const struct evidence new = {.row = row,
                                 .is = {.name = memory_from(idle_did_text(row)),
                                        .where = row->where,
                                        .ns = row->ns,
                                        .count = row->count,
                                        .longest_ns = row->longest_ns,
                                        .at_ns = row->longest_at_ns}};
    ARRAY_PUSH(*list, *count, &new);
}

/* Scales the evidence down if it exceeds the finding's cost: not all copies fit beside kernels, and
 * communication may wait for another rank. */
static void share_out(struct evidence *list, uint32_t count, uint64_t ns)
{
    unsigned __int128 all = 0, part = 0;
    uint64_t done_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        all += list[i].is.ns;
    for (uint32_t i = 0; all > ns && i < count; i++) {
        part += list[i].is.ns;
        list[i].is.ns = (uint64_t)(part * ns / all) - done_ns;
        done_ns += list[i].is.ns;
    }
}

void finding_add_evidence(struct findings *f, struct finding *to)
{
    struct evidence kept[FINDING_ROWS] = {0}, *list = NULL;
    bool is_straggler = finding_id_of(to) == FINDING_STRAGGLER;
    uint32_t kept_count = 0, count = 0, place = f->work.reported[finding_id_of(to)];
    for (uint32_t i = 0; i < f->work.count; i++) {
        const struct evidence *e = &f->work.list[i];
        if (e->kind == finding_id_of(to) && evidence_is_reported(&f->work, e))
            ARRAY_PUSH(list, count, e);
    }
    for (uint32_t i = 0; i < f->idle->rows.count; i++) {
        const struct idle_row *row = &f->idle->rows.list[i];
        if (is_straggler ? awaits(row, to->process)
                         : row->device + 1 == place && finding_of(f, row) == finding_id_of(to))
            add_row(row, &list, &count);
    }
    const struct evidence *next = list, *end = list ? list + count : NULL;
    if (!is_straggler) /* its cost is a mean of ranks' waits */
        share_out(list, count, to->ns);
    ARRAY_SORT(list, count, by_place);
    to->where = memory_text(most_of(list, end));
    ARRAY_SORT(list, count, by_name_and_place);
    while (next < end) {
        const struct evidence all = add_together(&next, end);
        ARRAY_KEEP(kept, kept_count, FINDING_ROWS, &all, is_more);
    }
    for (; to->row_count < kept_count; to->row_count++)
        make_row(f, &kept[to->row_count], &to->rows[to->row_count]);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].row)
            free(list[i].is.name);
    free(list);
}
