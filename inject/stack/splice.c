/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/splice.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "frame.h"
#include "record/thread.h"

#define CALLERS 61u /* a prime, since code is usually aligned to 16 */

/* Returns the native frame that the next Python frames belong to; UINT64_MAX: none. */
static uint64_t next_entry(const struct splice *s)
{
    for (unsigned i = s->next; i < s->count; i++)
        if (s->frames[i].entry)
            return s->frames[i].entry;
    return UINT64_MAX;
}

/* Writes the next Python frames, up to their entry. */
static void put_entry(struct thread *t, struct splice *s)
{
    for (bool is_last = false; s->next < s->count && !is_last; s->next++) {
        const struct python_frame *f = &s->frames[s->next];
        uint32_t location =
            s->keep ? python_location_now(f, s->text, s->keep) : python_location(t, f);
        is_last = s->frames[s->next].entry != 0;
        s->is_short |= !location;
        if (location)
            s->out[s->out_count++] = frame_in_python(location);
    }
}

/* Merges both in the order of the stack that they are on. */
static void splice_merge(struct thread *t, struct splice *s, const struct walk *w)
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
 * Return addresses of evaluation loops in the functions that called them. They identify a loop
 * whose code has a part far from the rest, as compilers place rarely executed code. A cache, used
 * by any thread.
 */
static _Atomic uint64_t callers[CALLERS];

static bool is_loop(const struct walk *w, unsigned i, uint64_t low, uint64_t high, bool by_caller)
{
    uint64_t caller = i + 1 < w->count ? w->frames[i + 1] : 0;
    return (w->frames[i] > low && w->frames[i] <= high) ||
           (by_caller && caller &&
            atomic_load_explicit(&callers[caller % CALLERS], memory_order_relaxed) == caller);
}

/* Returns how many more loops than frames there are: 0, or 1 if one has no frame yet; INT_MAX if
 * they do not match. */
static int count_more(const struct splice *s, const struct walk *w, uint64_t low, uint64_t high,
                      bool by_caller)
{
    unsigned loops = 0;
    for (unsigned i = 0; i < w->count; i++)
        loops += is_loop(w, i, low, high, by_caller);
    return w->is_cut ? 0 : loops == s->count ? 0 : loops == s->count + 1 ? 1 : INT_MAX;
}

/*
 * For versions in which frames do not say where their loops are, but each has one: counts the loops
 * on the stack. The innermost may have been entered without a frame yet. If the numbers differ
 * otherwise, no entry is known, and all Python frames follow the native ones.
 */
static void find_entries(struct splice *s, const struct walk *w)
{
    uint64_t low, high;
    bool by_caller = false;
    if (w->is_borrowed || !python_loop(&low, &high))
        return;
    int more = count_more(s, w, low, high, false);
    if (more == INT_MAX) {
        by_caller = true;
        more = count_more(s, w, low, high, true);
    }
    for (unsigned i = 0, taken = 0; i < w->count && taken < s->count && more != INT_MAX; i++) {
        if (!is_loop(w, i, low, high, by_caller) || more-- > 0)
            continue;
        s->frames[taken++].entry = w->ends[i] - 1;
        if (!by_caller && i + 1 < w->count)
            atomic_store_explicit(&callers[w->frames[i + 1] % CALLERS], w->frames[i + 1],
                                  memory_order_relaxed);
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
        splice_merge(t, s, w);
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
