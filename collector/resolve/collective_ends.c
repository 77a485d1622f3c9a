/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/collective_ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/library_calls.h"
#include "resolve/timeline.h"

#define SOME_OPEN_BYTES_MAX (64ull << 20) /* of one process */
#define COMMUNICATOR_BITS   17 /* low bits of a key, below the number of the collective */

_Static_assert(COMMUNICATORS_MAX < 1u << COMMUNICATOR_BITS, "its number has room");

/* State while reading one process. */
struct gathering {
    struct collective_ends *ends;
    const struct process *process;
    const struct ends_windows *windows;
    struct library_calls calls;
    struct key_map
        launches; /* correlation id of a launch -> number of the collective and its communicator */
};

/* ---- stored ends ----------------------------------------------------------------------------- */

/* Whether the collective is stored. The choice is the same on all ranks. */
static bool is_kept(const struct collective_ends *e, uint64_t communicator, uint64_t number)
{
    uint64_t hash = key_hash((struct key){number, communicator, 1});
    return number <= ENDS_FIRST || (hash & ((1ull << e->thinned) - 1)) == 0;
}

static int collective_ends_compare(const void *left, const void *right)
{
    const struct collective_end *a = left, *b = right;
    return ORDER(a->communicator, b->communicator) ?: ORDER(a->number, b->number) ?:
           ORDER(a->host, b->host) ?: ORDER(a->end_ns, b->end_ns);
}

/* Sorts the ends. Keeps the first end of each collective and host. */
static void collective_ends_settle(struct collective_ends *e)
{
    uint32_t kept = 0;
    if (e->count)
        qsort(e->list, e->count, sizeof *e->list, collective_ends_compare);
    for (uint32_t i = 0; i < e->count; i++) {
        struct collective_end *end = &e->list[i], *last = kept ? &e->list[kept - 1] : NULL;
        bool is_same =
            last && last->communicator == end->communicator && last->number == end->number;
        end->first = is_same ? last->first : kept;
        if (!is_same || last->host != end->host)
            e->list[kept++] = *end;
    }
    e->count = kept;
}

/* Drops collectives until half of the room is free. If the first ones of many communicators fill
 * it, drops the last of these. */
static void thin(struct collective_ends *e)
{
    collective_ends_settle(e);
    while (e->count > ENDS_MAX / 2 && e->thinned < 63) {
        uint32_t kept = 0;
        e->thinned++;
        for (uint32_t i = 0; i < e->count; i++)
            if (is_kept(e, e->list[i].communicator, e->list[i].number))
                e->list[kept++] = e->list[i];
        e->count = kept;
    }
    e->count = e->count < ENDS_MAX / 2 ? e->count : ENDS_MAX / 2;
}

static int add_end(struct collective_ends *e, const struct collective_end *end)
{
    if (!is_kept(e, end->communicator, end->number))
        return 0;
    if (e->count >= ENDS_MAX)
        thin(e);
    return ARRAY_PUSH(e->list, e->count, end);
}

/* ---- reading a process ----------------------------------------------------------------------- */

/* Takes a call. Collectives with a root are skipped: a rank may end before all have arrived. */
static int collective_ends_take_call(struct gathering *g, const struct event *e)
{
    struct library_call *call = library_innermost(&g->calls, e->thread);
    struct library_message message;
    library_calls_see(&g->calls, e);
    if (!call || !e->record->correlation)
        return 0;
    int64_t kind = library_call_kind(&g->calls, call, &message);
    if (kind < 0 || !library_calls_launch(&g->calls, e) || message.is_rooted ||
        message.sequence >> (64 - COMMUNICATOR_BITS))
        return kind < 0 ? (int)kind : 0;
    return key_map_set_anew(&g->launches, (struct key){e->record->correlation, 0, 0},
                            message.sequence << COMMUNICATOR_BITS | message.communicator,
                            ENDS_LAUNCHES_MAX);
}

static int collective_ends_take_kernel(struct gathering *g, const struct event *e)
{
    struct key key = {e->record->correlation, 0, 0};
    uint64_t launch = key_map_get(&g->launches, key);
    if (!launch)
        return 0;
    uint64_t communicator = launch & ((1u << COMMUNICATOR_BITS) - 1);
    struct collective_end end = {.communicator = g->calls.kinds->communicators[communicator - 1].id,
                                 .number = launch >> COMMUNICATOR_BITS,
                                 .end_ns = e->end_ns,
                                 .host = g->process->host};
    key_map_remove(&g->launches, key);
    return end.communicator ? add_end(g->ends, &end) : 0;
}

static int collective_ends_take(struct gathering *g, const struct event *e)
{
    struct library_call *call;
    int change = LIBRARY_LEFT;
    if (e->thread->number == 0)
        return 0;
    switch (e->record->type) {
    case RECORD_COMMUNICATOR: return library_kinds_learn(g->calls.kinds, e);
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END:
        while (change == LIBRARY_LEFT)
            change = library_calls_take(&g->calls, e, &call);
        return change < 0 ? change : 0;
    case RECORD_CALL: return collective_ends_take_call(g, e);
    case RECORD_KERNEL: return collective_ends_take_kernel(g, e);
    default: return 0;
    }
}

/* Whether to read a block. Blocks of unknown types and communicators are always read. */
static bool wants(void *context, const struct process *p, const struct block_span *b)
{
    const struct ends_windows *w = ((const struct gathering *)context)->windows;
    uint64_t calls = block_type_bit(RECORD_LIBRARY_BEGIN) | block_type_bit(RECORD_LIBRARY_END);
    (void)p;
    if (b->types & block_type_bit(RECORD_COMMUNICATOR))
        return true;
    if (b->types && !(b->types & (calls | block_type_bit(RECORD_KERNEL))))
        return false;
    if (!w->every_ns || b->begin_ns < w->from_ns)
        return true;
    return b->end_ns - w->from_ns >= w->every_ns * ((b->begin_ns - w->from_ns) / w->every_ns + 1) ||
           (b->begin_ns - w->from_ns) % w->every_ns < w->length_ns;
}

static int collective_ends_own_gather(struct gathering *g, struct recording *rec,
                                      struct library_kinds *kinds, struct losses *losses)
{
    const struct timeline_scope scope = {.only = g->process, .wants = wants, .wants_context = g};
    struct timeline *t = timeline_create(rec, losses, SOME_OPEN_BYTES_MAX, &scope);
    struct event event;
    int more = library_calls_init(&g->calls, rec, g->process, kinds);
    more = t && more == 0 ? 1 : GPUPROF_NO_MEMORY;
    while (more > 0 && (more = timeline_next(t, &event)) > 0) {
        int error = collective_ends_take(g, &event);
        more = error < 0 ? error : more;
    }
    if (more < 0)
        message("%s: %s", t ? timeline_path(t) : "gpuprof-collector",
                more == GPUPROF_IO ? strerror(errno) : gpuprof_error_text(more));
    timeline_free(t);
    library_calls_release(&g->calls);
    key_map_release(&g->launches);
    return more;
}

int collective_ends_gather(struct collective_ends *e, struct recording *rec,
                           const struct ends_windows *windows)
{
    struct losses *losses = calloc(rec->count + 1u, sizeof *losses); /* counted elsewhere */
    struct kernel_names texts = {0};
    struct library_kinds kinds;
    int error = library_kinds_init(&kinds, &texts, 0, rec->count);
    error = losses ? error : GPUPROF_NO_MEMORY;
    *e = (struct collective_ends){0};
    say_error("gpuprof-collector", error);
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        struct gathering g = {.ends = e, .process = rec->processes[i], .windows = windows};
        error = collective_ends_own_gather(&g, rec, &kinds, losses);
    }
    collective_ends_settle(e);
    library_kinds_release(&kinds);
    kernel_names_release(&texts);
    free(losses);
    return error;
}

void collective_ends_release(struct collective_ends *e)
{
    free(e->list);
}

/* ---- common moments -------------------------------------------------------------------------- */

bool common_moments_get(const struct common_moments *m, uint32_t end, uint64_t *moment_ns)
{
    uint32_t first = m->ends->list[end].first, count = m->seen[first];
    if (!count)
        return false;
    uint64_t low = m->times[first + (count - 1) / 2], high = m->times[first + count / 2];
    *moment_ns = low + (high - low) / 2;
    return true;
}

void common_moments_add(struct common_moments *m, uint32_t end, uint64_t time_ns)
{
    const struct collective_end *list = m->ends->list;
    uint32_t first = list[end].first, at = m->seen[first]++;
    uint64_t *times = &m->times[first];
    for (; at && times[at - 1] > time_ns; at--)
        times[at] = times[at - 1];
    times[at] = time_ns;
    for (uint32_t i = first; m->seen[first] == 1 && i < m->ends->count && list[i].first == first;
         i++)
        m->counts[list[i].host]++;
}

uint32_t common_moments_take(struct common_moments *m, const uint32_t **hosts)
{
    uint32_t most = 0, count = 0;
    for (uint32_t i = 0; i < m->host_count; i++)
        most = !m->is_taken[i] && m->counts[i] > most ? m->counts[i] : most;
    for (uint32_t i = 0; i < m->host_count; i++)
        if (!m->is_taken[i] && m->counts[i] >= COLLECTIVES_MIN && m->counts[i] >= most / WEAKEST) {
            m->is_taken[i] = true;
            m->taken[count++] = i;
        }
    *hosts = m->taken;
    return count;
}

int common_moments_init(struct common_moments *m, const struct collective_ends *ends,
                        uint32_t host_count)
{
    *m = (struct common_moments){.ends = ends, .host_count = host_count};
    m->seen = calloc(ends->count + 1u, sizeof *m->seen);
    m->times = calloc(ends->count + 1u, sizeof *m->times);
    m->counts = calloc(host_count + 1u, sizeof *m->counts);
    m->is_taken = calloc(host_count + 1u, sizeof *m->is_taken);
    m->taken = calloc(host_count + 1u, sizeof *m->taken);
    return m->seen && m->times && m->counts && m->is_taken && m->taken ? 0 : GPUPROF_NO_MEMORY;
}

void common_moments_release(struct common_moments *m)
{
    free(m->seen);
    free(m->times);
    free(m->counts);
    free(m->is_taken);
    free(m->taken);
    *m = (struct common_moments){0};
}
