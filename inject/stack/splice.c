/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/splice.h"

#include <string.h>

#include "frame.h"
#include "record/thread.h"

/* Where the native frame is to which the next Python frames belong; UINT64_MAX: in none. */
static uint64_t next_entry(const struct splice *s)
{
    for (unsigned i = s->next; i < s->count; i++)
        if (s->frames[i].entry)
            return s->frames[i].entry;
    return UINT64_MAX;
}

/* The next Python frames, up to their entry. */
static void put_entry(struct thread *t, struct splice *s)
{
    for (bool is_last = false; s->next < s->count && !is_last; s->next++) {
        const struct python_frame *f = &s->frames[s->next];
        uint32_t location = s->keep ? python_location_now(f, s->keep) : python_location(t, f);
        is_last = s->frames[s->next].entry != 0;
        s->is_short |= !location;
        if (location)
            s->out[s->out_count++] = frame_in_python(location);
    }
}

/* Both are in the order of the stack that they lie on. */
static void merge(struct thread *t, struct splice *s, const struct walk *w)
{
    uint64_t begin = w->begin, entry = w->is_borrowed ? UINT64_MAX : next_entry(s);
    for (unsigned i = 0; i < w->count; begin = w->ends[i++]) {
        bool is_loop = false;
        while (entry < w->ends[i]) {
            is_loop = entry >= begin;
            put_entry(t, s);
            entry = next_entry(s);
        }
        if (!is_loop)
            s->out[s->out_count++] = w->frames[i];
    }
    while (s->next < s->count)
        put_entry(t, s);
}

/*
 * Where frames do not say where their loops are, but each has one: those of the stack are counted.
 * Innermost one more may have been entered that has no frame yet. If they are another number none
 * is known, and all Python frames stand behind the native ones.
 */
static void find_entries(struct splice *s, const struct walk *w)
{
    uint64_t low, high;
    unsigned loops = 0, taken = 0;
    if (w->is_borrowed || !python_loop(&low, &high))
        return;
    for (unsigned i = 0; i < w->count; i++)
        loops += w->frames[i] > low && w->frames[i] <= high;
    unsigned more = loops > s->count ? loops - s->count : 0;
    if (!w->is_cut && (more > 1 || loops < s->count))
        return;
    more = w->is_cut ? 0 : more;
    for (unsigned i = 0; i < w->count && taken < s->count; i++) {
        if (w->frames[i] <= low || w->frames[i] > high)
            continue;
        if (more)
            more = 0;
        else
            s->frames[taken++].entry = w->ends[i] - 1;
    }
}

void splice_python(struct thread *t, struct splice *s, struct walk *w, unsigned max)
{
    bool is_cut;
    s->keep = NULL;
    s->count = python_frames(s->frames, PYTHON_FRAMES_MAX, &is_cut, &w->is_borrowed);
    w->is_cut |= is_cut;
    splice_frames(t, s, w, max);
}

void splice_frames(struct thread *t, struct splice *s, struct walk *w, unsigned max)
{
    s->next = s->out_count = 0;
    s->is_short = false;
    if (s->count) {
        find_entries(s, w);
        merge(t, s, w);
    }
    if (s->is_short)
        counter_add(COUNTER_STACKS_DROPPED, 1);
    if (s->count)
        w->count = s->out_count;
    w->is_cut |= w->count > max;
    w->count = w->count < max ? w->count : max;
    if (s->count)
        memcpy(w->frames, s->out, w->count * sizeof *w->frames);
}
