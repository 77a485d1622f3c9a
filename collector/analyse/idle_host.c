/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time in which the feeding thread made no call, split by what that thread did
 * (thread_time.h). These rows of idle_rows.h have `did` != 0 and stand beside those of the causes.
 * Those of a device and cause add up to that cause's time there.
 *
 * During the walk a row is a stretch that a record covers, a sample, or a pool. A pool is time in
 * which the thread only is known to have run (DID_RUNNING), waited (DID_WAITED), or neither
 * (DID_UNKNOWN). After the walk samples take time from the pools, never more than they stand for.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/idle.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"

static bool is_pool(const struct idle_row *row)
{
    return !row->place.stack && !row->place.kind &&
           (row->did == DID_RUNNING || row->did == DID_PREEMPTED || row->did == DID_WAITED ||
            row->did == DID_UNKNOWN);
}

/* Start-up and data loading are split separately. */
static enum idle_cause group_of(const struct idle_row *row)
{
    return row->cause == IDLE_LOADER || row->cause == IDLE_START_UP ? (enum idle_cause)row->cause
                                                                    : IDLE_HOST;
}

static int idle_host_compare(const void *left, const void *right)
{
    const struct idle_row *a = *(struct idle_row *const *)left,
                          *b = *(struct idle_row *const *)right;
    return ORDER(a->device, b->device) ?:
           ORDER(a->thread, b->thread) ?:
           ORDER(group_of(a), group_of(b)) ?:
           ORDER(a, b);
}

/* Rows of one device, thread and group. They become rows of `idle`. */
struct group {
    struct idle *idle;
    const struct workers *workers;
    struct idle_row **list;
    uint32_t count;
};

/* The kinds of samples, in the order in which they take time from pools: kernel counts first. */
enum sampled { SAMPLED_FAULTS, SAMPLED_PREEMPTED, SAMPLED_RAN, SAMPLED_WAITED, SAMPLED_KINDS };

static enum sampled sampled_of(const struct idle_row *row)
{
    enum thread_did did = (enum thread_did)(row->did & 0xff);
    return row->did & DID_RAN     ? SAMPLED_FAULTS
           : did == DID_PREEMPTED ? SAMPLED_PREEMPTED
           : did == DID_RUNNING   ? SAMPLED_RAN
                                  : SAMPLED_WAITED;
}

/* True if samples of that kind take time from the pool in that turn. */
static bool may_take(const struct idle_row *pool, enum sampled kind, unsigned turn)
{
    static const enum thread_did first[] = {DID_RUNNING, DID_PREEMPTED, DID_RUNNING, DID_WAITED};
    if (!is_pool(pool))
        return false;
    return turn == 0 ? pool->did == first[kind]
                     : pool->did == DID_UNKNOWN &&
                           (pool->cause != IDLE_UNKNOWN || first[kind] != DID_RUNNING);
}

static bool is_wait(const struct stack_place *place)
{
    const char *file = place->file ? path_base(place->file->raw) : "",
               *name = place->function ? place->function->raw : "";
    const char *dot = strrchr(name, '.'); /* a qualified name */
    name = dot ? dot + 1 : name;
    return strcmp(file, "threading.py") == 0 &&
           (strcmp(name, "wait") == 0 || strcmp(name, "join") == 0 ||
            strcmp(name, "_wait_for_tstate_lock") == 0);
}

/* The loader's workers: children of a process that use no device. */
struct workers {
    bool works; /* the process uses a device */
    uint32_t count;
    uint32_t busy;                  /* workers that ran or read for most of their time, ... */
    uint64_t busy_ns, lived_ns;     /* ... and the total time of all workers */
    const struct kernel_name *text; /* NULL: some are not busy */
};

#define WORKER_NS   50000000u /* shorter-lived children are ignored */
#define WORKER_BUSY 0.6

static struct key pid_key(const struct process *p, uint32_t pid)
{
    return (struct key){pid, p->host, p->header.pid_namespace};
}

static void name_workers(struct idle *d, struct workers *w)
{
    char *text =
        text_printf("%u worker%s, busy for %.0f%% of their time", w->count, plural_end(w->count),
                    100 * fmin(1, (double)w->busy_ns / (double)w->lived_ns));
    w->text = kernel_name_intern(&d->host.names, text, strlen(text));
    free(text);
}

/* Finds the workers of each process, by its index, in new memory. */
static struct workers *find_workers(struct idle *d)
{
    const struct recording *rec = d->walk->rec;
    struct workers *of = memory_new(rec->count + 1u, sizeof *of);
    struct key_map pids = {0}; /* at most as many as it has room for */
    for (uint32_t i = 0; i < d->device_count; i++)
        of[d->devices[i].process->index].works = true;
    for (uint32_t i = 0; i < rec->count; i++)
        (void)key_map_set(&pids, pid_key(rec->processes[i], rec->processes[i]->header.pid), i + 1u);
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        uint64_t parent = key_map_get(&pids, pid_key(p, p->header.parent_pid));
        uint64_t first_ns = d->walk->first_ns[i], lived_ns = d->walk->last_ns[i] - first_ns;
        struct workers *w = &of[parent ? parent - 1 : i];
        if (w == &of[i] || of[i].works || !d->host.is_known[i] || !first_ns || lived_ns < WORKER_NS)
            continue;
        w->count++;
        w->busy += (double)d->host.busy_ns[i] > WORKER_BUSY * (double)lived_ns;
        w->busy_ns += d->host.busy_ns[i];
        w->lived_ns += lived_ns;
    }
    for (uint32_t i = 0; i < rec->count; i++)
        if (of[i].count && of[i].busy == of[i].count)
            name_workers(d, &of[i]);
    key_map_release(&pids);
    return of;
}

static void idle_host_say(struct idle_row *row, enum thread_did did, const struct kernel_name *what)
{
    row->did = did;
    row->place.kind = IDLE_WORD_NAME;
    row->place.word = (uintptr_t)what;
}

/* True if a loading thread may wait for a worker here: in a call, or in unrecorded time. */
static bool may_wait_for_worker(const struct idle_row *row)
{
    return row->cause == IDLE_LOADER && row->did != DID_RUNNING && row->did != DID_GC &&
           row->did != DID_GIL && row->did != DID_STOPPED && row->did != DID_SLEEP &&
           row->did != DID_IMPORT && row->did != DID_PREEMPTED && row->did != DID_THROTTLED;
}

/* Adds a row. Python frames may refine it: a module import, or the lock of a condition. */
static void idle_host_put(const struct group *g, struct idle_row *row)
{
    const struct stack_table *t = &g->idle->walk->survey.stacks;
    uint64_t words[FRAME_COUNT_MAX];
    const struct recorded_stack *stack = stack_table_stack(t, row->process, row->place.stack);
    uint32_t count = stack && row->did != DID_GIL && row->did != DID_GC && row->did != DID_PREEMPTED
                         ? stack_table_words(t, stack, words)
                         : 0;
    const struct kernel_name *module = NULL, *body = NULL;
    bool imports = false;
    for (uint32_t i = 0; i < count; i++) { /* innermost first */
        const struct stack_place *place =
            frame_kind(words[i]) == FRAME_PYTHON
                ? stack_table_place(t, row->process, frame_python(words[i]))
                : NULL;
        if (!place || !place->file)
            continue;
        if (row->did == DID_LOCK && is_wait(place))
            row->did = DID_CONDITION;
        if (strncmp(place->file->raw, "<frozen importlib", 17) == 0) {
            imports = true;
            module = body; /* the outermost imported module */
        } else if (place->function && strcmp(place->function->raw, "<module>") == 0) {
            body = place->file;
        }
    }
    if (imports && module)
        idle_host_say(row, DID_IMPORT, module);
    else if (imports)
        row->did = DID_IMPORT;
    if (g->workers[row->process].text && may_wait_for_worker(row))
        idle_host_say(row, DID_WORKERS, g->workers[row->process].text);
    row->longest_ns = min_of(row->longest_ns, row->ns);
    idle_rows_add_sum(&g->idle->rows, row);
}

/* Moves `ns` from the pools to the sample's row, and adds the resulting rows. */
static void hand_out(const struct group *g, const struct idle_row *sample, uint64_t ns)
{
    for (unsigned turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; ns && i < g->count; i++) {
            struct idle_row *pool = g->list[i], row = *sample;
            if (!may_take(pool, sampled_of(sample), turn) || !pool->ns)
                continue;
            row.ns = min_of(ns, pool->ns);
            row.cause = pool->cause;
            row.did &= 0xff;
            pool->ns -= row.ns;
            ns -= row.ns;
            idle_host_put(g, &row);
        }
}

/* The samples that show where a thread ran: CPU samples, which are exact, else those by another
 * thread. */
static uint32_t find_witness(const struct group *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (sampled_of(g->list[i]) == SAMPLED_RAN && g->list[i]->did & DID_SAMPLED)
            return DID_SAMPLED;
    return DID_LOOKED;
}

static void settle_samples(const struct group *g, enum sampled kind)
{
    unsigned __int128 sampled_ns = 0, pool_ns = 0;
    uint32_t by = kind == SAMPLED_RAN ? find_witness(g) : DID_LOOKED;
    for (uint32_t i = 0; i < g->count; i++) {
        const struct idle_row *row = g->list[i];
        if (row->did & by && sampled_of(row) == kind)
            sampled_ns += row->ns;
        if (may_take(row, kind, 0) || may_take(row, kind, 1))
            pool_ns += row->ns;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        const struct idle_row *row = g->list[i];
        bool is_short = sampled_ns > pool_ns;
        if (row->did & by && sampled_of(row) == kind)
            hand_out(g, row, is_short ? (uint64_t)(row->ns * pool_ns / sampled_ns) : row->ns);
    }
}

static void settle_group(const struct group *g)
{
    for (unsigned kind = 0; kind < SAMPLED_KINDS; kind++)
        settle_samples(g, (enum sampled)kind);
    for (uint32_t i = 0; i < g->count; i++) {
        struct idle_row row = *g->list[i];
        if (row.ns && !(row.did & (DID_SAMPLED | DID_LOOKED)))
            idle_host_put(g, &row);
    }
}

/* Adds rows for what the causes of devices have and their rows lack: work before the process's
 * first record of what threads did. */
static void add_rests(struct idle *d)
{
    uint64_t(*split_ns)[IDLE_CAUSES] = memory_new(d->device_count, sizeof *split_ns);
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        split_ns[row->device][row->cause] += row->did ? row->ns : 0;
    }
    for (uint32_t i = 0; i < d->device_count * IDLE_CAUSES; i++) {
        struct idle_device *device = &d->devices[i / IDLE_CAUSES];
        enum idle_cause cause = (enum idle_cause)(i % IDLE_CAUSES);
        uint64_t all_ns = device->causes[cause], ns = split_ns[i / IDLE_CAUSES][cause];
        struct idle_row rest = {.place = {.function = IDLE_NONE},
                                .process = device->process->index,
                                .device = i / IDLE_CAUSES,
                                .thread = IDLE_NONE,
                                .cause = cause,
                                .did = DID_UNKNOWN,
                                .ns = all_ns - min_of(ns, all_ns),
                                .count = 1,
                                .longest_at_ns = device->begin_ns};
        rest.longest_ns = rest.ns;
        if (!thread_times_has(&d->host, rest.process))
            continue;
        device->is_split = true;
        if (rest.ns && idle_cause_is_split(cause))
            idle_rows_add_sum(&d->rows, &rest);
    }
    free(split_ns);
}

void idle_host_settle(struct idle *d)
{
    struct idle_rows rows = d->rows;
    struct idle_row **list = memory_new(rows.count + 1u, sizeof(struct idle_row *));
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows.count; i++) {
        d->devices[rows.list[i].device].is_split |= rows.list[i].did != 0;
        if (rows.list[i].did && !rows.list[i].text) /* rows from parts are settled */
            list[count++] = &rows.list[i];
    }
    if (!count) {
        free(list);
        return;
    }
    struct workers *workers = find_workers(d);
    struct group g = {.idle = d, .workers = workers};
    d->rows = (struct idle_rows){0};
    for (uint32_t i = 0; i < rows.count; i++)
        if (!rows.list[i].did)
            idle_rows_add_sum(&d->rows, &rows.list[i]);
    qsort(list, count, sizeof(struct idle_row *), idle_host_compare);
    for (uint32_t i = 0; i < count; i += g.count) {
        g.list = list + i;
        for (g.count = 1; i + g.count < count && g.list[g.count]->device == g.list[0]->device &&
                          g.list[g.count]->thread == g.list[0]->thread &&
                          group_of(g.list[g.count]) == group_of(g.list[0]);)
            g.count++;
        settle_group(&g);
    }
    add_rests(d);
    idle_rows_release(&rows);
    free(workers);
    free(list);
}
