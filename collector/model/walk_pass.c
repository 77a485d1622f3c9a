/* SPDX-License-Identifier: Apache-2.0 */
#include "model/walk_pass.h"

#include <assert.h>

#include "record/gpu_record.h"

int pass_tell(const struct pass *p, struct slice *s)
{
    uint8_t type = s->event.record->type;
    pass_hide(p, s);
    return pass_tell_as(p,
                        type == RECORD_CALL    ? pass_heard_call(&s->event)
                        : is_stream_work(type) ? HEARD_WORK
                                               : HEARD_OTHER,
                        s);
}

static hears_fn *hears(const struct consumer *c, enum heard as)
{
    switch (as) {
    case HEARD_PLAIN_CALL:
    case HEARD_GRAPH_CALL:
    case HEARD_OPEN_CALL: return c->take_call ? c->take_call : c->take;
    case HEARD_WORK: return c->take_work ? c->take_work : c->take;
    case HEARD_OTHER: return c->take;
    default: return c->tied;
    }
}

void pass_add_listeners(struct pass *p)
{
    static const unsigned skips[HEARD_KINDS] = {[HEARD_PLAIN_CALL] = WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_GRAPH_CALL] =
                                                    WALK_SKIPS_CALLS & ~WALK_SKIPS_PLAIN_CALLS,
                                                [HEARD_WORK] = WALK_SKIPS_WORK,
                                                [HEARD_OTHER] = WALK_SKIPS_OTHERS,
                                                [HEARD_TIED] = WALK_SKIPS_TIED};
    assert(p->count <= WALK_CONSUMERS_MAX);
    for (enum heard as = 0; as < HEARD_KINDS; as++) {
        struct listener *next = p->listeners[as], *of_hidden = p->of_hidden[as];
        for (unsigned i = 0; i < p->count; i++) {
            const struct consumer *c = &p->consumers[i];
            next->hears = c->skips & skips[as] ? NULL : hears(c, as);
            next->context = c->context;
            *of_hidden = *next;
            of_hidden += next->hears && c->sees_hidden;
            next += next->hears != NULL;
        }
        *next = *of_hidden = (struct listener){0};
    }
}
