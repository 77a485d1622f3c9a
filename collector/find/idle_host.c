/* SPDX-License-Identifier: Apache-2.0 */
#include "find/idle_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "find/idle_state.h"

static bool is_pool(const struct idle_row *row)
{
    return !row->place.stack && !row->place.kind &&
           (row->did == DID_RUNNING || row->did == DID_WAITED || row->did == DID_UNKNOWN);
}

/* Start-up and data loading are split by themselves. */
static enum idle_cause group_of(const struct idle_row *row)
{
    return row->cause == IDLE_LOADER || row->cause == IDLE_START_UP ? (enum idle_cause)row->cause
                                                                    : IDLE_HOST;
}

static int compare(const void *left, const void *right)
{
    const struct idle_row *a = *(struct idle_row *const *)left,
                          *b = *(struct idle_row *const *)right;
    return ORDER(a->device, b->device) ?:
           ORDER(a->thread, b->thread) ?:
           ORDER(group_of(a), group_of(b)) ?:
           ORDER(a, b);
}

/* Rows of one device, thread and group. */
struct group {
    struct idle_row **list;
    uint32_t count;
};

/* Which pools samples of a thread that ran, or that did not, are handed, and in which order. */
static bool may_take(const struct idle_row *pool, bool runs, unsigned turn)
{
    if (!is_pool(pool))
        return false;
    if (runs)
        return turn == 0 ? pool->did == DID_RUNNING
                         : pool->did == DID_UNKNOWN && pool->cause != IDLE_UNKNOWN;
    return turn == 0 ? pool->did == DID_WAITED : pool->did == DID_UNKNOWN;
}

static bool is_ran(const struct idle_row *row)
{
    return (row->did & 0xff) == DID_RUNNING;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_wait(const struct stack_place *place)
{
    const char *file = place->file ? base_of(place->file->raw) : "",
               *name = place->function ? place->function->raw : "";
    const char *dot = strrchr(name, '.'); /* a qualified name */
    name = dot ? dot + 1 : name;
    return strcmp(file, "threading.py") == 0 &&
           (strcmp(name, "wait") == 0 || strcmp(name, "join") == 0 ||
            strcmp(name, "_wait_for_tstate_lock") == 0);
}

/* Adds it. Python's frames may say more of it: a module is imported, or the lock is a condition's.
 */
static int put(const struct idle *d, struct idle_rows *to, struct idle_row *row)
{
    const struct stack_table *t = &d->walk->survey.stacks;
    uint64_t words[FRAME_COUNT_MAX];
    const struct recorded_stack *stack = stack_table_stack(t, row->process, row->place.stack);
    uint32_t count =
        stack && row->did != DID_GIL && row->did != DID_GC ? stack_table_words(t, stack, words) : 0;
    const struct kernel_name *module = NULL, *body = NULL;
    for (uint32_t i = 0; i < count; i++) { /* the innermost one first */
        const struct stack_place *place =
            frame_kind(words[i]) == FRAME_PYTHON
                ? stack_table_place(t, row->process, frame_python(words[i]))
                : NULL;
        if (!place || !place->file)
            continue;
        if (row->did == DID_LOCK && is_wait(place))
            row->did = DID_CONDITION;
        bool imports = strncmp(place->file->raw, "<frozen importlib", 17) == 0;
        if (imports)
            module = body ? body : place->function; /* the outermost one that is imported */
        else if (place->function && strcmp(place->function->raw, "<module>") == 0)
            body = place->file;
    }
    if (module) {
        row->did = DID_IMPORT;
        row->place.kind = IDLE_WORD_NAME;
        row->place.word = (uintptr_t)module;
    }
    row->longest_ns = row->longest_ns < row->ns ? row->longest_ns : row->ns;
    return idle_rows_add_sum(to, row);
}

/* From the pools to that sample's row so much; adds the rows that come of it. */
static int hand_out(const struct idle *d, const struct group *g, const struct idle_row *sample,
                    uint64_t ns, struct idle_rows *to)
{
    int error = 0;
    for (unsigned turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; ns && error == 0 && i < g->count; i++) {
            struct idle_row *pool = g->list[i], row = *sample;
            if (!may_take(pool, is_ran(sample), turn) || !pool->ns)
                continue;
            row.ns = ns < pool->ns ? ns : pool->ns;
            row.cause = pool->cause;
            row.did &= 0xff;
            pool->ns -= row.ns;
            ns -= row.ns;
            error = put(d, to, &row);
        }
    return error;
}

/* The samples of a thread that ran, or those of one that did not. */
static int settle_samples(const struct idle *d, const struct group *g, bool runs,
                          struct idle_rows *to)
{
    unsigned __int128 sampled_ns = 0, pool_ns = 0;
    uint32_t kind = DID_LOOKED;
    int error = 0;
    for (uint32_t i = 0; runs && i < g->count; i++)
        if (is_ran(g->list[i]) && g->list[i]->did & DID_SAMPLED)
            kind = DID_SAMPLED; /* what another thread saw running, the CPU's samples tell, too */
    for (uint32_t i = 0; i < g->count; i++) {
        const struct idle_row *row = g->list[i];
        if (row->did & kind && is_ran(row) == runs)
            sampled_ns += row->ns;
        if (may_take(row, runs, 0) || may_take(row, runs, 1))
            pool_ns += row->ns;
    }
    for (uint32_t i = 0; error == 0 && i < g->count; i++) {
        const struct idle_row *row = g->list[i];
        if (!(row->did & kind) || is_ran(row) != runs)
            continue;
        uint64_t ns = sampled_ns > pool_ns ? (uint64_t)(row->ns * pool_ns / sampled_ns) : row->ns;
        error = hand_out(d, g, row, ns, to);
    }
    return error;
}

static int settle(const struct idle *d, const struct group *g, struct idle_rows *to)
{
    int error = settle_samples(d, g, true, to);
    if (error == 0)
        error = settle_samples(d, g, false, to);
    for (uint32_t i = 0; error == 0 && i < g->count; i++) {
        struct idle_row row = *g->list[i];
        if (row.ns && !(row.did & (DID_SAMPLED | DID_LOOKED)))
            error = put(d, to, &row);
    }
    return error;
}

/* What the causes have, and rows have not, as work of a device before the process's first such
 * record; and the other way round, where a step began in the middle of a time. */
static int even_out(struct idle *d, uint32_t device)
{
    static const enum idle_cause causes[] = {IDLE_HOST, IDLE_LOADER, IDLE_WAITING, IDLE_PREEMPTED};
    const struct idle_device *of = &d->devices[device];
    int error = 0;
    for (unsigned k = 0; error == 0 && k < sizeof causes / sizeof causes[0]; k++) {
        uint64_t have_ns = 0, want_ns = of->causes[causes[k]];
        uint32_t count = d->rows.count;
        for (uint32_t i = 0; i < count; i++) {
            struct idle_row *row = &d->rows.list[i];
            if (!row->did || row->device != device || row->cause != causes[k])
                continue;
            row->ns = row->ns < want_ns - have_ns ? row->ns : want_ns - have_ns;
            have_ns += row->ns;
        }
        struct idle_row rest = {.place = {.function = IDLE_NONE},
                                .process = of->process->index,
                                .device = device,
                                .thread = IDLE_NONE,
                                .cause = causes[k],
                                .did = DID_UNKNOWN,
                                .ns = want_ns - have_ns,
                                .count = 1,
                                .longest_ns = want_ns - have_ns,
                                .longest_at_ns = of->begin_ns};
        error = rest.ns ? idle_rows_add_sum(&d->rows, &rest) : 0;
    }
    return error;
}

int idle_host_settle(struct idle *d)
{
    struct idle_rows rows = d->rows;
    struct idle_row **list = calloc(rows.count + 1u, sizeof(struct idle_row *));
    uint32_t count = 0;
    int error = list ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; list && i < rows.count; i++)
        if (rows.list[i].did)
            list[count++] = &rows.list[i];
    if (!count) {
        free(list);
        return error;
    }
    d->rows = (struct idle_rows){.gap = rows.gap};
    for (uint32_t i = 0; error == 0 && i < rows.count; i++)
        if (!rows.list[i].did)
            error = idle_rows_add_sum(&d->rows, &rows.list[i]);
    qsort(list, count, sizeof(struct idle_row *), compare);
    for (uint32_t i = 0, end; error == 0 && i < count; i = end) {
        for (end = i + 1; end < count && list[end]->device == list[i]->device &&
                          list[end]->thread == list[i]->thread &&
                          group_of(list[end]) == group_of(list[i]);)
            end++;
        error = settle(d, &(struct group){list + i, end - i}, &d->rows);
    }
    for (uint32_t i = 0; error == 0 && i < d->device_count; i++)
        if (thread_times_has(&d->host, d->devices[i].process->index))
            error = even_out(d, i);
    idle_rows_release(&rows);
    free(list);
    return error;
}
