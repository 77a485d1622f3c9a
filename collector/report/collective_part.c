/* SPDX-License-Identifier: Apache-2.0 */
#include "report/collective_part.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

#define CALLED_BYTES 6 /* in a part, at least */

struct called_part {
    uint64_t communicator; /* its id */
    uint32_t kind, from, to;
    uint64_t called, hash;
};

static void carry(struct part *p, struct called_part *c)
{
    part_number(p, &c->communicator);
    part_u32(p, &c->kind);
    part_u32(p, &c->from);
    part_u32(p, &c->to);
    part_number(p, &c->called);
    part_number(p, &c->hash);
}

/* Of the making of communicators nothing is compared. */
static bool is_compared(const struct channel *of)
{
    return !collectives_is_made(of->kind) && of->first;
}

static bool is_one(const struct collectives *c, const struct channel *of)
{
    const struct channel_part *first = of->first ? &c->parts[of->first - 1] : NULL;
    for (uint32_t i = of->first; i; i = c->parts[i - 1].next)
        if (c->parts[i - 1].called != first->called || c->parts[i - 1].hash != first->hash)
            return false;
    return true;
}

bool collective_part_is_doubtful(const struct hang *h)
{
    const struct collectives *c = &h->collectives;
    if (c->pending_total || collectives_may_wait(c, &h->unfinished))
        return true;
    for (uint32_t i = 0; i < c->channel_count; i++)
        if (is_compared(&c->channels[i]) && !is_one(c, &c->channels[i]))
            return true;
    return false;
}

void collective_part_put(const struct collectives *c, struct part *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->channel_count; i++)
        count += is_compared(&c->channels[i]);
    part_count(p, &count, CALLED_BYTES);
    for (uint32_t i = 0; i < c->channel_count; i++) {
        const struct channel *of = &c->channels[i];
        if (!is_compared(of))
            continue;
        const struct channel_part *part = &c->parts[of->first - 1];
        bool is_message = of->kind == COLLECTIVE_MESSAGE;
        carry(p, &(struct called_part){.communicator = c->communicators[of->communicator].id,
                                       .kind = of->kind,
                                       .from = is_message ? of->from : 0,
                                       .to = is_message ? of->to : 0,
                                       .called = part->called,
                                       .hash = part->hash});
    }
}

int collective_part_add(struct called_parts *c, struct part *p)
{
    uint32_t count = 0;
    part_count(p, &count, CALLED_BYTES);
    for (uint32_t i = 0; i < count && !p->has_failed; i++) {
        struct called_part *list = array_room(c->list, c->count, &c->capacity, sizeof *list, 64);
        if (!list)
            return GPUPROF_NO_MEMORY;
        c->list = list;
        list[c->count] = (struct called_part){0};
        carry(p, &list[c->count++]);
    }
    return 0;
}

/* By what order of calls it is. */
static int compare(const void *left, const void *right)
{
    const struct called_part *a = left, *b = right;
    const uint64_t keys[][2] = {
        {a->communicator, b->communicator}, {a->kind, b->kind}, {a->from, b->from}, {a->to, b->to}};
    int order = 0;
    for (unsigned i = 0; !order && i < sizeof keys / sizeof keys[0]; i++)
        order = (keys[i][0] > keys[i][1]) - (keys[i][0] < keys[i][1]);
    return order;
}

bool collective_part_add_end(struct called_parts *c)
{
    bool is_same = true;
    if (c->count)
        qsort(c->list, c->count, sizeof *c->list, compare);
    for (uint32_t i = 1; i < c->count; i++) {
        const struct called_part *a = &c->list[i - 1], *b = &c->list[i];
        is_same &= compare(a, b) != 0 || (a->called == b->called && a->hash == b->hash);
    }
    free(c->list);
    *c = (struct called_parts){0};
    return is_same;
}
