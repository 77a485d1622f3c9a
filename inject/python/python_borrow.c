/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_borrow.h"

#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/ticks.h"
#include "python/python_walk.h"

#define THREADS_MAX 256u /* threads of the interpreter that are searched */
/* how long an answer is valid; the answer that no thread waits, less long */
#define HOLDS_NS       1000000u
#define NONE_HOLDS_NS  100000u
#define LOCK_NS        1000000u
#define VERDICTS       64u
#define TRIES_MAX      2u
#define AUTOGRAD_FILES "torch/autograd/"

/* Is this code object one in which a thread waits for gradients? */
struct verdict {
    uint64_t code;
    uint64_t check;
    bool is_waiting;
};

/* A thread of the interpreter, and the result for it. */
struct looked_at {
    uint64_t thread;
    uint64_t next;  /* the next thread */
    uint32_t first; /* index of the first fact that the result depends on */
    bool is_waiting;
};

#define FRAME_WORDS (sizeof(struct python_frame) / sizeof(uint64_t))

/* Found under the lock by any thread that borrows. Others may read it meanwhile: an answer is
 * complete if its version is even, and the same before and after reading. */
static struct {
    struct lock lock;
    _Atomic uint32_t version;
    _Atomic uint32_t frame_count; /* 0: no thread waits */
    _Atomic bool is_cut;
    _Atomic uint64_t until_ns; /* valid until then if the thread stays where it is */
    bool is_found;             /* there is an answer; used by the finder */
    _Atomic uint64_t words[PYTHON_FRAMES_MAX * FRAME_WORDS];
    struct python_facts there; /* facts: the thread and the frames that called it exist */
    /* The finder's facts: the code is the same; and for all threads, in order, which ones wait. */
    struct python_facts code;
    struct python_facts all;
    struct looked_at threads[THREADS_MAX];
    unsigned thread_count;
    struct python_frame frames[PYTHON_FRAMES_MAX];
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

/* Reads a word on which the answer depends. */
static bool read_word(uint64_t address, uint64_t *word)
{
    if (!memory_read(address, word, sizeof *word)) {
        python_facts_spoil(&answer.all);
        return false;
    }
    python_facts_add(&answer.all, address, word, sizeof *word);
    return true;
}

static int python_borrow_walk(const struct python_view *v, uint64_t thread,
                              struct python_frame *frames, unsigned max, bool *is_cut)
{
    int count = python_walk(v, thread, frames, max, is_cut);
    if (count < 0)
        python_facts_spoil(&answer.all); /* the wrong fact may not be among them */
    return count;
}

/* Returns false if the list has changed meanwhile. A frame keeps its code alive, which need not be
 * checked. */
static bool look_at(const struct python_layout *l, uint64_t thread, struct looked_at *found)
{
    const struct python_view v = {.layout = l, .frame_facts = &answer.all};
    struct python_frame f;
    *found = (struct looked_at){.thread = thread, .first = answer.all.next};
    found->is_waiting = python_borrow_walk(&v, thread, &f, 1, NULL) == 1 && is_waiting(&v, &f);
    return read_word(thread + l->thread_next, &found->next);
}

/* Returns the one thread that waits, or 0. */
static uint64_t find_waiting(const struct python_layout *l, uint64_t runtime)
{
    uint64_t interpreter = 0, thread = 0, found = 0;
    answer.thread_count = 0;
    if (!read_word(runtime + l->runtime_interpreters, &interpreter) || !interpreter ||
        !read_word(interpreter + l->interpreter_threads, &thread))
        return 0;
    while (thread && answer.thread_count < THREADS_MAX) {
        struct looked_at *at = &answer.threads[answer.thread_count++];
        if (!look_at(l, thread, at) || (at->is_waiting && found))
            return 0; /* it is not known which of the two */
        found = at->is_waiting ? thread : found;
        thread = at->next;
    }
    return found;
}

/* Checks threads that have run since: is the result the same? */
static bool all_hold(const struct python_layout *l)
{
    uint32_t count = atomic_load(&answer.all.count);
    unsigned i = 0;
    if (count > FACTS_MAX)
        return false;
    for (uint32_t end = 0;;) {
        uint32_t changed = python_facts_changed(&answer.all, end);
        if (changed == count)
            return true;
        for (; i < answer.thread_count && end <= changed; i++)
            end = i + 1 < answer.thread_count ? answer.threads[i + 1].first : count;
        const struct looked_at *before = &answer.threads[i ? i - 1 : 0];
        struct looked_at now;
        if (end <= changed || changed < before->first)
            return false;
        answer.all.next = before->first;
        if (!look_at(l, before->thread, &now) || now.is_waiting != before->is_waiting ||
            now.next != before->next || answer.all.next != end ||
            atomic_load(&answer.all.count) != count)
            return false;
    }
}

/* Returns the number of frames in answer.frames. */
static unsigned find_frames(const struct python_layout *l, uint64_t runtime, bool *is_cut)
{
    const struct python_view waiting = {
        .layout = l, .frame_facts = &answer.there, .code_facts = &answer.code};
    uint64_t thread = find_waiting(l, runtime);
    int count =
        thread ? python_borrow_walk(&waiting, thread, answer.frames, PYTHON_FRAMES_MAX, is_cut) : 0;
    return count > 0 && is_waiting(&waiting, &answer.frames[0]) ? (unsigned)count : 0;
}

static void find_answer(const struct python_layout *l, uint64_t runtime, uint64_t now_ns)
{
    bool is_cut = false;
    atomic_fetch_add(&answer.version, 1);
    python_facts_clear(&answer.there);
    python_facts_clear(&answer.code);
    python_facts_clear(&answer.all);
    unsigned count = find_frames(l, runtime, &is_cut);
    python_facts_end(&answer.there);
    python_facts_end(&answer.code);
    if (!python_facts_hold(&answer.there))
        count = 0; /* it has run meanwhile */
    for (unsigned i = 0; i < count * FRAME_WORDS; i++)
        atomic_store_explicit(&answer.words[i], python_word((uint8_t *)answer.frames, 8 * i),
                              memory_order_release);
    atomic_store_explicit(&answer.frame_count, count, memory_order_release);
    atomic_store_explicit(&answer.is_cut, is_cut, memory_order_release);
    atomic_store(&answer.until_ns, now_ns + (count ? HOLDS_NS : NONE_HOLDS_NS));
    answer.is_found = true;
    atomic_fetch_add(&answer.version, 1);
}

/* The lock must be held. Checks an answer that is too old, and searches again if it is no longer
 * valid. */
static void python_borrow_renew(const struct python_layout *l, uint64_t runtime)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_new = now_ns < atomic_load(&answer.until_ns);
    if (!answer.is_found || !python_facts_hold(&answer.there) ||
        (!is_new && !(python_facts_hold(&answer.code) && all_hold(l))))
        find_answer(l, runtime, now_ns);
    else if (!is_new)
        atomic_store(&answer.until_ns, now_ns + (answer.frame_count ? HOLDS_NS : NONE_HOLDS_NS));
}

/* Copies at most `max` of the answer's frames and returns how many; -1: it is incomplete, or no
 * longer valid, which is not checked if `is_sure`. */
static int python_borrow_take_answer(struct python_frame *frames, unsigned max, bool *is_cut,
                                     bool is_sure)
{
    uint32_t version = atomic_load_explicit(&answer.version, memory_order_acquire);
    uint32_t found = atomic_load_explicit(&answer.frame_count, memory_order_acquire);
    unsigned count = found < max ? found : max;
    *is_cut =
        count > 0 && (atomic_load_explicit(&answer.is_cut, memory_order_acquire) || count < found);
    if (version & 1 || (!is_sure && (clock_ns(CLOCK_MONOTONIC) >= atomic_load(&answer.until_ns) ||
                                     (count > 0 && !python_facts_hold(&answer.there)))))
        return -1;
    for (unsigned i = 0; i < count * FRAME_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&answer.words[i], memory_order_acquire);
        memcpy((uint8_t *)frames + 8 * i, &word, sizeof word);
    }
    return atomic_load(&answer.version) == version ? (int)count : -1;
}

unsigned python_borrow(const struct python_layout *l, uint64_t runtime, struct python_frame *frames,
                       unsigned max, bool *is_cut)
{
    int count = python_borrow_take_answer(frames, max, is_cut, false);
    for (unsigned tries = 0; count < 0 && tries < TRIES_MAX; tries++) {
        if (!lock_take(&answer.lock, LOCK_NS))
            break;
        python_borrow_renew(l, runtime);
        lock_drop(&answer.lock);
        count = python_borrow_take_answer(frames, max, is_cut, true);
    }
    *is_cut &= count > 0;
    return count > 0 ? (unsigned)count : 0;
}

void python_borrow_reset(void)
{
    atomic_store(&answer.lock.holder, 0);
    atomic_store(&answer.version, 0);
    atomic_store(&answer.until_ns, 0);
    answer.is_found = false;
}
