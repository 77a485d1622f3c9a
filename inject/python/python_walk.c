/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_walk.h"

/* More than one for each that counts: the frames that stand for C, and those that just begin. */
#define STEPS_MAX 4096u

#define OWNER_GENERATOR 1
#define ROOT_BYTES_MAX  512u           /* how far in a thread's state its own cframe may lie */
#define POINTER_MASK    (~(uint64_t)7) /* 3.14 has marks in the low bits of its references */

/* How far a walk has come. Of the interpreter's loops 3.11 has a list of its own, the cframes. */
struct way {
    uint64_t frame;
    uint64_t cframe; /* 0: there is no such list */
    unsigned step_count;
    unsigned cframe_count;
    bool is_new; /* something was read that had not been seen before */
};

/* At the innermost frame; 0: there is none. False: not readable. */
static bool begin(const struct python_view *v, uint64_t thread, struct way *way)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    const uint8_t *p = python_view(v, SIGHT_THREAD, thread, copy, l->thread_bytes);
    if (!p)
        return false;
    *way = (struct way){.frame = python_word(p, l->thread_frame), .is_new = p == copy};
    if (l->cframe_frame == LAYOUT_NONE || way->frame == 0)
        return true;
    way->cframe = way->frame;
    p = python_view(v, SIGHT_CFRAME, way->cframe, copy, l->cframe_bytes);
    if (!p)
        return false;
    way->frame = python_word(p, l->cframe_frame);
    way->is_new |= p == copy;
    return true;
}

/* A list of `count` whose members are `kind` and have the next one's address at `next`. */
static void believe_list(const struct python_view *v, enum sight kind, uint64_t at, unsigned count,
                         uint32_t next, uint32_t bytes)
{
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    for (; count > 0; count--) {
        const uint8_t *p = python_view(v, kind, at, copy, bytes);
        if (!p)
            return;
        sight_add(kind, at);
        at = python_word(p, next);
    }
}

/* All of it was right, up to `end`: not to be checked again. */
static void believe(const struct python_view *v, uint64_t thread, const struct way *end)
{
    const struct python_layout *l = v->layout;
    struct way way;
    if (!begin(v, thread, &way))
        return;
    sight_add(SIGHT_THREAD, thread);
    /* The innermost is read before anything is entered. One without frames proves little: it must
     * be the thread's own. */
    if (way.cframe && (end->step_count || way.cframe - thread < ROOT_BYTES_MAX))
        believe_list(v, SIGHT_CFRAME, way.cframe, end->cframe_count + 1, l->cframe_previous,
                     l->cframe_bytes);
    believe_list(v, SIGHT_FRAME, way.frame, end->step_count, l->frame_previous, l->frame_bytes);
}

void python_walk_take(const struct python_layout *l, const uint8_t *p, struct python_frame *f)
{
    f->code = python_word(p, l->frame_code) & POINTER_MASK;
    f->instruction = python_word(p, l->frame_instruction);
}

enum step { STEP_WRONG, STEP_SKIP, STEP_TAKE };

/* Looks at the code of the frame `p` that lies at `at`. */
static enum step look(const struct python_view *v, const uint8_t *p, struct python_frame *f)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    python_walk_take(l, p, f);
    const uint8_t *head = python_code_head(v, f->code, copy);
    if (!head)
        return STEP_WRONG;
    /* From one before the first on: 3.11 and 3.12 have the one before the next. */
    int64_t at = (int64_t)(f->instruction - f->code - l->code_instructions) / 2;
    if (f->instruction & 1 || at < -1 || at > (int64_t)python_word(head, l->size))
        return STEP_WRONG;
    if (p[l->frame_owner] != OWNER_GENERATOR &&
        at < (int32_t)python_half(head, l->code_first_traceable))
        return STEP_SKIP; /* it has not begun, or is one that the interpreter made for itself */
    f->check = python_code_check(v, head);
    return f->check ? STEP_TAKE : STEP_WRONG;
}

/*
 * A loop that has just been entered is in the list before it has a frame: what it has then is what
 * lay on the stack, a frame of the past. Is `outer`, in which its frames end, the one that the loop
 * around it is at?
 */
static bool goes_on(const struct python_view *v, uint64_t cframe, uint64_t outer)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    const uint8_t *p = python_view(v, SIGHT_CFRAME, cframe, copy, l->cframe_bytes);
    return p && python_word(p, l->cframe_frame) == outer;
}

/*
 * Where the native frame of the loop is that was entered for the frame `p`, or for those inside of
 * it if that one only stands for C. 0: none was entered here. False: not readable.
 */
static bool find_entry(const struct python_view *v, const uint8_t *p, struct way *way,
                       uint64_t *entry)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    bool is_c = p[l->frame_owner] >= l->owner_c;
    bool is_entry = is_c;
    if (l->frame_is_entry != LAYOUT_NONE && p[l->frame_is_entry])
        is_entry = true;
    *entry = !is_entry ? 0 : is_c ? way->frame : way->cframe; /* each lies in the loop's own */
    if (!is_entry || (is_c && !v->is_running) || l->cframe_frame == LAYOUT_NONE)
        return true;
    uint64_t outer = python_word(p, l->frame_previous);
    p = python_view(v, SIGHT_CFRAME, way->cframe, copy, l->cframe_bytes);
    if (!p)
        return false;
    way->is_new |= p == copy;
    way->cframe_count++;
    way->cframe = python_word(p, l->cframe_previous);
    return !v->is_running || goes_on(v, way->cframe, outer);
}

int python_walk(const struct python_view *v, uint64_t thread, struct python_frame *frames,
                unsigned max, bool *is_cut)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    struct way way;
    unsigned count = 0;
    uint64_t entry = 0;
    if (is_cut)
        *is_cut = false;
    if (!begin(v, thread, &way))
        return -1;
    for (; way.frame; way.step_count++) {
        struct python_frame f = {.frame = way.frame};
        const uint8_t *p = python_view(v, SIGHT_FRAME, way.frame, copy, l->frame_bytes);
        bool is_full = is_cut && *is_cut;
        if (is_full && way.step_count == STEPS_MAX)
            break;
        if (!p || way.step_count == STEPS_MAX)
            return -1;
        bool is_c = p[l->frame_owner] >= l->owner_c;
        enum step step = is_c || is_full ? STEP_SKIP : look(v, p, &f);
        if (step == STEP_WRONG || !find_entry(v, p, &way, &entry))
            return -1;
        if (step == STEP_TAKE && count == max)
            *is_cut = true;
        else if (step == STEP_TAKE)
            frames[count++] = f;
        if (entry && count && !frames[count - 1].entry)
            frames[count - 1].entry = entry;
        if (is_cut ? *is_cut && frames[count - 1].entry : count == max)
            break; /* where the last one was entered is worth some more steps */
        way.is_new |= p == copy;
        way.frame = python_word(p, l->frame_previous);
    }
    if (v->is_running && !way.frame && way.step_count && !entry)
        return -1; /* the outermost has always been entered from C */
    if ((count || !way.step_count) && way.is_new && v->is_own)
        believe(v, thread, &way);
    return (int)count;
}
