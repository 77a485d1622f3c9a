/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/thinning.h"

#include <string.h>

#include "record/gpu_record.h"

#define SHARE_ALL (1ull << 32)

const char *const left_out_names[LEFT_OUT_KINDS] = {"gpu_work", "calls", "ranges", "host"};

/* An event that may be left out: its begin, duration and thread. */
struct lasting {
    enum left_out kind;
    uint64_t begin_ns;
    uint64_t ns;
    uint32_t thread;
};

static uint64_t between(uint64_t begin_ns, uint64_t end_ns)
{
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static bool lasts(const struct slice *s, struct lasting *l)
{
    const struct event *e = &s->event;
    unsigned type = e->record->type;
    uint64_t end_ns = e->end_ns;
    *l = (struct lasting){
        .kind = LEFT_OUT_RANGES, .begin_ns = e->begin_ns, .thread = e->thread->index};
    if (s->change == RANGE_CLOSED) {
        l->begin_ns = s->range->begin_ns;
        end_ns = s->range->end_ns;
    } else if (s->op_change == OP_CLOSED) {
        l->begin_ns = s->op->begin_ns;
        end_ns = s->op->end_ns;
    } else if (s->library_change == LIBRARY_CLOSED) {
        l->begin_ns = s->library->begin_ns;
        end_ns = s->library->end_ns;
    } else if (s->change || s->op_change || s->library_change) {
        return s->change == RANGE_MARKED; /* an opened one ends later */
    } else if (type == RECORD_CALL) {
        l->kind = LEFT_OUT_CALLS;
    } else if (is_host_record(type)) { /* a sample has no duration */
        l->kind = LEFT_OUT_HOST;
    } else if (is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD) {
        l->kind = LEFT_OUT_WORK;
    } else {
        return false;
    }
    l->ns = between(l->begin_ns, end_ns);
    return l->kind != LEFT_OUT_CALLS || !(e->record->result || e->record->flags & RECORD_OPEN);
}

/* Returns the place of eighths of ns, in octaves of 1 ns and more; less is in the first one. */
static unsigned thinning_place_of(uint64_t ns)
{
    uint64_t eighths = ns << 3;
    unsigned octave = 60 - (unsigned)__builtin_clzll(eighths | 8);
    return octave * 8 + (eighths >> octave & 7);
}

/* Returns the shortest duration at a place. */
static uint64_t thinning_first_of(unsigned place)
{
    return place ? (((place % 8 + 8ull) << place / 8) + 7) / 8 : 0;
}

void thinning_begin(struct thinning *t)
{
    *t = (struct thinning){.weighs = true};
}

void thinning_weigh(struct thinning *t, const struct slice *s, uint64_t bytes)
{
    struct lasting l;
    if (!bytes || !lasts(s, &l))
        return;
    t->weights[thinning_place_of(l.ns)] += bytes;
    t->weighed += bytes;
}

void thinning_choose(struct thinning *t, uint64_t total, uint64_t size)
{
    unsigned place = THINNING_WEIGHTS;
    t->weighs = false;
    uint64_t fixed = total - t->weighed, left = size > fixed ? size - fixed : 0;
    while (place && t->weights[place - 1] <= left)
        left -= t->weights[--place];
    t->all_ns = place == THINNING_WEIGHTS ? UINT64_MAX : thinning_first_of(place);
    t->some_ns = place ? thinning_first_of(place - 1) : 0;
    t->share = place ? (uint64_t)((unsigned __int128)left * SHARE_ALL / t->weights[place - 1]) : 0;
}

/* The decision for a call is the same for the call itself and for its work. */
static bool leaves_out(const struct thinning *t, uint64_t ns, uint64_t begin_ns, uint32_t thread)
{
    if (t->weighs || ns >= t->all_ns)
        return false;
    uint64_t spread = (begin_ns ^ (uint64_t)thread << 40) * 0x9e3779b97f4a7c15u;
    return ns < t->some_ns || spread >> 32 >= t->share;
}

bool thinning_leaves_out(const struct thinning *t, const struct slice *s, enum left_out *kind,
                         uint64_t *ns)
{
    struct lasting l;
    if (!lasts(s, &l) || !leaves_out(t, l.ns, l.begin_ns, l.thread))
        return false;
    *kind = l.kind;
    *ns = l.ns;
    return true;
}

bool thinning_leaves_out_call(const struct thinning *t, const struct correlated_call *call)
{
    return leaves_out(t, between(call->begin_ns, call->end_ns), call->begin_ns, call->thread);
}
