/* SPDX-License-Identifier: Apache-2.0 */
#include "record/blind_times.h"

#include <stdlib.h>
#include <string.h>

#include "api/cost.h"
#include "base/array.h"
#include "client_note.h"
#include "error.h"

static void add(struct blind_times *t, uint64_t ns, bool is_blind)
{
    if (t->count < BLIND_CHANGES_MAX && ns < CLOCK_NS_MAX)
        (void)ARRAY_PUSH(t->changes, t->count, (&(struct blind_change){ns, is_blind}));
}

static bool says(const struct record *r, const char *text)
{
    return r->bytes && r->byte_count == strlen(text) && memcmp(r->bytes, text, r->byte_count) == 0;
}

void blind_times_take(struct blind_times *t, const struct record *r)
{
    if (r->type == RECORD_STEP_DOWN && r->code == LADDER_CUPTI)
        add(t, r->begin, true);
    else if (r->type == RECORD_NOTE && says(r, CLIENT_NOTE_HAS))
        add(t, r->begin, true);
    else if (r->type == RECORD_NOTE && says(r, CLIENT_NOTE_HAD))
        add(t, r->begin, false);
}

void blind_times_release(struct blind_times *t)
{
    free(t->changes);
    *t = (struct blind_times){0};
}

/* Threads write them in blocks of their own. */
static int compare(const void *left, const void *right)
{
    const struct blind_change *a = left, *b = right;
    return ORDER(a->ns, b->ns) ?: a->is_blind - b->is_blind;
}

int64_t blind_times_find(const struct blind_times *t, struct clock_map *clock,
                         struct blind_time **times)
{
    struct blind_change *changes = calloc(t->count + 1u, sizeof *changes);
    struct blind_time *found = calloc(t->count + 1u, sizeof *found);
    uint32_t count = 0;
    if (!changes || !found) {
        free(changes);
        free(found);
        return GPUPROF_NO_MEMORY;
    }
    if (t->count)
        memcpy(changes, t->changes, t->count * sizeof *changes);
    qsort(changes, t->count, sizeof *changes, compare);
    for (uint32_t i = 0; i < t->count; i++) {
        bool is_open = count && found[count - 1].end_ns == UINT64_MAX;
        uint64_t ns = clock_map_ns(clock, changes[i].ns);
        if (changes[i].is_blind && !is_open)
            found[count++] = (struct blind_time){ns, UINT64_MAX};
        else if (!changes[i].is_blind && is_open)
            found[count - 1].end_ns = ns;
    }
    free(changes);
    *times = found;
    return count;
}
