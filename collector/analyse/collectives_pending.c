/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the hanging collectives to report, and the state of each rank in them. */
#include <stdlib.h>
#include <string.h>

#include "analyse/collectives.h"
#include "base/array.h"
#include "base/memory.h"
#include "rank.h"

#define ABSENT_RANKS_MAX PENDING_ROWS_MAX /* when a communicator is made */

/* Limit on ranks examined for messages: a large communicator has very many pairs. */
#define LOOKS_MAX (1u << 26)

/* Is the process's recording incomplete? Then a missing call proves nothing. */
static bool collectives_pending_is_unsure(const struct collectives *c, const struct process *p)
{
    return p && (c->places[p->index].is_paused || walk_may_lack_calls(c->walk, p));
}

/* How long the rank has waited in the call, up to the last known time of its process. Returns 0 if
 * it no longer waits, as when the call has made a communicator. While a call has not returned,
 * nothing later is recorded. */
static uint64_t waited_ns(const struct collectives *c, const struct channel_part *part,
                          const struct collective_call *call)
{
    const struct communicator_rank *rank = &c->ranks[part->rank];
    bool is_made = call && call->is_over && c->channels[part->channel].kind == COLLECTIVE_MAKING;
    if (!call || is_made || rank->is_ended || !unfinished_may_of(c->unfinished, rank->process))
        return 0;
    uint64_t last_ns = call->is_over ? c->walk->last_ns[rank->process->index]
                                     : walk_lived_ns(c->walk, rank->process);
    return last_ns > call->begin_ns ? last_ns - call->begin_ns : 0;
}

static enum collective_state state_of(const struct collectives *c, const struct process *p,
                                      const struct collective_call *call, bool is_making)
{
    bool is_waited;
    if (!unfinished_may_of(c->unfinished, p)) /* it ended by itself */
        return COLLECTIVE_FINISHED;
    if (is_making || !call->is_over || !call->launch_ns)
        return !call->is_over                ? COLLECTIVE_CALLED
               : is_making && !call->goes_on ? COLLECTIVE_FINISHED
                                             : COLLECTIVE_NOT_KNOWN;
    if (!process_expects_gpu(p) || !process_wants_kernels(p))
        return COLLECTIVE_NOT_KNOWN;
    return unfinished_done_ns(c->unfinished, p, call->thread, call->stream, &is_waited) >=
                   call->launch_ns
               ? COLLECTIVE_FINISHED
               : COLLECTIVE_NOT_FINISHED;
}

/* Does the rank take part in the channel? */
static bool collectives_pending_takes_part(const struct channel *of,
                                           const struct communicator_rank *rank)
{
    return of->kind != COLLECTIVE_MESSAGE || rank->rank == of->from || rank->rank == of->to;
}

bool collectives_may_wait(const struct collectives *c)
{
    for (uint32_t i = 0; i < c->rank_count; i++)
        if (unfinished_may_of(c->unfinished, c->ranks[i].process))
            return true;
    return false;
}

/* ---- which collectives ----------------------------------------------------------------------- */

/* The first number that one rank has called and another has not; 0: none. */
static uint64_t find_uncalled(struct collectives *c, const struct pending_collective *p)
{
    const struct channel *of = p->of;
    uint64_t lowest = UINT64_MAX, newest = 0;
    if (of->kind == COLLECTIVE_MESSAGE && (c->looks += p->in->rank_count) > LOOKS_MAX)
        return 0;
    for (uint32_t i = p->in->first; i; i = c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &c->ranks[i - 1];
        const struct channel_part *part = collectives_part(c, of, i - 1);
        uint64_t called = part ? part->called : 0;
        if (!collectives_pending_takes_part(of, rank))
            continue;
        newest = called > newest ? called : newest;
        if (!collectives_pending_is_unsure(c, rank->process) && called < lowest)
            lowest = called;
    }
    return lowest < newest ? lowest + 1 : 0;
}

/* The first stored number in which a rank called something else than the first one; 0: none. */
static uint64_t find_mismatch(const struct collectives *c, const struct channel *of)
{
    const struct channel_part *first = of->first ? &c->parts[of->first - 1] : NULL;
    uint64_t found = 0;
    for (uint32_t i = of->first; i && !collectives_is_made(of->kind); i = c->parts[i - 1].next)
        for (uint32_t k = 0; k < c->parts[i - 1].capacity; k++) {
            const struct collective_call *call = &c->parts[i - 1].calls[k], *other;
            if (!call->sequence || (found && call->sequence >= found))
                continue;
            other = collectives_call(first, call->sequence);
            if (other && !collectives_agree(call, other))
                found = call->sequence;
        }
    return found;
}

/* Is the rank waiting for its kernel, or for the call to return? */
static bool is_stuck(const struct collectives *c, const struct channel_part *part,
                     const struct collective_call *call)
{
    const struct process *p = c->ranks[part->rank].process;
    bool is_waited = false;
    if (waited_ns(c, part, call) < SURVEY_HANG_NS)
        return false;
    enum collective_state state = state_of(c, p, call, false);
    unfinished_done_ns(c->unfinished, p, call->thread, call->stream, &is_waited);
    return state == COLLECTIVE_CALLED || (state == COLLECTIVE_NOT_FINISHED && is_waited);
}

/* The first number in which a rank is stuck; 0: none. */
static uint64_t find_unfinished(const struct collectives *c, const struct channel *of)
{
    uint64_t found = 0;
    for (uint32_t i = of->first; i; i = c->parts[i - 1].next) {
        const struct channel_part *part = &c->parts[i - 1];
        for (uint32_t k = 0; k < part->capacity; k++) {
            const struct collective_call *call = &part->calls[k];
            if (call->sequence && (!found || call->sequence < found) && is_stuck(c, part, call))
                found = call->sequence;
        }
    }
    return found;
}

/* Sets the longest wait for that number, and the earliest call. */
static void collectives_pending_measure(const struct collectives *c, struct pending_collective *p)
{
    for (uint32_t i = p->of->first; i; i = c->parts[i - 1].next) {
        const struct channel_part *part = &c->parts[i - 1];
        const struct collective_call *call = collectives_call(part, p->sequence);
        uint64_t ns = waited_ns(c, part, call);
        p->waited_ns = ns > p->waited_ns ? ns : p->waited_ns;
        if (call && (!p->call || call->begin_ns < p->call->begin_ns))
            p->call = call;
    }
}

/* Did some ranks not call the creation of the communicator? */
static bool is_made_by_some(const struct collectives *c, const struct pending_collective *p)
{
    uint32_t count = 0;
    for (uint32_t i = p->of->first; i; i = c->parts[i - 1].next)
        count++;
    return count < p->in->ranks;
}

static bool collectives_pending_judge(struct collectives *c, const struct channel *of,
                                      struct pending_collective *p)
{
    *p = (struct pending_collective){.of = of, .in = &c->communicators[of->communicator]};
    bool is_making = of->kind == COLLECTIVE_MAKING;
    p->sequence = is_making ? is_made_by_some(c, p) : find_mismatch(c, of);
    p->is_mismatch = !is_making && p->sequence;
    if (!is_making && !p->sequence)
        p->sequence = find_uncalled(c, p);
    bool is_late = p->sequence;
    if (!is_making && !is_late)
        p->sequence = find_unfinished(c, of);
    if (!p->sequence)
        return false;
    collectives_pending_measure(c, p);
    if (p->is_mismatch)
        p->call = collectives_call(&c->parts[of->first - 1], p->sequence);
    return p->is_mismatch || !is_late || p->waited_ns >= SURVEY_HANG_NS;
}

/* Mismatches first, then the longest wait. */
static bool collectives_pending_is_before(const void *item, const void *other)
{
    const struct pending_collective *a = item, *b = other;
    return a->is_mismatch != b->is_mismatch ? a->is_mismatch : a->waited_ns > b->waited_ns;
}

/* ---- rows of ranks --------------------------------------------------------------------------- */

static void collectives_pending_add_row(struct collectives *c, struct pending_collective *p,
                                        const struct communicator_rank *rank,
                                        enum collective_state state,
                                        const struct collective_call *call)
{
    const struct process *process = rank->process;
    const struct process_place *place = process ? &c->places[process->index] : NULL;
    if (process && c->walk->last_ns[process->index] > p->now_ns)
        p->now_ns = c->walk->last_ns[process->index];
    if (c->pending.row_count == PENDING_ROWS_MAX)
        return;
    struct pending_row *row = &c->pending.rows[c->pending.row_count++];
    *row = (struct pending_row){.pending = p,
                                .rank = rank->rank,
                                .process = process,
                                .state = state,
                                .call = call,
                                .place = place && place->thread ? place : NULL};
    /* The other ranks wait: their stacks say nothing new. */
    if (row->place && (state == COLLECTIVE_NOT_CALLED || state == COLLECTIVE_DIFFERENT))
        row->reported = (struct reported_stack){.process = process, .stack = place->stack};
    p->row_count++;
}

static bool is_late(const struct pending_collective *p, enum collective_state state)
{
    return state == (p->is_mismatch ? COLLECTIVE_DIFFERENT : COLLECTIVE_NOT_CALLED);
}

/* The state of a rank with a known process, and its call. */
static enum collective_state judge_rank(const struct collectives *c,
                                        const struct pending_collective *p, uint32_t rank,
                                        const struct collective_call **call)
{
    const struct channel_part *part = collectives_part(c, p->of, rank);
    const struct process *process = c->ranks[rank].process;
    *call = collectives_call(part, p->sequence);
    if (!part || part->called < p->sequence)
        return collectives_pending_is_unsure(c, process) ? COLLECTIVE_NOT_RECORDED
                                                         : COLLECTIVE_NOT_CALLED;
    if (!*call)
        return COLLECTIVE_NOT_KNOWN;
    if (p->is_mismatch && !collectives_agree(*call, p->call))
        return COLLECTIVE_DIFFERENT;
    return state_of(c, process, *call, collectives_is_made(p->of->kind));
}

static void add_ranks(struct collectives *c, struct pending_collective *p, bool late)
{
    for (uint32_t i = p->in->first; i; i = c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &c->ranks[i - 1];
        const struct collective_call *call;
        if (!collectives_pending_takes_part(p->of, rank))
            continue;
        enum collective_state state = judge_rank(c, p, i - 1, &call);
        if (is_late(p, state) == late)
            collectives_pending_add_row(c, p, rank, state, call);
    }
}

/* The job of the ranks that called the collective. */
static uint32_t job_of(const struct collectives *c, const struct pending_collective *p)
{
    const struct communicator_rank *ranks = c->ranks;
    for (uint32_t i = p->of->first; i; i = c->parts[i - 1].next) {
        const struct process *process = ranks[c->parts[i - 1].rank].process;
        if (process && process->is_of_several)
            return process->job;
    }
    return JOB_NONE;
}

/* Do the communicator's ranks have other numbers than in the job? The ranks that called, and the
 * job's other processes, show whether it spans the whole job. */
static bool has_own_numbers(const struct collectives *c, const struct pending_collective *p)
{
    const struct recording *rec = c->walk->rec;
    const struct found_communicator *of = p->in;
    for (uint32_t i = of->first; i; i = c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &c->ranks[i - 1];
        if (rank->rank != RANK_LATER && rank->process->rank != RANK_NONE &&
            rank->process->rank != rank->rank)
            return true;
    }
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *process = rec->processes[i];
        if (process->rank != RANK_NONE && process->rank >= of->ranks &&
            (p->job == JOB_NONE || process->job == p->job))
            return true;
    }
    return false;
}

/* The process with this rank in the job; NULL unless exactly one has it. */
static const struct process *process_of_rank(const struct recording *rec, uint32_t job,
                                             uint32_t rank)
{
    const struct process *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        if (rec->processes[i]->rank == rank && (job == JOB_NONE || rec->processes[i]->job == job)) {
            found = rec->processes[i];
            count++;
        }
    return count == 1 ? found : NULL;
}

/* Adds the ranks that did not call the creation of the communicator. Their processes are known only
 * by number, if the communicator counts ranks as the job does. */
static void add_missing(struct collectives *c, const struct pending_collective *p)
{
    struct found_communicator *of = p->in;
    uint32_t most = of->ranks < ABSENT_RANKS_MAX ? of->ranks : ABSENT_RANKS_MAX;
    bool *has = memory_new(most + 1u, sizeof *has), is_numbered = !p->has_own_numbers;
    for (uint32_t i = of->first; i; i = c->ranks[i - 1].next) {
        is_numbered &= c->ranks[i - 1].process->rank != RANK_NONE;
        has[c->ranks[i - 1].rank < most ? c->ranks[i - 1].rank : most] = true;
    }
    for (uint32_t i = 0; i < most; i++) {
        if (has[i])
            continue;
        const struct communicator_rank missing = {
            .process = is_numbered ? process_of_rank(c->walk->rec, p->job, i) : NULL, .rank = i};
        ARRAY_PUSH(c->ranks, c->rank_count, &missing);
        c->ranks[of->last - 1].next = c->rank_count;
        of->last = c->rank_count;
    }
    free(has);
}

static int collectives_pending_compare_rows(const void *left, const void *right)
{
    const struct pending_row *a = left, *b = right;
    return ORDER(is_late(b->pending, b->state), is_late(a->pending, a->state))
               ?: ORDER(a->rank, b->rank);
}

void collectives_judge(struct collectives *c)
{
    for (uint32_t i = 0; i < c->channel_count; i++) {
        struct pending_collective p;
        if (!collectives_pending_judge(c, &c->channels[i], &p))
            continue;
        c->pending.total++;
        ARRAY_KEEP(c->pending.list, c->pending.count, PENDING_MAX, &p,
                   collectives_pending_is_before);
    }
    if (!c->pending.count)
        return;
    c->pending.rows = memory_new(PENDING_ROWS_MAX, sizeof *c->pending.rows);
    for (uint32_t i = 0; i < c->walk->rec->count; i++)
        c->places[i].is_open |= c->places[i].is_begun;
    for (uint32_t i = 0; i < c->pending.count; i++) { /* before ranks without a process are added */
        c->pending.list[i].job = job_of(c, &c->pending.list[i]);
        c->pending.list[i].has_own_numbers = has_own_numbers(c, &c->pending.list[i]);
    }
    for (uint32_t i = 0; i < c->pending.count; i++) {
        struct pending_collective *p = &c->pending.list[i];
        p->rows = &c->pending.rows[c->pending.row_count];
        if (p->of->kind == COLLECTIVE_MAKING)
            add_missing(c, p);
        add_ranks(c, p, true); /* first, since there may be too many */
        p->late_count = p->row_count;
        add_ranks(c, p, false);
        qsort(p->rows, p->row_count, sizeof *c->pending.rows, collectives_pending_compare_rows);
    }
}
