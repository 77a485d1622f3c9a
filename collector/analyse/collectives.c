/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/analyses.h"
#include "api/api.h"
#include "base/memory.h"
#include "record/gpu_record.h"

#define NONE          UINT32_MAX
#define NO_ROOT       INT64_MIN
#define CALLS_AT_ONCE 8u

void collectives_init(struct collectives *c, struct walk *walk, const struct unfinished *unfinished)
{
    *c = (struct collectives){.walk = walk, .unfinished = unfinished};
    c->places = memory_new(walk->rec->count + 1u, sizeof *c->places);
    c->threads = memory_new(walk->rec->thread_count + 1u, sizeof *c->threads);
}

void collectives_release(struct collectives *c)
{
    for (uint32_t i = 0; i < c->part_count; i++)
        free(c->parts[i].calls);
    for (uint32_t i = 0; i < c->walk->rec->thread_count; i++)
        free(c->threads[i].queued);
    key_map_release(&c->keys.ids);
    key_map_release(&c->keys.handles);
    key_map_release(&c->keys.ranks);
    key_map_release(&c->keys.channels);
    key_map_release(&c->keys.parts);
    free(c->communicators);
    free(c->ranks);
    free(c->channels);
    free(c->parts);
    free(c->places);
    free(c->threads);
    free(c->pending.rows);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Returns the number of the process's rank in the communicator `id`, which has `ranks` ranks (0:
 * not known). Returns 0 without room. */
static uint32_t add_rank(struct collectives *c, const struct process *p, uint64_t id, uint64_t rank,
                         uint64_t ranks)
{
    const struct found_communicator new_one = {.id = id};
    uint32_t before = c->rank_count;
    uint32_t number = KEY_MAP_ITEM(&c->keys.ids, ((struct key){id, 0, 0}), c->communicators,
                                   c->communicator_count, COMMUNICATORS_FOUND_MAX, &new_one);
    if (!number || rank > UINT32_MAX)
        return 0;
    uint32_t at = number - 1;
    struct found_communicator *of = &c->communicators[at];
    if (ranks < UINT32_MAX && ranks > of->ranks)
        of->ranks = (uint32_t)ranks;
    struct key key = {at, rank, p->index}, later = {at, RANK_LATER, p->index};
    uint64_t known = rank == RANK_LATER ? 0 : key_map_get(&c->keys.ranks, later);
    if (known) { /* its number in the communicator is known now */
        key_map_remove(&c->keys.ranks, later);
        c->ranks[known - 1].rank = (uint32_t)rank;
        key_map_set(&c->keys.ranks, key, known);
        return (uint32_t)known;
    }
    const struct communicator_rank new = {.process = p, .communicator = at, .rank = (uint32_t)rank};
    number = KEY_MAP_ITEM(&c->keys.ranks, key, c->ranks, c->rank_count, PARTS_MAX, &new);
    if (c->rank_count > before) {
        *(of->last ? &c->ranks[of->last - 1].next : &of->first) = number;
        of->last = number;
        of->rank_count++;
    }
    return number;
}

static void take_communicator(struct collectives *c, const struct event *e)
{
    const struct record *r = e->record;
    struct key handle = {e->process->index, record_arg(r, COMMUNICATOR_HANDLE), 0};
    uint32_t rank = add_rank(c, e->process, record_arg(r, COMMUNICATOR_ID),
                             record_arg(r, COMMUNICATOR_RANK), record_arg(r, COMMUNICATOR_RANKS));
    if (!rank)
        return;
    c->ranks[rank - 1].is_ended = false;
    key_map_set(&c->keys.handles, handle, rank);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t arg(const struct event *e, const char *label, uint64_t otherwise)
{
    return function_arg(e->function, e->record, label, otherwise);
}

/* The slot for the call of that number, which may replace an old one; NULL: there is no room. */
static struct collective_call *room_for(struct collectives *c, struct channel_part *part,
                                        uint64_t sequence)
{
    uint32_t had = part->capacity, wanted = had ? 2 * had : CALLS_AT_ONCE;
    bool is_full = !had || (part->calls[sequence % had].sequence && wanted <= CALLS_EACH_MAX);
    if (is_full && c->call_count + wanted <= CALLS_KEPT_MAX) {
        struct collective_call *calls = memory_new(wanted, sizeof *calls);
        for (uint32_t i = 0; i < had; i++)
            if (part->calls[i].sequence)
                calls[part->calls[i].sequence % wanted] = part->calls[i];
        free(part->calls);
        c->call_count += wanted - had;
        part->calls = calls;
        part->capacity = wanted;
    }
    return part->capacity ? &part->calls[sequence % part->capacity] : NULL;
}

const struct channel_part *collectives_part(const struct collectives *c, const struct channel *of,
                                            uint32_t rank)
{
    uint64_t known =
        key_map_get(&c->keys.parts, (struct key){(uint64_t)(of - c->channels), rank, 0});
    return known ? &c->parts[known - 1] : NULL;
}

const struct collective_call *collectives_call(const struct channel_part *part, uint64_t sequence)
{
    const struct collective_call *call =
        part && part->capacity ? &part->calls[sequence % part->capacity] : NULL;
    return call && call->sequence == sequence ? call : NULL;
}

bool collectives_agree(const struct collective_call *a, const struct collective_call *b)
{
    /* A message has a send and a receive. */
    bool is_same = a->function == b->function || a->function->does != b->function->does;
    return is_same && a->count == b->count && a->type == b->type && a->op == b->op &&
           a->root == b->root;
}

/* Returns the index of the rank's part in the channel; NONE: there is no room. */
static uint32_t add_part(struct collectives *c, uint32_t rank, enum collective_kind kind,
                         uint32_t from, uint32_t to)
{
    uint32_t of = c->ranks[rank - 1].communicator, before = c->part_count;
    const struct channel new = {.communicator = of, .kind = kind, .from = from, .to = to};
    struct key key = {of, kind, kind == COLLECTIVE_MESSAGE ? 1 + ((uint64_t)from << 32 | to) : 0};
    uint32_t number =
        KEY_MAP_ITEM(&c->keys.channels, key, c->channels, c->channel_count, CHANNELS_MAX, &new);
    if (!number)
        return NONE;
    struct channel *channel = &c->channels[number - 1];
    const struct channel_part new_part = {.channel = number - 1, .rank = rank - 1};
    uint32_t part = KEY_MAP_ITEM(&c->keys.parts, ((struct key){number - 1, rank - 1, 0}), c->parts,
                                 c->part_count, PARTS_MAX, &new_part);
    if (c->part_count > before) {
        *(channel->last ? &c->parts[channel->last - 1].next : &channel->first) = part;
        channel->last = part;
    }
    return part - 1;
}

static void queue(struct thread_calls *t, uint32_t part, uint64_t sequence)
{
    if (!t->queued)
        t->queued = memory_new(QUEUED_MAX, sizeof *t->queued);
    if (!t->depth)
        t->count = 0; /* calls of a group that longjmp left */
    if (t->count < QUEUED_MAX)
        t->queued[t->count++] = (struct queued_call){part, sequence};
}

/* Hashes what collectives_agree compares: calls that agree have equal hashes. */
static uint64_t hash_call(uint64_t hash, const struct collective_call *call, bool is_message)
{
    const char *name = is_message ? "" : call->function->name;
    const uint64_t numbers[] = {call->sequence, call->count, (uint64_t)call->root, call->type,
                                call->op};
    return bytes_hash(bytes_hash(hash, name, strlen(name)), numbers, sizeof numbers);
}

static void collectives_add_call(struct collectives *c, const struct event *e, uint32_t part,
                                 uint64_t sequence)
{
    struct channel_part *own = &c->parts[part];
    if (sequence <= own->called) /* the handle belongs to another communicator by now */
        return;
    own->called = sequence;
    enum collective_kind kind = c->channels[own->channel].kind;
    const struct collective_call made = {.sequence = sequence,
                                         .function = e->function,
                                         .thread = e->thread,
                                         .begin_ns = e->begin_ns,
                                         .stream = arg(e, "stream", 0),
                                         .count = arg(e, "count", 0),
                                         .root = (int64_t)arg(e, "root", (uint64_t)NO_ROOT),
                                         .type = (uint8_t)arg(e, "type", UINT8_MAX),
                                         .op = (uint8_t)arg(e, "op", UINT8_MAX)};
    own->hash = hash_call(own->hash, &made, kind == COLLECTIVE_MESSAGE);
    struct collective_call *call = room_for(c, own, sequence);
    if (!call)
        return;
    *call = made;
    queue(&c->threads[e->thread->index], part, sequence);
}

static uint64_t rank_of(const struct collectives *c, const struct event *e, const char *label)
{
    return key_map_get(&c->keys.handles, (struct key){e->process->index, arg(e, label, 0), 0});
}

/* Takes a call of an order. Calls without a number, and splits that not all ranks must call, have
 * none. All ranks of the parent must call another split, with any color. */
static void take_ordered(struct collectives *c, const struct event *e)
{
    unsigned does = e->function->does;
    uint64_t sequence = 1, peer = arg(e, "peer", 0), id = arg(e, "id", 0), rank = 0;
    enum collective_kind kind = does == API_DOES_COLLECTIVE   ? COLLECTIVE_ALL
                                : does == API_DOES_COMM_MAKE  ? COLLECTIVE_MAKING
                                : does == API_DOES_COMM_SPLIT ? COLLECTIVE_SPLIT
                                                              : COLLECTIVE_MESSAGE;
    if (kind == COLLECTIVE_MAKING) {
        rank = id ? add_rank(c, e->process, id, arg(e, "rank", UINT64_MAX), arg(e, "ranks", 0)) : 0;
    } else {
        rank = rank_of(c, e, kind == COLLECTIVE_SPLIT ? "parent" : "comm");
        sequence = arg(e, kind == COLLECTIVE_SPLIT ? "split" : "sequence", 0);
    }
    if (!rank || !sequence || peer >= UINT32_MAX ||
        (kind == COLLECTIVE_SPLIT && function_arg_place(e->function, "left_out") != NONE))
        return;
    uint32_t own = c->ranks[rank - 1].rank, other = (uint32_t)peer;
    bool is_sent = does == API_DOES_P2P;
    uint32_t part = add_part(c, (uint32_t)rank, kind, is_sent ? own : other, is_sent ? other : own);
    if (part != NONE)
        collectives_add_call(c, e, part, sequence);
}

static void take_begin(struct collectives *c, const struct event *e)
{
    struct thread_calls *t = &c->threads[e->thread->index];
    switch (e->function->does) {
    case API_DOES_COLLECTIVE:
    case API_DOES_P2P:
    case API_DOES_P2P_RECEIVE:
    case API_DOES_COMM_MAKE:
    case API_DOES_COMM_SPLIT: take_ordered(c, e); break;
    case API_DOES_GROUP_BEGIN: t->count = t->depth++ ? t->count : 0; break;
    case API_DOES_COMM_END: {
        uint64_t rank = rank_of(c, e, "comm");
        if (rank)
            c->ranks[rank - 1].is_ended = true;
        key_map_remove(&c->keys.handles, (struct key){e->process->index, arg(e, "comm", 0), 0});
        break;
    }
    default: break;
    }
}

static struct collective_call *queued_call(struct collectives *c, const struct queued_call *q)
{
    return (struct collective_call *)collectives_call(&c->parts[q->part], q->sequence);
}

static void take_end(struct collectives *c, const struct event *e)
{
    struct thread_calls *t = &c->threads[e->thread->index];
    if (e->function->does == API_DOES_GROUP_END && t->depth)
        t->depth--;
    bool is_done = !t->depth && e->function->does != API_DOES_GROUP_BEGIN;
    for (uint32_t i = 0; is_done && i < t->count; i++) {
        struct collective_call *call = queued_call(c, &t->queued[i]);
        if (!call)
            continue;
        call->is_over = true;
        call->goes_on =
            e->record->result && !api_has_failed(e->function->domain, e->record->result);
    }
    t->count = is_done ? 0 : t->count;
}

/* A kernel that is launched in a call of NCCL belongs to the open calls on its stream. */
static __attribute__((noinline)) void collectives_take_launch(struct collectives *c,
                                                              const struct event *e)
{
    struct thread_calls *t = &c->threads[e->thread->index];
    uint64_t stream = 0;
    bool has_stream = function_stream(e->function, e->record, &stream);
    for (uint32_t i = 0; has_stream && i < t->count; i++) {
        struct collective_call *call = queued_call(c, &t->queued[i]);
        if (call && call->stream == stream && call->launch_ns < e->begin_ns)
            call->launch_ns = e->begin_ns;
    }
}

/* Calls come in the order of their begins. The end of a library's call ends no silence. */
static void take_times(struct process_place *p, const struct event *e)
{
    if (p->end_ns && e->begin_ns > p->end_ns && e->begin_ns - p->end_ns > p->gap_ns &&
        e->record->type != RECORD_LIBRARY_END)
        p->gap_ns = e->begin_ns - p->end_ns;
    p->end_ns = e->end_ns > p->end_ns ? e->end_ns : p->end_ns;
}

static void take_place(struct collectives *c, const struct event *e)
{
    struct process_place *p = &c->places[e->process->index];
    const struct record *r = e->record;
    take_times(p, e);
    if (!p->has_worked && r->type == RECORD_CALL)
        p->has_worked = e->function->does == API_DOES_LAUNCH ||
                        e->function->does == API_DOES_GRAPH_LAUNCH ||
                        api_is_copy(e->function->does);
    bool is_open = r->type == RECORD_CALL && r->flags & RECORD_OPEN;
    bool is_inner = r->type == RECORD_LIBRARY_BEGIN && p->thread == e->thread;
    if (p->is_open) /* it hangs, whatever other threads do later */
        return;
    if (is_open || r->stack_id) {
        p->stack = r->stack_id;
        p->stack_ns = e->begin_ns;
    }
    if (p->is_begun && !is_inner) /* an open library call says more than the calls inside */
        return;
    p->is_open = is_open;
    p->is_begun = r->type == RECORD_LIBRARY_BEGIN;
    p->thread = e->thread;
    p->function = e->function;
    p->begin_ns = e->begin_ns;
}

static int collectives_take(void *context, const struct slice *s)
{
    struct collectives *c = context;
    const struct event *e = &s->event;
    struct process_place *p = &c->places[e->process->index];
    unsigned type = e->record->type;
    if (type == RECORD_COMMUNICATOR) {
        take_communicator(c, e);
    } else if (s->pause_change) {
        p->is_paused = s->pause_change == PAUSE_BEGINS;
    } else if (type == RECORD_LIBRARY_BEGIN) {
        take_place(c, e);
        take_begin(c, e);
    } else if (type == RECORD_LIBRARY_END) {
        take_times(p, e);
        p->is_begun &= p->thread != e->thread;
        take_end(c, e);
    }
    return 0;
}

static int collectives_take_call(void *context, const struct slice *s)
{
    struct collectives *c = context;
    const struct event *e = &s->event;
    take_place(c, e);
    if (c->threads[e->thread->index].count && e->function->does == API_DOES_LAUNCH &&
        !(e->record->flags & RECORD_CAPTURED))
        collectives_take_launch(c, e);
    return 0;
}

struct consumer collectives_consumer(struct collectives *c, bool needs_stacks)
{
    return (struct consumer){.context = c,
                             .needs = needs_stacks ? WALK_STACKS : 0,
                             .skips = WALK_SKIPS_WORK,
                             .sees_filtered =
                                 true, /* a hang is looked for in the whole recording */
                             .take = collectives_take,
                             .take_call = collectives_take_call};
}

/* ---- in parts -------------------------------------------------------------------------------- */

/*
 * The calls of each channel: how many each rank made, and a hash of them. If all ranks agree in
 * them, no rank called something else than the others; if no process left anything unfinished, none
 * waits, either. Otherwise only all recordings together can say what happened.
 */
enum { SEEN, MOST, LEAST, HASH_MOST, HASH_LEAST };

const struct sums_info collective_calls_sums = {
    .keys = {KEY_NUMBER, KEY_NUMBER, KEY_NUMBER}, /* communicator, kind, sender and receiver */
    .values = {JOIN_ADD, JOIN_MOST, JOIN_LEAST, JOIN_MOST, JOIN_LEAST},
    .parts = REPORT_CALLS,
    .table = {SUMS_TABLE, .name = ""},
};

void collectives_add_calls(const struct collectives *c, struct sums *s)
{
    for (uint32_t i = 0; i < c->part_count; i++) {
        const struct channel_part *part = &c->parts[i];
        const struct channel *of = &c->channels[part->channel];
        const struct key key = {c->communicators[of->communicator].id, of->kind,
                                of->kind == COLLECTIVE_MESSAGE ? (uint64_t)of->from << 32 | of->to
                                                               : 0};
        if (!collectives_is_made(of->kind))
            sums_row_add(s, key,
                         (const uint64_t[]){1, part->called, part->called, part->hash, part->hash});
    }
    sums_finish(s);
}

bool collective_calls_differ(const struct sums *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const uint64_t *v = s->rows[i].values;
        if (v[MOST] != v[LEAST] || v[HASH_MOST] != v[HASH_LEAST])
            return true;
    }
    return false;
}
