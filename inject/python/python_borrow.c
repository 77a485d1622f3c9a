/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_borrow.h"

#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/ticks.h"
#include "python/python_walk.h"

#define THREADS_MAX    256u     /* of the interpreter's that are looked at */
#define HOLDS_NS       1000000u /* an answer; that nobody waits, not so long */
#define NONE_HOLDS_NS  100000u
#define LOCK_NS        1000000u
#define VERDICTS       64u
#define AUTOGRAD_FILES "torch/autograd/"

/* Is a code object one in which a thread waits for gradients? */
struct verdict {
    uint64_t code;
    uint64_t check;
    bool is_waiting;
};

/* By any thread that borrows, under the lock. */
static struct {
    struct lock lock;
    uint64_t until_ns; /* the answer below holds */
    uint64_t thread;   /* that waits; 0 = none does */
    unsigned frame_count;
    bool is_cut;
    struct python_frame frames[PYTHON_FRAMES_MAX];
    uint8_t copies[MEMORY_READS_MAX * LAYOUT_PART_BYTES_MAX];
    struct verdict verdicts[VERDICTS];
    struct python_place place;
} answer;

static bool is_function(const struct python_place *p, const char *name)
{
    return p->function_bytes == strlen(name) && memcmp(p->function, name, p->function_bytes) == 0;
}

static bool is_waiting_place(const struct python_place *p)
{
    return memmem(p->file, p->file_bytes, AUTOGRAD_FILES, sizeof AUTOGRAD_FILES - 1) &&
           (is_function(p, "_engine_run_backward") || is_function(p, "backward") ||
            is_function(p, "grad"));
}

static bool is_waiting(const struct python_view *v, const struct python_frame *f)
{
    struct verdict *verdict = &answer.verdicts[(f->code >> 4) % VERDICTS];
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    if (verdict->code == f->code && verdict->check == f->check)
        return verdict->is_waiting;
    if (!python_code_head(v, f->code, head))
        return false;
    python_code_place(v, f->code, head, f->instruction, &answer.place);
    if (!python_code_head(v, f->code, head) || python_code_check(v, head) != f->check)
        return false;
    *verdict = (struct verdict){f->code, f->check, is_waiting_place(&answer.place)};
    return verdict->is_waiting;
}

/*
 * The thread is where it was when the answer was found, and so are those that it was called from.
 * One read for all of them; of the innermost, that the code object is the same, too.
 */
static bool still_holds(const struct python_view *v, uint64_t thread)
{
    const struct python_layout *l = v->layout;
    uint64_t addresses[MEMORY_READS_MAX];
    unsigned count = answer.frame_count < MEMORY_READS_MAX ? answer.frame_count : MEMORY_READS_MAX;
    struct python_frame now;
    if (python_walk(v, thread, &now, 1, NULL) != 1 || now.frame != answer.frames[0].frame ||
        now.check != answer.frames[0].check)
        return false;
    for (unsigned i = 0; i < count; i++)
        addresses[i] = answer.frames[i].frame;
    if (!memory_read_many(addresses, count, answer.copies, l->frame_bytes))
        return false;
    for (unsigned i = 0; i < count; i++) {
        python_walk_take(l, answer.copies + i * (size_t)l->frame_bytes, &now);
        if (now.code != answer.frames[i].code || now.instruction != answer.frames[i].instruction)
            return false;
    }
    return true;
}

/* The one thread that waits, or 0. */
static uint64_t find_waiting(const struct python_view *v, uint64_t runtime)
{
    const struct python_layout *l = v->layout;
    uint64_t interpreter = 0, thread = 0, found = 0;
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    if (!memory_read(runtime + l->runtime_interpreters, &interpreter, sizeof interpreter) ||
        !interpreter || !memory_read(interpreter + l->interpreter_threads, &thread, sizeof thread))
        return 0;
    for (unsigned i = 0; thread && i < THREADS_MAX; i++) {
        struct python_frame f;
        if (python_walk(v, thread, &f, 1, NULL) == 1 && is_waiting(v, &f)) {
            if (found)
                return 0; /* which of the two is not known */
            found = thread;
        }
        if (!python_view(v, SIGHT_THREAD, thread, head, l->thread_bytes))
            return 0; /* the list has changed under us */
        thread = python_word(head, l->thread_next);
    }
    return found;
}

static void find_answer(const struct python_view *v, uint64_t runtime)
{
    answer.frame_count = 0;
    answer.thread = find_waiting(v, runtime);
    if (!answer.thread)
        return;
    int count = python_walk(v, answer.thread, answer.frames, PYTHON_FRAMES_MAX, &answer.is_cut);
    answer.frame_count = count > 0 ? (unsigned)count : 0;
    if (!answer.frame_count || !is_waiting(v, &answer.frames[0]) || !still_holds(v, answer.thread))
        answer.thread = answer.frame_count = 0; /* it has gone on meanwhile */
}

unsigned python_borrow(const struct python_layout *l, uint64_t runtime, struct python_frame *frames,
                       unsigned max, bool *is_cut)
{
    const struct python_view checked = {.layout = l};
    if (!lock_take(&answer.lock, LOCK_NS))
        return 0;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns >= answer.until_ns || (answer.thread && !still_holds(&checked, answer.thread))) {
        find_answer(&checked, runtime);
        answer.until_ns = now_ns + (answer.thread ? HOLDS_NS : NONE_HOLDS_NS);
    }
    unsigned count = answer.frame_count < max ? answer.frame_count : max;
    *is_cut = count > 0 && (answer.is_cut || count < answer.frame_count);
    memcpy(frames, answer.frames, count * sizeof *frames);
    lock_drop(&answer.lock);
    return count;
}

void python_borrow_reset(void)
{
    atomic_store(&answer.lock.holder, 0);
    answer.until_ns = 0;
}
