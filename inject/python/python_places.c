/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_places.h"

#include <string.h>
#include <sys/mman.h>

#include "base/futex.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/thread.h"

#define PAIR_SETS      8192u
#define PAIR_WAYS      4u
#define PLACES_MAX     65536u
#define PLACE_SLOTS    (2 * PLACES_MAX) /* open addressing, at most half full */
#define PLACES_LOCK_NS 2000000000u

#define PLACE_BYTES_MAX (PYTHON_FILE_BYTES_MAX + 1 + PYTHON_FUNCTION_BYTES_MAX)

/* What a frame offers for a quick look-up, and the number of its place. Read without the lock: if
 * the number is the same before and after, the other words belong to it. */
struct pair {
    _Atomic uint32_t number; /* 0: free */
    _Atomic uint64_t code;
    _Atomic uint64_t instruction;
    _Atomic uint64_t check;
};

struct place {
    uint64_t hash; /* of the line and texts */
    uint32_t number;
    bool written; /* its record is in the stream, or a thread is writing it */
};

/* 3 MiB, mapped at the first frame, with pages touched as needed. The pairs are a cache, since
 * programs may create code objects for ever; the places are few, and kept. */
struct place_table {
    struct pair pairs[PAIR_SETS][PAIR_WAYS];
    struct place places[PLACE_SLOTS];
    uint32_t place_count;
};

/* Changed by any thread that uses a new place, under the lock; pairs are read without it. */
static _Atomic(struct place_table *) table;
static struct lock places_lock;

_Static_assert(PLACE_BYTES_MAX <= RECORD_BYTES_MAX, "fits a record");

static struct pair *set_of(struct place_table *in, const struct python_frame *f)
{
    uint64_t hash = hash_mix(hash_mix(f->code, f->instruction), f->check);
    return in->pairs[hash % PAIR_SETS];
}

static bool python_places_is_of(const struct pair *p, const struct python_frame *f)
{
    return atomic_load_explicit(&p->instruction, memory_order_relaxed) == f->instruction &&
           atomic_load_explicit(&p->code, memory_order_relaxed) == f->code &&
           atomic_load_explicit(&p->check, memory_order_relaxed) == f->check;
}

static uint32_t find_pair(struct place_table *in, const struct python_frame *f)
{
    struct pair *set = set_of(in, f);
    for (unsigned i = 0; i < PAIR_WAYS; i++) {
        uint32_t number = atomic_load_explicit(&set[i].number, memory_order_acquire);
        if (!number || !python_places_is_of(&set[i], f))
            continue;
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&set[i].number, memory_order_relaxed) == number)
            return number;
    }
    return 0;
}

/* The lock must be held. Uses a free entry of its set, or else any. */
static void add_pair(struct place_table *in, const struct python_frame *f, uint32_t number)
{
    struct pair *set = set_of(in, f), *p = &set[f->check % PAIR_WAYS];
    for (unsigned i = 0; i < PAIR_WAYS; i++)
        if (!atomic_load_explicit(&set[i].number, memory_order_relaxed))
            p = &set[i];
    atomic_store_explicit(&p->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&p->code, f->code, memory_order_relaxed);
    atomic_store_explicit(&p->instruction, f->instruction, memory_order_relaxed);
    atomic_store_explicit(&p->check, f->check, memory_order_relaxed);
    atomic_store_explicit(&p->number, number, memory_order_release);
}

/* The lock must be held, also below. */
static struct place_table *python_places_prepare(void)
{
    struct place_table *in = atomic_load(&table);
    if (!in) {
        in = pages_map(sizeof *in);
        atomic_store(&table, in);
    }
    return in;
}

/*
 * Reads the texts and the line from the code object. Returns false if another one is there by now.
 * Without the lock: it makes system calls, and hurried threads do not wait for the lock's holder.
 */
static bool python_places_look_up(struct python_place *text, const struct python_layout *l,
                                  const struct python_frame *f)
{
    const struct python_view checked = {.layout = l};
    uint8_t head[LAYOUT_PART_BYTES_MAX];
    if (!python_code_head(&checked, f->code, head))
        return false;
    python_code_place(&checked, f->code, head, f->instruction, text);
    return python_code_head(&checked, f->code, head) &&
           python_code_check(&checked, head) == f->check;
}

/* Makes the record of the place, with both texts as one. */
static struct record make_record(struct python_place *text, uint32_t number)
{
    char *bytes = (char *)text + offsetof(struct python_place, file);
    memmove(bytes + text->file_bytes + 1, text->function, text->function_bytes);
    bytes[text->file_bytes] = '\0';
    return (struct record){
        RECORD_WITH(PYTHON, [PYTHON_LOCATION] = number, [PYTHON_LINE] = text->line),
        .begin = ticks_now(), .bytes = (const uint8_t *)bytes,
        .byte_count = text->file_bytes + 1 + text->function_bytes};
}

static uint64_t python_places_hash_of(const struct python_place *text)
{
    uint64_t hash = hash_mix(hash_mix(1, text->line), text->file_bytes);
    for (uint32_t i = 0; i < text->file_bytes; i++)
        hash = hash_mix(hash, (uint8_t)text->file[i]);
    for (uint32_t i = 0; i < text->function_bytes; i++)
        hash = hash_mix(hash, (uint8_t)text->function[i]);
    return hash;
}

/* Finds or adds the place. The lock must be held. NULL: there is no space. */
static struct place *find_place(struct place_table *in, const struct python_place *text)
{
    uint64_t hash = python_places_hash_of(text);
    uint32_t slot = (uint32_t)(hash % PLACE_SLOTS);
    while (in->places[slot].number && in->places[slot].hash != hash)
        slot = (slot + 1) % PLACE_SLOTS;
    if (!in->places[slot].number) {
        if (in->place_count == PLACES_MAX)
            return NULL;
        in->places[slot] = (struct place){.hash = hash, .number = ++in->place_count};
    }
    return &in->places[slot];
}

/* Its record was dropped: the next thread that uses it tries again. */
static void put_back(struct place_table *in, struct place *p, const struct python_frame *f)
{
    struct pair *set = set_of(in, f);
    if (!lock_take(&places_lock, PLACES_LOCK_NS))
        return;
    p->written = false;
    for (unsigned i = 0; i < PAIR_WAYS; i++)
        if (atomic_load_explicit(&set[i].number, memory_order_relaxed) == p->number)
            atomic_store_explicit(&set[i].number, 0, memory_order_relaxed);
    lock_drop(&places_lock);
}

/* Does not hold the lock while it appends: that may wait for space, and other threads would wait
 * for us. */
static __attribute__((noinline)) uint32_t
python_places_see(struct thread *t, const struct python_layout *l, const struct python_frame *frame,
                  bool (*is_held)(const void *), const void *context)
{
    struct python_place text;
    if (!python_places_look_up(&text, l, frame) || (is_held && !is_held(context)) ||
        !lock_take(&places_lock, t->is_hurried ? 0 : PLACES_LOCK_NS))
        return 0;
    struct place_table *in = python_places_prepare();
    struct place *p = in ? find_place(in, &text) : NULL;
    bool due = p && !p->written;
    if (p) {
        p->written = true;
        add_pair(in, frame, p->number);
    }
    lock_drop(&places_lock);
    if (due) {
        struct record r = make_record(&text, p->number);
        if (!thread_append(t, &r)) {
            put_back(in, p, frame);
            return 0;
        }
    }
    return p ? p->number : 0;
}

uint32_t python_place_number(struct thread *t, const struct python_layout *l,
                             const struct python_frame *frame, bool (*is_held)(const void *),
                             const void *context)
{
    struct place_table *in = atomic_load_explicit(&table, memory_order_acquire);
    uint32_t number = in ? find_pair(in, frame) : 0;
    if (likely(number))
        return number;
    uint64_t signals = block_signals(); /* a place counts as written before it is */
    number = python_places_see(t, l, frame, is_held, context);
    restore_signals(signals);
    return number;
}

void python_places_ahead(const struct python_frame *frames, unsigned count)
{
    struct place_table *in = atomic_load_explicit(&table, memory_order_acquire);
    for (unsigned i = 0; in && i < count; i++)
        __builtin_prefetch(set_of(in, &frames[i]));
}

uint32_t python_place_now(const struct python_layout *l, const struct python_frame *frame,
                          struct python_place *text, bool (*keep)(const struct record *r))
{
    struct place_table *in = atomic_load_explicit(&table, memory_order_acquire);
    uint32_t number = in ? find_pair(in, frame) : 0;
    if (likely(number) || !python_places_look_up(text, l, frame) || !lock_take(&places_lock, 0))
        return number;
    in = python_places_prepare();
    struct place *p = in ? find_place(in, text) : NULL;
    if (p && !p->written) {
        struct record r = make_record(text, p->number);
        p->written = keep(&r);
    }
    if (p && p->written) {
        add_pair(in, frame, p->number);
        number = p->number;
    }
    lock_drop(&places_lock);
    return number;
}

void python_places_reset(void)
{
    atomic_store(&places_lock.holder, 0);
    struct place_table *in = atomic_load(&table);
    if (in && madvise(in, sizeof *in, MADV_DONTNEED) < 0)
        memset(in, 0, sizeof *in);
}
