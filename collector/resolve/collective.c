/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/collective.h"

int collective_of(const struct slice *s, struct collective *what)
{
    struct survey *survey = &s->walk->survey;
    int error = 0;
    *what = (struct collective){0};
    const struct library_node *call =
        s->is_called && s->call.library ? survey_library(survey, s->call.library, &error) : NULL;
    if (call && call->message.communicator) {
        const struct communicator *c =
            &s->walk->kinds.communicators[call->message.communicator - 1];
        bool is_counted = s->call.flags & CORRELATION_COLLECTIVE;
        *what = (struct collective){c->id, is_counted ? call->message.sequence : 0, c->ranks,
                                    call->message.is_rooted};
    }
    const struct range_node *range =
        error == 0 && !what->communicator && s->is_called && s->call.range
            ? survey_range(survey, s->call.range, &error)
            : NULL;
    if (range)
        *what = (struct collective){.communicator = range->communicator};
    return error;
}
