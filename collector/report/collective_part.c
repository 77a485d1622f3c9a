/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives in a part: for each channel, a hash of the calls that its ranks made. If the hashes
 * of all parts agree and no process left anything unfinished, no rank called something else than
 * the others and none waits. Otherwise only all recordings together can say what happened:
 * PART_COLLECTIVES.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "report/part_report.h"

struct called_part {
    uint64_t order[4]; /* id of the communicator, kind, from, to */
    uint64_t called, hash;
};

static const struct part_field fields[] = {PART(struct called_part, order),
                                           PART(struct called_part, called),
                                           PART(struct called_part, hash),
                                           {0}};

/* Calls that create communicators are not compared. */
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
    if (c->pending.total || collectives_may_wait(c, &h->unfinished))
        return true;
    for (uint32_t i = 0; i < c->channel_count; i++)
        if (is_compared(&c->channels[i]) && !is_one(c, &c->channels[i]))
            return true;
    return false;
}

static int collective_part_put(struct report *r, struct part *p)
{
    const struct collectives *c = &r->hang.collectives;
    for (uint32_t i = 0; i < c->channel_count; i++) {
        const struct channel *of = &c->channels[i];
        if (!is_compared(of))
            continue;
        const struct channel_part *part = &c->parts[of->first - 1];
        bool is_message = of->kind == COLLECTIVE_MESSAGE;
        part_put_row(p, fields,
                     &(struct called_part){{c->communicators[of->communicator].id, of->kind,
                                            is_message ? of->from : 0, is_message ? of->to : 0},
                                           part->called,
                                           part->hash});
    }
    part_put_end(p);
    return 0;
}

static int collective_part_add(struct combination *c, struct part *p)
{
    int error = 0;
    for (struct called_part row = {0}; error == 0 && part_get_row(p, fields, &row);)
        error = ARRAY_PUSH(c->called, c->called_count, &row);
    return error;
}

static int collective_part_compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof((struct called_part *)0)->order);
}

/* Marks PART_COLLECTIVES as missing if two ranks made different calls in one channel. */
static int collective_part_end(struct combination *c)
{
    if (c->called_count)
        qsort(c->called, c->called_count, sizeof *c->called, collective_part_compare);
    for (uint32_t i = 1; i < c->called_count; i++) {
        const struct called_part *a = &c->called[i - 1], *b = &c->called[i];
        if (collective_part_compare(a, b) == 0 && (a->called != b->called || a->hash != b->hash))
            c->report.missing |= PART_COLLECTIVES;
    }
    return 0;
}

const struct part_section collective_part = {collective_part_put, collective_part_add,
                                             collective_part_end};
