/* SPDX-License-Identifier: Apache-2.0 */
#include "range/user_ranges.h"

#include <string.h>

#include "base/ticks.h"
#include "hook/call.h"
#include "range/deferred_ranges.h"
#include "range/labels.h"
#include "range/step_count.h"
#include "range/windows.h"
#include "record/recorded.h"
#include "record/start.h"
#include "record/thread.h"
#include "record/wake.h"

#define LEVELS_MAX 6 /* domains in which a thread has open ranges at one time */

/* The ranges that a thread has pushed in a domain and not yet popped. */
struct level {
    uint32_t depth; /* 0: the struct is free */
    uint32_t domain;
    /* Ranges from this level to below the next one are not in this recording, so their ends are
     * not, either. */
    uint32_t silent_low;
    uint32_t silent_high;
};

struct levels {
    struct level of[LEVELS_MAX];
    struct deferred_list deferred; /* pushed ranges that wait for a recording */
    bool has_step;            /* it has kept a step, and not yet checked whether that still waits */
    uint32_t untracked_count; /* ranges pushed in domains without a struct level */
    uint64_t begin;           /* in ticks: begin of what is being timed; 0: nothing */
};

static __thread struct levels levels;
/* the newest id; changed by each thread that starts a range */
static _Atomic uint64_t range_serial;

enum way {
    WAY_NONE,   /* inside our own code */
    WAY_KEEP,   /* nothing is recorded now */
    WAY_RECORD, /* this thread takes part */
};

static bool is_paused(void)
{
    return recorded_off() & OFF_CALLS;
}

static __attribute__((noinline)) enum way choose_way(struct thread *t)
{
    if (epoch_now() == EPOCH_NONE) {
        if (atomic_load(&fork_page.phase) == START_FAILED &&
            atomic_load(&gp.counters[COUNTER_ENDED]))
            counter_add(COUNTER_UNRECORDED, 1);
        return WAY_KEEP;
    }
    if (is_paused())
        return WAY_KEEP;
    if (!thread_takes_part(t) && !thread_attach(t))
        return WAY_KEEP;
    if (thread_is_asked(t))
        thread_follow(t);
    return WAY_RECORD;
}

/* Everything here is between user_ranges_enter() and user_ranges_leave(), except for WAY_NONE. */
static inline enum way user_ranges_enter(struct thread *t, struct call *c)
{
    if (!call_enter_own(t, c))
        return WAY_NONE;
    if (unlikely(t->burst))
        levels.begin = ticks_now();
    if (likely(t->epoch == atomic_load_explicit(&fork_page.recording, memory_order_relaxed)))
        return WAY_RECORD;
    return choose_way(t);
}

static __attribute__((noinline)) void leave_timed(struct thread *t)
{
    if (thread_takes_part(t) && t->burst) {
        t->burst--;
        thread_set_limit(t);
        thread_cost_time(t->cost, COST_RANGE, ticks_now() - levels.begin);
    }
    levels.begin = 0;
}

static inline void user_ranges_leave(struct thread *t)
{
    if (unlikely(levels.begin))
        leave_timed(t);
    if (unlikely(attention_now() >= ATTENTION_LATE) && thread_takes_part(t))
        writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
    call_leave(t);
}

/* Leaves the 16 argument words unset: clearing them would cost more than all the rest. */
static inline void record_head(struct record *r, uint8_t type, uint64_t begin)
{
    memset(r, 0, offsetof(struct record, args));
    r->type = type;
    r->begin = begin;
    r->bytes = NULL;
    r->byte_count = 0;
}

static inline bool append_record(struct thread *t, const struct record *r)
{
    if (likely(t->records))
        chunk_fetch_ahead(t->records + t->used);
    return thread_append(t, r);
}

_Static_assert(
    (int)RECORD_MARK_ARGS == (int)RECORD_PUSH_ARGS &&
        (int)RECORD_RANGE_START_ARGS == (int)RANGE_START_DOMAIN + (int)RECORD_PUSH_ARGS &&
        (int)RECORD_PUSH_ARGS == (int)PUSH_DATA + RANGE_DATA_WORDS,
    "a mark has a pushed range's arguments; the start of a range its number before them");

/* Adds only the words that the payload has. */
static void add_data(struct record *r, uint64_t *args, const struct range_data *data)
{
    uint64_t words = (data->byte_count + 7) / 8;
    words = words < RANGE_DATA_WORDS ? words : RANGE_DATA_WORDS;
    args[PUSH_SCHEMA] = data->schema;
    args[PUSH_DATA_BYTES] = data->byte_count;
    memcpy(args + PUSH_DATA, data->words, words * sizeof *args);
    r->arg_count = (uint8_t)(r->arg_count + PUSH_DATA - PUSH_SCHEMA + words);
}

static bool user_ranges_append(struct thread *t, uint8_t type, uint64_t begin, uint64_t id,
                               const struct range_event *e)
{
    struct record r;
    record_head(&r, type, begin);
    uint64_t *args = r.args;
    if (type == RECORD_RANGE_START) {
        r.args[RANGE_START_RANGE] = id;
        args += RANGE_START_DOMAIN;
    }
    args[PUSH_DOMAIN] = e->domain;
    args[PUSH_CATEGORY] = e->category;
    args[PUSH_COLOR] = e->color;
    args[PUSH_PAYLOAD_TYPE] = e->payload_type;
    args[PUSH_PAYLOAD] = e->payload;
    args[PUSH_MESSAGE] = e->message;
    r.arg_count = (uint8_t)(args - r.args + PUSH_SCHEMA);
    if (unlikely(e->data))
        add_data(&r, args, e->data);
    r.bytes = (const uint8_t *)e->text;
    r.byte_count = e->byte_count;
    return append_record(t, &r);
}

/* Appends a record with one or two arguments. */
static bool append_numbers(struct thread *t, uint8_t type, uint64_t begin, uint8_t count,
                           uint64_t first, uint64_t second)
{
    struct record r;
    record_head(&r, type, begin);
    r.arg_count = count;
    r.args[0] = first;
    r.args[1] = second;
    return append_record(t, &r);
}

/* ---- What was kept ------------------------------------------------------------------------ */

static void write_deferred(struct thread *t, const struct deferred *k)
{
    struct range_event e = k->event;
    e.text = k->text;
    e.data = e.data ? &k->data : NULL;
    if (k->type == RECORD_STEP)
        append_numbers(t, RECORD_STEP, k->begin, 1, k->id, 0);
    else
        user_ranges_append(t, k->type, k->begin, k->id, &e);
}

/* A step of another thread waits for that thread, unless it is written `whosever` it is. */
static __attribute__((noinline)) void write_all_deferred(struct thread *t, bool whosever)
{
    struct deferred *k = deferred_take_step(whosever);
    levels.has_step = false;
    labels_write(t);
    if (k) {
        write_deferred(t, k);
        deferred_release(k);
    }
    while ((k = deferred_take_shared())) {
        write_deferred(t, k);
        deferred_release(k);
    }
    deferred_reverse(&levels.deferred); /* the outermost first */
    while ((k = deferred_pop(&levels.deferred, DEFERRED_ANY_DOMAIN))) {
        write_deferred(t, k);
        deferred_release(k);
    }
}

static inline void write_what_waits(struct thread *t)
{
    if (unlikely(levels.deferred.first) || unlikely(levels.has_step) ||
        unlikely(deferred_is_waiting()) || unlikely(labels_are_due()))
        write_all_deferred(t, false);
}

void ranges_attached(struct thread *t)
{
    /* Other open ranges of this thread belong to another process's file, if to any. */
    for (unsigned i = 0; i < LEVELS_MAX; i++) {
        struct level *l = &levels.of[i];
        uint32_t deferred = deferred_count(&levels.deferred, l->domain);
        l->silent_low = 0;
        l->silent_high = l->depth > deferred ? l->depth - deferred : 0;
    }
    if (!is_paused())
        write_all_deferred(t, false);
}

void ranges_end(uint64_t ns)
{
    struct thread *t = &this_thread;
    struct call c;
    (void)ns;
    enum way way = deferred_has_step() ? user_ranges_enter(t, &c) : WAY_NONE;
    if (way == WAY_NONE)
        return;
    if (way == WAY_RECORD)
        write_all_deferred(t, true);
    user_ranges_leave(t);
}

void range_labels_changed(void)
{
    struct thread *t = &this_thread;
    struct call c;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return;
    if (thread_takes_part(t))
        labels_write(t);
    user_ranges_leave(t);
}

/* ---- Pushed ranges ------------------------------------------------------------------------ */

static struct level *find_level(uint32_t domain)
{
    for (unsigned i = 0; i < LEVELS_MAX; i++)
        if (levels.of[i].depth && levels.of[i].domain == domain)
            return &levels.of[i];
    return NULL;
}

static struct level *new_level(uint32_t domain)
{
    for (unsigned i = 0; i < LEVELS_MAX; i++) {
        if (levels.of[i].depth == 0) {
            levels.of[i] = (struct level){.domain = domain};
            return &levels.of[i];
        }
    }
    return NULL;
}

/* The next range is not in the recording. */
static void silence(struct level *l)
{
    if (l->silent_low == l->silent_high)
        l->silent_low = l->depth;
    l->silent_high = l->depth + 1;
}

static bool is_silent(struct level *l, uint32_t depth)
{
    if (depth < l->silent_low || depth >= l->silent_high)
        return false;
    l->silent_high = depth;
    return true;
}

int range_push(const struct range_event *e)
{
    struct thread *t = &this_thread;
    struct call c;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return RANGE_NO_LEVEL;
    struct level *l = find_level(e->domain);
    bool is_known;
    if (!l)
        l = new_level(e->domain);
    if (steps_watch(WATCH_RANGES)) {
        windows_range_begins(t, e, true, l ? l->depth : 0);
        way = choose_way(t);
    }
    if (way == WAY_RECORD) {
        write_what_waits(t);
        is_known = user_ranges_append(t, RECORD_PUSH, ticks_now(), 0, e);
    } else {
        is_known = deferred_push(&levels.deferred, RECORD_PUSH, e);
    }
    int level = RANGE_NO_LEVEL;
    if (!l) {
        levels.untracked_count++;
    } else {
        if (!is_known)
            silence(l);
        level = (int)l->depth++;
    }
    user_ranges_leave(t);
    return level;
}

int range_pop(uint32_t domain)
{
    uint64_t now = ticks_now();
    struct thread *t = &this_thread;
    struct call c;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return RANGE_NO_LEVEL;
    struct level *l = find_level(domain);
    int level = RANGE_NONE_OPEN;
    bool is_open = l || levels.untracked_count;
    if (l)
        level = (int)--l->depth;
    else if (is_open)
        levels.untracked_count--, level = RANGE_NO_LEVEL;
    if (is_open && !(l && is_silent(l, l->depth))) {
        struct deferred *k = way == WAY_KEEP ? deferred_pop(&levels.deferred, domain) : NULL;
        if (way == WAY_RECORD)
            write_what_waits(t);
        if (k)
            deferred_release(k);
        else if (thread_takes_part(t)) /* begun before a pause, it ends in it */
            append_numbers(t, RECORD_POP, now, 1, domain, 0);
    }
    if (steps_watch(WATCH_RANGES))
        windows_range_ended(t, domain, true, (uint64_t)level);
    user_ranges_leave(t);
    return level;
}

/* ---- The others --------------------------------------------------------------------------- */

uint64_t range_start(const struct range_event *e)
{
    struct thread *t = &this_thread;
    struct call c;
    uint64_t id =
        (1 + atomic_fetch_add_explicit(&range_serial, 1, memory_order_relaxed)) * LABEL_DOMAIN_MAX +
        e->domain;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return id;
    if (steps_watch(WATCH_RANGES)) {
        windows_range_begins(t, e, false, id);
        way = choose_way(t);
    }
    if (way == WAY_RECORD) {
        write_what_waits(t);
        user_ranges_append(t, RECORD_RANGE_START, ticks_now(), id, e);
    } else {
        deferred_share(id, e);
    }
    user_ranges_leave(t);
    return id;
}

void range_end(uint64_t id)
{
    uint64_t now = ticks_now();
    uint64_t serial = id / LABEL_DOMAIN_MAX;
    struct thread *t = &this_thread;
    struct call c;
    if (!serial || serial > atomic_load_explicit(&range_serial, memory_order_relaxed))
        return;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return;
    if (way == WAY_RECORD)
        write_what_waits(t);
    else if (deferred_drop_shared(id) || epoch_now() == EPOCH_NONE || !thread_attach(t))
        goto done;
    append_numbers(t, RECORD_RANGE_END, now, 2, id, id % LABEL_DOMAIN_MAX);
done:
    if (steps_watch(WATCH_RANGES))
        windows_range_ended(t, 0, false, id);
    user_ranges_leave(t);
}

void range_mark(const struct range_event *e)
{
    struct thread *t = &this_thread;
    struct call c;
    enum way way = user_ranges_enter(t, &c);
    if (way == WAY_NONE)
        return;
    if (way == WAY_RECORD) {
        write_what_waits(t);
        user_ranges_append(t, RECORD_MARK, ticks_now(), 0, e);
    }
    user_ranges_leave(t);
}

void range_step(uint64_t number)
{
    struct thread *t = &this_thread;
    struct call c;
    enum way way = user_ranges_enter(t, &c), before = way;
    if (way == WAY_NONE)
        return;
    bool is_seen_to = false;
    if (steps_watch(WATCH_STEPS)) {
        is_seen_to = step_begins(t, STEPS_OF_PROGRAM, number);
        way = choose_way(t); /* this step may have started or stopped recording */
    }
    if (way == WAY_RECORD) {
        if (before != WAY_RECORD) /* the previous step was over when recording began */
            deferred_drop_step();
        write_what_waits(t);
        if (!is_seen_to)
            append_numbers(t, RECORD_STEP, ticks_now(), 1, number, 0);
    } else if (!is_seen_to) {
        deferred_step(number);
        levels.has_step = true;
    }
    user_ranges_leave(t);
}

void range_pause(bool paused)
{
    struct thread *t = &this_thread;
    struct call c;
    if (!call_enter_own(t, &c))
        return;
    bool is_recording = epoch_now() != EPOCH_NONE && thread_attach(t);
    if (recorded_ask(is_recording ? t : NULL, ASKER_PROGRAM, paused ? OFF_PROGRAM : 0, NULL) &&
        is_recording && !paused)
        write_all_deferred(t, false);
    user_ranges_leave(t);
}

uint32_t range_text_bytes(const char *text)
{
    if (!text)
        return 0;
    size_t length = strnlen(text, RANGE_TEXT_BYTES_MAX + 1);
    if (length <= RANGE_TEXT_BYTES_MAX)
        return (uint32_t)length;
    counter_add(COUNTER_TEXTS_TRUNCATED, 1);
    length = RANGE_TEXT_BYTES_MAX;
    for (int i = 0; i < 3 && ((uint8_t)text[length] & 0xC0) == 0x80; i++)
        length--;
    return (uint32_t)length;
}
