/* SPDX-License-Identifier: Apache-2.0 */
#include "python_walk.h"

/* More than one for each that counts: the frames that stand for C, and those that just begin. */
#define STEPS_MAX (4u * PYTHON_FRAMES_MAX)

#define OWNER_GENERATOR 1
#define POINTER_MASK    (~(uint64_t)7) /* 3.14 has marks in the low bits of its references */

bool python_walk_begin(const struct python_view *v, uint64_t thread, uint64_t *frame)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX], cframe_copy[sizeof(uint64_t)];
    const uint8_t *p = python_view(v, SIGHT_THREAD, thread, copy, l->thread_bytes);
    if (!p)
        return false;
    *frame = python_word(p, l->thread_frame);
    if (l->cframe_frame == LAYOUT_NONE || *frame == 0)
        return true;
    uint64_t at = *frame + l->cframe_frame;
    p = python_view(v, SIGHT_CFRAME, at, cframe_copy, sizeof cframe_copy);
    if (!p)
        return false;
    *frame = python_word(p, 0);
    return true;
}

/* All of it was right, `step_count` frames of any kind: not to be checked again. */
static void believe(const struct python_view *v, uint64_t thread, uint64_t frame,
                    unsigned step_count)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    for (; step_count > 0; step_count--) {
        const uint8_t *p = python_view(v, SIGHT_FRAME, frame, copy, l->frame_bytes);
        if (!p)
            return;
        sight_add(SIGHT_FRAME, frame);
        frame = python_word(p, l->frame_previous);
    }
    if (l->cframe_frame != LAYOUT_NONE && sight_is_known(SIGHT_THREAD, thread))
        sight_add(SIGHT_CFRAME, python_word((const uint8_t *)(uintptr_t)thread, l->thread_frame) +
                                    l->cframe_frame);
    sight_add(SIGHT_THREAD, thread);
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

int python_walk(const struct python_view *v, uint64_t thread, struct python_frame *frames,
                unsigned max, bool *is_cut)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    uint64_t innermost, at;
    unsigned count = 0, steps = 0;
    bool is_new = !sight_is_known(SIGHT_THREAD, thread);
    *is_cut = false;
    if (!python_walk_begin(v, thread, &innermost))
        return -1;
    for (at = innermost; at; steps++) {
        struct python_frame f = {.frame = at};
        const uint8_t *p = python_view(v, SIGHT_FRAME, at, copy, l->frame_bytes);
        if (!p || steps == STEPS_MAX)
            return -1;
        bool is_entry = p[l->frame_owner] >= l->owner_c;
        if (!is_entry) {
            enum step step = look(v, p, &f);
            if (step == STEP_WRONG)
                return -1;
            if (step == STEP_TAKE && count == max) {
                *is_cut = true;
                break;
            }
            if (step == STEP_TAKE)
                frames[count++] = f;
            is_entry = l->frame_is_entry != LAYOUT_NONE && p[l->frame_is_entry];
        }
        if (is_entry && count)
            frames[count - 1].is_entry = true;
        is_new |= p == copy;
        at = python_word(p, l->frame_previous);
    }
    if (count && !*is_cut)
        frames[count - 1].is_entry = true;
    if (count && is_new && v->is_own)
        believe(v, thread, innermost, steps);
    return (int)count;
}
