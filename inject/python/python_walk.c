/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_walk.h"

/* More than one for each that counts: the frames that stand for C, and those that just begin. */
#define STEPS_MAX 4096u

#define OWNER_GENERATOR  1
#define FLAGS_GENERATORS 0x2a0u /* of code: generators, coroutines, asynchronous generators */
#define ROOT_BYTES_MAX   512u   /* how far in a thread's state its own cframe may lie */
#define POINTER_MASK     (~(uint64_t)7) /* 3.14 has marks in the low bits of its references */

/* How far a walk has come. Of the interpreter's loops 3.11 has a list of its own, the cframes. */
struct way {
    uint64_t frame;
    uint64_t cframe; /* 0: there is no such list */
    uint64_t thread;
    unsigned step_count;
    unsigned cframe_count;
    bool is_new; /* something was read that had not been seen before */
};

/* At the innermost frame; 0: there is none. False: not readable. */
static bool python_walk_begin(const struct python_view *v, uint64_t thread, struct way *way)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    const uint8_t *p = python_view(v, KNOWN_THREAD, thread, copy, l->thread_bytes);
    if (!p)
        return false;
    *way = (struct way){
        .thread = thread, .frame = python_word(p, l->thread_frame), .is_new = p == copy};
    if (l->cframe_frame == LAYOUT_NONE || way->frame == 0)
        return true;
    way->cframe = way->frame;
    p = python_view(v, KNOWN_CFRAME, way->cframe, copy, l->cframe_bytes);
    if (!p)
        return false;
    way->frame = python_word(p, l->cframe_frame);
    way->is_new |= p == copy;
    return true;
}

/* The first of the list lies in the thread's state, and never has a frame. */
static bool is_first(const struct way *way, uint64_t cframe)
{
    return cframe - way->thread < ROOT_BYTES_MAX;
}

/* A list of `count` whose members are `kind` and have the next one's address at `next`. */
static void believe_list(const struct python_view *v, enum known_kind kind, uint64_t at,
                         unsigned count, uint32_t next, uint32_t bytes)
{
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    for (; count > 0; count--) {
        const uint8_t *p = python_view(v, kind, at, copy, bytes);
        if (!p)
            return;
        known_add(kind, at);
        at = python_word(p, next);
    }
}

/* All of it was right, up to `end`: not to be checked again. */
static void believe(const struct python_view *v, uint64_t thread, const struct way *end)
{
    const struct python_layout *l = v->layout;
    struct way way;
    if (!python_walk_begin(v, thread, &way))
        return;
    known_add(KNOWN_THREAD, thread);
    /* The innermost is read before anything is entered. One without frames proves little: it must
     * be the thread's own. */
    if (way.cframe && (end->step_count || is_first(&way, way.cframe)))
        believe_list(v, KNOWN_CFRAME, way.cframe, end->cframe_count + 1, l->cframe_previous,
                     l->cframe_bytes);
    believe_list(v, KNOWN_FRAME, way.frame, end->step_count, l->frame_previous, l->frame_bytes);
}

enum step { STEP_WRONG, STEP_SKIP, STEP_TAKE };

static unsigned owner_of(const struct python_layout *l, const uint8_t *p)
{
    return l->frame_owner == LAYOUT_NONE ? 0 : p[l->frame_owner];
}

/*
 * How many instructions the code `head` has behind its first one, and in `at` which of them the
 * frame `p` is at. False: that cannot be known.
 */
static bool find_instruction(const struct python_view *v, const uint8_t *p, const uint8_t *head,
                             uint64_t code, int64_t *at, int64_t *count)
{
    const struct python_layout *l = v->layout;
    if (l->frame_instruction == LAYOUT_NONE) {
        uint8_t copy[LAYOUT_PART_BYTES_MAX];
        const uint8_t *bytes =
            python_view(v, KNOWN_BYTES, python_word(head, l->code_bytecode), copy, l->bytes_data);
        if (!bytes || python_word(bytes, l->type) != l->bytes_type)
            return false;
        *at = (int64_t)(int32_t)python_half(p, l->frame_last) * l->last_bytes;
        *count = (int64_t)python_word(bytes, l->size);
        return true;
    }
    uint64_t instruction = python_word(p, l->frame_instruction);
    *at = (int64_t)(instruction - code - l->code_instructions);
    *count = 2 * (int64_t)(python_word(head, l->size) & INT32_MAX);
    if (l->code_copies == LAYOUT_NONE || (*at >= -2 && *at <= *count))
        return true;
    /* Not the first thread's: it has a copy of its own. The array may be replaced at any time. */
    uint64_t copies = python_word(head, l->code_copies), index = python_half(p, l->frame_copy);
    uint64_t words[2] = {0}, places[2] = {copies, copies + 8 + 8 * index};
    if (copies & KNOWN_MASK || !memory_read_many(places, 2, words, sizeof *words) ||
        index >= words[0])
        return false;
    *at = (int64_t)(instruction - words[1]);
    return true;
}

/* Looks at the code of the frame `p`. */
static enum step python_walk_look(const struct python_view *v, const uint8_t *p,
                                  struct python_frame *f)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    int64_t at, count;
    f->code = python_word(p, l->frame_code) & POINTER_MASK;
    if (l->frame_type && python_word(p, l->type) != l->frame_type)
        return STEP_WRONG;
    const uint8_t *head = python_code_head(v, f->code, copy);
    if (!head || !find_instruction(v, p, head, f->code, &at, &count))
        return STEP_WRONG;
    /* From one before the first on: 3.12 and those before have the one before the next. */
    if ((at & 1 && at != -(int64_t)l->last_bytes) || at < -2 || at > count)
        return STEP_WRONG;
    bool is_object = l->code_first_traceable == LAYOUT_NONE;
    if (is_object && v->is_running && !python_word(p, l->frame_previous) &&
        (python_half(head, l->code_flags) & FLAGS_GENERATORS || p[l->frame_runs] != l->runs_value))
        return STEP_WRONG; /* it has just been left, and was called by another one */
    if (!is_object && owner_of(l, p) != OWNER_GENERATOR &&
        at < 2 * (int64_t)(int32_t)python_half(head, l->code_first_traceable))
        return STEP_SKIP; /* it has not begun, or is one that the interpreter made for itself */
    f->instruction = f->code + l->code_instructions + (uint64_t)at;
    f->check = python_code_check(v, head);
    return f->check ? STEP_TAKE : STEP_WRONG;
}

/*
 * A loop that has just been entered is in the list before anything of it is written: what it has
 * then is what lay on the stack, often a frame of the past. Is `outer`, in which its frames end,
 * the one that the loop around it is at? None is around it only at the list's end; a greenlet puts
 * one more there.
 */
static bool python_walk_goes_on(const struct python_view *v, const struct way *way, uint64_t outer)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    const uint8_t *p = python_view(v, KNOWN_CFRAME, way->cframe, copy, l->cframe_bytes);
    return p && python_word(p, l->cframe_frame) == outer &&
           (outer || is_first(way, way->cframe) ||
            is_first(way, python_word(p, l->cframe_previous)));
}

/*
 * Where the native frame of the loop is that was entered for the frame `p`, or for those inside of
 * it if that one only stands for C. 0: none was entered here. False: not readable.
 */
static bool python_walk_find_entry(const struct python_view *v, const uint8_t *p, struct way *way,
                                   uint64_t *entry)
{
    const struct python_layout *l = v->layout;
    uint8_t copy[LAYOUT_PART_BYTES_MAX];
    bool is_c = owner_of(l, p) >= l->owner_c;
    bool is_entry = is_c;
    if (l->frame_is_entry != LAYOUT_NONE && p[l->frame_is_entry])
        is_entry = true;
    *entry = !is_entry ? 0 : is_c ? way->frame : way->cframe; /* each lies in the loop's own */
    if (!is_entry || (is_c && !v->is_running) || l->cframe_frame == LAYOUT_NONE)
        return true;
    uint64_t outer = python_word(p, l->frame_previous);
    p = python_view(v, KNOWN_CFRAME, way->cframe, copy, l->cframe_bytes);
    if (!p)
        return false;
    way->is_new |= p == copy;
    way->cframe_count++;
    way->cframe = python_word(p, l->cframe_previous);
    return !v->is_running || python_walk_goes_on(v, way, outer);
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
    if (!python_walk_begin(v, thread, &way))
        return -1;
    for (; way.frame; way.step_count++) {
        struct python_frame f = {.frame = way.frame};
        const uint8_t *p = python_view(v, KNOWN_FRAME, way.frame, copy, l->frame_bytes);
        bool is_full = is_cut && *is_cut;
        if (is_full && way.step_count == STEPS_MAX)
            break;
        if (!p || way.step_count == STEPS_MAX)
            return -1;
        bool is_c = owner_of(l, p) >= l->owner_c;
        enum step step = is_c || is_full ? STEP_SKIP : python_walk_look(v, p, &f);
        if (step == STEP_WRONG || !python_walk_find_entry(v, p, &way, &entry))
            return -1;
        if (step == STEP_TAKE && count == max)
            *is_cut = true;
        else if (step == STEP_TAKE)
            frames[count++] = f;
        if (entry && count && !frames[count - 1].entry)
            frames[count - 1].entry = entry;
        bool is_entered = frames[count ? count - 1 : 0].entry || l->frame_owner == LAYOUT_NONE;
        if (is_cut ? *is_cut && is_entered : count == max)
            break; /* where the last one was entered is worth some more steps */
        way.is_new |= p == copy;
        way.frame = python_word(p, l->frame_previous);
    }
    if (v->is_running && !way.frame && way.step_count && !entry && l->frame_owner != LAYOUT_NONE)
        return -1; /* the outermost has always been entered from C */
    if ((count || !way.step_count) && way.is_new && v->is_own)
        believe(v, thread, &way);
    return (int)count;
}

bool python_walk_confirm(const struct python_view *v, const struct python_frame *frames,
                         unsigned count)
{
    const struct python_layout *l = v->layout;
    uint8_t copies[MEMORY_READS_MAX * LAYOUT_PART_BYTES_MAX];
    for (unsigned left = count, n; left > 0; left -= n) {
        uint64_t places[MEMORY_READS_MAX];
        n = left < MEMORY_READS_MAX ? left : MEMORY_READS_MAX;
        for (unsigned i = 0; i < n; i++)
            places[i] = frames[left - 1 - i].frame;
        if (!memory_read_many(places, n, copies, l->frame_bytes))
            return false;
        for (unsigned i = 0; i < n; i++) {
            const struct python_frame *before = &frames[left - 1 - i];
            struct python_frame f;
            if (python_walk_look(v, copies + i * l->frame_bytes, &f) != STEP_TAKE ||
                f.code != before->code || f.check != before->check ||
                (before != frames && f.instruction != before->instruction))
                return false;
        }
    }
    return true;
}
