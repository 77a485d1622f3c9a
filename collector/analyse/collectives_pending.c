/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the hanging collectives to report, and the state of each rank in them. */
#include <stdlib.h>
#include <string.h>

#include "analyse/collectives.h"
#include "base/array.h"
#include "error.h"
#include "rank.h"

#define ABSENT_RANKS_MAX PENDING_ROWS_MAX /* when a communicator is made */

/* Limit on ranks examined for messages: a large communicator has very many pairs. */
#define LOOKS_MAX (1u << 26)

struct judging {
    struct collectives *c;
    const struct unfinished *u;
    uint64_t *looks; /* ranks examined so far */
};

/* Is the process's recording incomplete? Then a missing call proves nothing. */
static bool collectives_pending_is_unsure(const struct judging *j, const struct process *p)
{
    const struct losses *l = p ? &j->c->walk->losses[p->index] : NULL;
    return l && (j->c->places[p->index].is_paused || losses_weight(l) == LOSS_DAMAGE ||
                 l->counters[COUNTER_DROPPED]);
}

/* How long the rank has waited in the call, up to the last known time of its process. Returns 0 if
 * it no longer waits, as when the call has made a communicator. While a call has not returned,
 * nothing later is recorded. */
static uint64_t waited_ns(const struct judging *j, const struct channel_part *part,
                          const struct collective_call *call)
{
    const struct communicator_rank *rank = &j->c->ranks[part->rank];
    bool is_made = call && call->is_over && j->c->channels[part->channel].kind == COLLECTIVE_MAKING;
    if (!call || is_made || rank->is_ended || !unfinished_may_of(j->u, rank->process))
        return 0;
    uint64_t last_ns = call->is_over ? j->c->walk->last_ns[rank->process->index]
                                     : walk_lived_ns(j->c->walk, rank->process);
    return last_ns > call->begin_ns ? last_ns - call->begin_ns : 0;
}

static enum collective_state state_of(const struct judging *j, const struct process *p,
                                      const struct collective_call *call, bool is_making)
{
    bool is_waited;
    if (!unfinished_may_of(j->u, p)) /* it ended by itself */
        return COLLECTIVE_FINISHED;
    if (is_making || !call->is_over || !call->launch_ns)
        return !call->is_over                ? COLLECTIVE_CALLED
               : is_making && !call->goes_on ? COLLECTIVE_FINISHED
                                             : COLLECTIVE_NOT_KNOWN;
    if (!process_expects_gpu(p) || !process_wants_kernels(p))
        return COLLECTIVE_NOT_KNOWN;
    return unfinished_done_ns(j->u, p, call->thread, call->stream, &is_waited) >= call->launch_ns
               ? COLLECTIVE_FINISHED
               : COLLECTIVE_NOT_FINISHED;
}

/* Does the rank take part in the channel? */
static bool collectives_pending_takes_part(const struct channel *of,
                                           const struct communicator_rank *rank)
{
    return of->kind != COLLECTIVE_MESSAGE || rank->rank == of->from || rank->rank == of->to;
}

bool collectives_may_wait(const struct collectives *c, const struct unfinished *u)
{
    for (uint32_t i = 0; i < c->rank_count; i++)
        if (unfinished_may_of(u, c->ranks[i].process))
            return true;
    return false;
}

/* ---- which collectives ----------------------------------------------------------------------- */

/* The first number that one rank has called and another has not; 0: none. */
static uint64_t find_uncalled(const struct judging *j, uint32_t channel)
{
    const struct channel *of = &j->c->channels[channel];
    uint64_t lowest = UINT64_MAX, newest = 0;
    if (of->kind == COLLECTIVE_MESSAGE &&
        (*j->looks += j->c->communicators[of->communicator].rank_count) > LOOKS_MAX)
        return 0;
    for (uint32_t i = j->c->communicators[of->communicator].first; i; i = j->c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &j->c->ranks[i - 1];
        const struct channel_part *part = collectives_part(j->c, channel, i - 1);
        uint64_t called = part ? part->called : 0;
        if (!collectives_pending_takes_part(of, rank))
            continue;
        newest = called > newest ? called : newest;
        if (!collectives_pending_is_unsure(j, rank->process) && called < lowest)
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
static bool is_stuck(const struct judging *j, const struct channel_part *part,
                     const struct collective_call *call)
{
    const struct process *p = j->c->ranks[part->rank].process;
    bool is_waited = false;
    if (waited_ns(j, part, call) < SURVEY_HANG_NS)
        return false;
    enum collective_state state = state_of(j, p, call, false);
    unfinished_done_ns(j->u, p, call->thread, call->stream, &is_waited);
    return state == COLLECTIVE_CALLED || (state == COLLECTIVE_NOT_FINISHED && is_waited);
}

/* The first number in which a rank is stuck; 0: none. */
static uint64_t find_unfinished(const struct judging *j, uint32_t channel)
{
    uint64_t found = 0;
    for (uint32_t i = j->c->channels[channel].first; i; i = j->c->parts[i - 1].next) {
        const struct channel_part *part = &j->c->parts[i - 1];
        for (uint32_t k = 0; k < part->capacity; k++) {
            const struct collective_call *call = &part->calls[k];
            if (call->sequence && (!found || call->sequence < found) && is_stuck(j, part, call))
                found = call->sequence;
        }
    }
    return found;
}

/* Sets the longest wait for that number, and the earliest call. */
static void collectives_pending_measure(const struct judging *j, struct pending_collective *p)
{
    for (uint32_t i = j->c->channels[p->channel].first; i; i = j->c->parts[i - 1].next) {
        const struct channel_part *part = &j->c->parts[i - 1];
        const struct collective_call *call = collectives_call(part, p->sequence);
        uint64_t ns = waited_ns(j, part, call);
        p->waited_ns = ns > p->waited_ns ? ns : p->waited_ns;
        if (call && (!p->call.function || call->begin_ns < p->call.begin_ns))
            p->call = *call;
    }
}

/* Did some ranks not call the creation of the communicator? */
static bool is_made_by_some(const struct judging *j, const struct channel *of)
{
    uint32_t count = 0;
    for (uint32_t i = of->first; i; i = j->c->parts[i - 1].next)
        count++;
    return count < j->c->communicators[of->communicator].ranks;
}

static bool collectives_pending_judge(const struct judging *j, uint32_t channel,
                                      struct pending_collective *p)
{
    const struct channel *of = &j->c->channels[channel];
    *p = (struct pending_collective){.channel = channel};
    bool is_making = of->kind == COLLECTIVE_MAKING;
    p->sequence = is_making ? is_made_by_some(j, of) : find_mismatch(j->c, of);
    p->is_mismatch = !is_making && p->sequence;
    if (!is_making && !p->sequence)
        p->sequence = find_uncalled(j, channel);
    bool is_late = p->sequence;
    if (!is_making && !is_late)
        p->sequence = find_unfinished(j, channel);
    if (!p->sequence)
        return false;
    collectives_pending_measure(j, p);
    if (p->is_mismatch)
        p->call = *collectives_call(&j->c->parts[of->first - 1], p->sequence);
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
                                .call = call ? *call : (struct collective_call){0},
                                .place = place && place->thread ? place : NULL};
    /* The other ranks wait: their stacks say nothing new. */
    if (row->place && (state == COLLECTIVE_NOT_CALLED || state == COLLECTIVE_DIFFERENT))
        row->reported = (struct reported_stack){process, place->stack, 0, NULL};
    p->row_count++;
}

static bool is_late(const struct pending_collective *p, enum collective_state state)
{
    return state == (p->is_mismatch ? COLLECTIVE_DIFFERENT : COLLECTIVE_NOT_CALLED);
}

/* The state of a rank with a known process, and its call. */
static enum collective_state judge_rank(const struct judging *j, const struct pending_collective *p,
                                        uint32_t rank, const struct collective_call **call)
{
    const struct channel_part *part = collectives_part(j->c, p->channel, rank);
    const struct process *process = j->c->ranks[rank].process;
    const struct channel *of = &j->c->channels[p->channel];
    *call = collectives_call(part, p->sequence);
    if (!part || part->called < p->sequence)
        return collectives_pending_is_unsure(j, process) ? COLLECTIVE_NOT_RECORDED
                                                         : COLLECTIVE_NOT_CALLED;
    if (!*call)
        return COLLECTIVE_NOT_KNOWN;
    if (p->is_mismatch && !collectives_agree(*call, &p->call))
        return COLLECTIVE_DIFFERENT;
    return state_of(j, process, *call, collectives_is_made(of->kind));
}

static void add_ranks(const struct judging *j, struct pending_collective *p, bool late)
{
    const struct channel *of = &j->c->channels[p->channel];
    for (uint32_t i = j->c->communicators[of->communicator].first; i; i = j->c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &j->c->ranks[i - 1];
        const struct collective_call *call;
        if (!collectives_pending_takes_part(of, rank))
            continue;
        enum collective_state state = judge_rank(j, p, i - 1, &call);
        if (is_late(p, state) == late)
            collectives_pending_add_row(j->c, p, rank, state, call);
    }
}

/* The job of the ranks that called the collective. */
static uint32_t job_of(const struct judging *j, const struct pending_collective *p)
{
    const struct communicator_rank *ranks = j->c->ranks;
    const struct channel *of = &j->c->channels[p->channel];
    for (uint32_t i = of->first; i; i = j->c->parts[i - 1].next) {
        const struct process *process = ranks[j->c->parts[i - 1].rank].process;
        if (process && process->is_of_several)
            return process->job;
    }
    return JOB_NONE;
}

/* Do the communicator's ranks have other numbers than in the job? The ranks that called, and the
 * job's other processes, show whether it spans the whole job. */
static bool has_own_numbers(const struct judging *j, const struct pending_collective *p)
{
    const struct recording *rec = j->c->walk->rec;
    const struct found_communicator *of =
        &j->c->communicators[j->c->channels[p->channel].communicator];
    for (uint32_t i = of->first; i; i = j->c->ranks[i - 1].next) {
        const struct communicator_rank *rank = &j->c->ranks[i - 1];
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
static int add_missing(const struct judging *j, const struct pending_collective *p)
{
    struct collectives *c = j->c;
    struct found_communicator *of = &c->communicators[c->channels[p->channel].communicator];
    uint32_t most = of->ranks < ABSENT_RANKS_MAX ? of->ranks : ABSENT_RANKS_MAX;
    bool *has = calloc(most + 1u, sizeof *has), is_numbered = !p->has_own_numbers;
    int error = has ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = of->first; has && i; i = c->ranks[i - 1].next) {
        is_numbered &= c->ranks[i - 1].process->rank != RANK_NONE;
        has[c->ranks[i - 1].rank < most ? c->ranks[i - 1].rank : most] = true;
    }
    for (uint32_t i = 0; error == 0 && i < most; i++) {
        if (has[i])
            continue;
        const struct communicator_rank missing = {
            .process = is_numbered ? process_of_rank(c->walk->rec, p->job, i) : NULL, .rank = i};
        error = ARRAY_PUSH(c->ranks, c->rank_count, &missing);
        c->ranks[of->last - 1].next = c->rank_count;
        of->last = c->rank_count;
    }
    free(has);
    return error;
}

static int collectives_pending_compare_rows(const void *left, const void *right)
{
    const struct pending_row *a = left, *b = right;
    return ORDER(is_late(b->pending, b->state), is_late(a->pending, a->state))
               ?: ORDER(a->rank, b->rank);
}

int collectives_judge(struct collectives *c, const struct unfinished *u)
{
    uint64_t looks = 0;
    const struct judging j = {c, u, &looks};
    int error = 0;
    for (uint32_t i = 0; i < c->channel_count; i++) {
        struct pending_collective p;
        if (!collectives_pending_judge(&j, i, &p))
            continue;
        c->pending.total++;
        ARRAY_KEEP(c->pending.list, c->pending.count, PENDING_MAX, &p,
                   collectives_pending_is_before);
    }
    if (!c->pending.count)
        return 0;
    if (!(c->pending.rows = calloc(PENDING_ROWS_MAX, sizeof *c->pending.rows)))
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < c->walk->rec->count; i++)
        c->places[i].is_open |= c->places[i].is_begun;
    for (uint32_t i = 0; i < c->pending.count; i++) { /* before ranks without a process are added */
        c->pending.list[i].job = job_of(&j, &c->pending.list[i]);
        c->pending.list[i].has_own_numbers = has_own_numbers(&j, &c->pending.list[i]);
    }
    for (uint32_t i = 0; error == 0 && i < c->pending.count; i++) {
        struct pending_collective *p = &c->pending.list[i];
        p->first_row = c->pending.row_count;
        if (c->channels[p->channel].kind == COLLECTIVE_MAKING)
            error = add_missing(&j, p);
        add_ranks(&j, p, true); /* first, since there may be too many */
        p->late_count = p->row_count;
        add_ranks(&j, p, false);
        qsort(&c->pending.rows[p->first_row], p->row_count, sizeof *c->pending.rows,
              collectives_pending_compare_rows);
    }
    return error;
}
