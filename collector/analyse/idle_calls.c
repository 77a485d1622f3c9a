/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did, for the charging of idle time. */
#include <stdlib.h>
#include <string.h>

#include "analyse/idle.h"
#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/op_names.h"

/* ---- entries of a thread --------------------------------------------------------------------- */

#define ENTRIES_FIRST 8

/* Threads are sampled after silences from about this length on (run --silence). */
#define SILENT_NS 1000000u

/* The place of one more entry, which is counted. */
static struct idle_entry *new_entry(struct idle_thread *t)
{
    if (t->count == 2 * IDLE_ENTRIES_MAX) {
        t->count /= 2;
        memmove(t->entries, t->entries + t->count, t->count * sizeof *t->entries);
        t->has_forgotten = true;
    }
    (void)ARRAY_ROOM(t->entries, t->count, t->capacity, ENTRIES_FIRST);
    return &t->entries[t->count++];
}

static bool is_same_name(const struct idle_place *a, const struct idle_place *b)
{
    return a->word == b->word && a->kind == b->kind;
}

/* Notes that a range or operator, named by `place`, has ended. */
static void ended(struct idle_thread *t, struct idle_place place, uint64_t begin_ns,
                  uint64_t end_ns)
{
    const struct idle_entry *last = idle_thread_last(t);
    if (t->depth || !place.kind || !last || end_ns <= last->end_ns)
        return;
    if (t->spent_since_ns != last->end_ns)
        t->spent_count = 0;
    t->spent_since_ns = last->end_ns;
    if (begin_ns <= last->begin_ns)
        place.stack = last->place.stack; /* the last known stack in it */
    uint64_t ns = end_ns - max_of(begin_ns, last->end_ns);
    uint32_t i = 0, least = 0;
    for (; i < t->spent_count && !is_same_name(&t->spent[i].place, &place); i++)
        least = t->spent[i].ns < t->spent[least].ns ? i : least;
    if (i < t->spent_count)
        t->spent[i].ns += ns;
    else if (i < IDLE_SPENT_MAX)
        t->spent[t->spent_count++] = (struct idle_spent){place, ns};
    else if (t->spent[least].ns < ns)
        t->spent[least] = (struct idle_spent){place, ns};
}

/* The innermost, thus shortest, name that took half of that time; NULL if there is none. */
static const struct idle_spent *find_spent(const struct idle_thread *t, uint64_t begin_ns,
                                           uint64_t end_ns)
{
    const struct idle_spent *found = NULL;
    uint32_t count = t->spent_since_ns == begin_ns ? t->spent_count : 0;
    for (uint32_t i = 0; i < count; i++)
        if (t->spent[i].ns >= (end_ns - begin_ns) / 2 && (!found || t->spent[i].ns < found->ns))
            found = &t->spent[i];
    return found;
}

/* Appends the time from the last call to end_ns, if a name took most of it. */
static void append_between(struct idle_thread *t, uint64_t end_ns, struct silence_look look)
{
    const struct idle_entry *last = idle_thread_last(t);
    uint64_t begin_ns = last ? last->end_ns : end_ns;
    const struct idle_spent *spent =
        end_ns - begin_ns < IDLE_NEAR_NS ? NULL : find_spent(t, begin_ns, end_ns);
    if (spent)
        *new_entry(t) = (struct idle_entry){
            .begin_ns = begin_ns,
            .end_ns = end_ns,
            .place = spent->place,
            .look = look,
            .cause = end_ns - begin_ns < IDLE_NOTHING_NS ? IDLE_HOST : IDLE_NOTHING};
}

/* Extends `last` to the end of `entry` if that follows and is more of the same. Returns whether it
 * did. */
static inline bool go_on(struct idle_entry *last, const struct idle_entry *entry)
{
    if (entry->begin_ns < last->end_ns || entry->begin_ns - last->end_ns >= IDLE_NEAR_NS ||
        !idle_place_same(&last->place, &entry->place) || last->cause != entry->cause ||
        last->place.is_open || entry->place.is_open)
        return false;
    last->end_ns = entry->end_ns;
    return true;
}

/* Appends an entry, whatever the thread is in. If one range or operator that has ended took at
 * least half of the time since the previous call, the innermost such gets an entry in between. */
static void append(struct idle_thread *t, const struct idle_entry *entry)
{
    struct idle_entry *last = idle_thread_last(t);
    /* A damaged file may have calls of one thread that overlap. */
    uint64_t begin_ns = max_of(entry->begin_ns, last ? last->end_ns : 0);
    if (last && go_on(last, entry))
        return;
    append_between(t, begin_ns, entry->look);
    last = new_entry(t);
    *last = *entry;
    last->begin_ns = begin_ns;
    last->end_ns = max_of(entry->end_ns, begin_ns);
}

/* The thread is in `what` between these two; calls from its begin on belong to it. */
static void enter(struct idle_thread *t, const struct idle_entry *what)
{
    if (!t->depth)
        t->in = *what;
    t->depth += t->in.cause == what->cause;
}

static void leave(struct idle_thread *t, const struct idle_entry *what)
{
    if (t->depth && (t->in.cause != what->cause || --t->depth))
        return;
    /* Calls made before it was recognised belong to it, too. */
    for (struct idle_entry *last; (last = idle_thread_last(t)) && last->begin_ns >= what->begin_ns;)
        t->count--;
    append(t, what);
}

/* Marks a part of its last call, or of the time after that, as loading. */
static void mark_part(struct idle_thread *t, const struct idle_entry *part)
{
    struct idle_entry *last = idle_thread_last(t);
    bool is_after = last && part->begin_ns >= last->end_ns;
    if (t->depth || !last ||
        (!is_after && (part->begin_ns < last->begin_ns || part->end_ns > last->end_ns)))
        return;
    struct idle_entry rest = *last;
    if (!is_after)
        last->end_ns = part->begin_ns;
    append(t, part);
    rest.begin_ns = part->end_ns;
    if (!is_after)
        append(t, &rest);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The state of a thread, created if new. */
static struct idle_thread *idle_thread_of(struct idle *d, const struct thread *thread)
{
    struct idle_thread **t = &d->way.threads[thread->index];
    if (!*t) {
        *t = memory_new(1, sizeof **t);
        (*t)->index = thread->index;
    }
    return *t;
}

static enum idle_cause cause_of(const struct event *e)
{
    const struct function *f = e->function;
    if (e->record->flags & RECORD_CAPTURED)
        return IDLE_CAPTURE;
    if (f->class == API_LAUNCH) /* the most frequent class */
        return IDLE_LAUNCH;
    if (f->class == API_GRAPH_LAUNCH || f->does == API_DOES_SET ||
        f->does == API_DOES_EVENT_RECORD || f->does == API_DOES_CONTEXT_RECORD ||
        f->does == API_DOES_EVENT_WAIT)
        return IDLE_LAUNCH;
    switch (f->class) {
    case API_ALLOC: return IDLE_ALLOCATION;
    case API_COPY: return IDLE_COPY;
    case API_SYNC: return IDLE_SYNC;
    case API_GRAPH: return IDLE_CAPTURE;
    default: return IDLE_UNKNOWN;
    }
}

static struct idle_place named(const struct kernel_name *name)
{
    return (struct idle_place){
        .word = (uintptr_t)name, .function = IDLE_NONE, .kind = name ? IDLE_WORD_NAME : 0};
}

static inline void set_place(struct idle_entry *call, const struct slice *s)
{
    struct idle_place *place = &call->place;
    const struct host_span *op = walk_op(s);
    const struct host_span *range = op ? NULL : walk_range(s);
    uint32_t own = s->event.record->stack_id;
    const struct host_span *around =
        own ? NULL : spans_with_stack(&s->walk->spans, s->event.thread);
    *place = named(op ? op->text : range ? range->text : NULL);
    place->stack = around ? around->stack : own;
    place->function = s->event.function->index;
    call->since_ns = around ? around->begin_ns : op ? op->begin_ns : range ? range->begin_ns : 0;
    call->is_around = around != NULL;
}

/* The fast path only compares the entry, which then stays in registers; add_call makes it again. */
static inline struct idle_entry entry_of(const struct slice *s)
{
    const struct event *e = &s->event;
    struct idle_entry call = {
        .begin_ns = e->begin_ns, .end_ns = e->end_ns, .cause = (uint8_t)cause_of(e)};
    set_place(&call, s);
    call.place.is_open = (e->record->flags & RECORD_OPEN) != 0;
    return call;
}

/* The call ends a silence: adds what the thread did meanwhile, and the call's stack if it has
 * none. */
static void silence_ended(struct idle_thread *t, struct idle_entry *call)
{
    struct idle_silence *silence = &t->silence;
    const struct idle_entry *last = idle_thread_last(t);
    uint32_t from = last ? last->place.function : IDLE_NONE;
    if (silence->is_pending) {
        silence->is_pending = false;
        silence->function = call->place.function;
        silence->from = from;
        silence->stack = call->place.stack;
    } else if (!silence->ns || !last || call->place.function != silence->function ||
               from != silence->from || call->begin_ns < last->end_ns + SILENT_NS) {
        return;
    }
    call->look = silence->look;
    call->place.stack = call->place.stack ? call->place.stack : silence->stack;
}

static __attribute__((noinline)) void add_call(struct idle_thread *t, const struct slice *s)
{
    struct idle_entry call = entry_of(s);
    unsigned does = s->event.function->does;
    silence_ended(t, &call);
    if (does == API_DOES_CAPTURE_BEGIN && !s->event.record->result) {
        enter(t, &call);
    } else if (does == API_DOES_CAPTURE_END && t->depth && t->in.cause == IDLE_CAPTURE) {
        call.begin_ns = t->in.begin_ns;
        leave(t, &call);
    } else if (!t->depth) {
        append(t, &call);
    }
}

void idle_take_call(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->record->flags & RECORD_NESTED)
        return;
    struct idle_thread *t = idle_thread_of(d, e->thread);
    const struct idle_entry call = entry_of(s);
    struct idle_entry *last = t->depth ? NULL : idle_thread_last(t);
    unsigned class = e->function->class;
    p->first_call_ns = min_of(p->first_call_ns, e->begin_ns);
    if (class == API_LAUNCH || class == API_GRAPH_LAUNCH || class == API_COPY)
        p->call = (struct idle_submit){t, e->begin_ns, e->end_ns, IDLE_NONE, 0};
    /* Most calls repeat what the thread did last. */
    if (!last || call.cause == IDLE_CAPTURE || !go_on(last, &call))
        add_call(t, s);
}

/* The thread of an overhead: that of its call, else the recorded one, else the last thread that
 * submitted work. IDLE_NONE: not known. */
static uint32_t overhead_thread(const struct idle_process *p, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct thread *says =
        record_arg(r, OVERHEAD_OBJECT) == OBJECT_THREAD
            ? thread_of_tid(&s->event.process->threads, record_arg(r, OVERHEAD_THREAD))
            : NULL;
    return s->is_called     ? s->call.thread
           : says           ? says->index
           : p->call.thread ? p->call.thread->index
                            : IDLE_NONE;
}

/* The driver records compilation and first-use loading inside the call that needed it. If that call
 * is not recorded, as when libraries load modules, the record lies between two calls. */
void idle_take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    uint64_t kind = record_arg(e->record, OVERHEAD_KIND);
    struct idle_entry part = {.begin_ns = e->begin_ns,
                              .end_ns = e->end_ns,
                              .place = idle_text(overhead_kind_text(kind)),
                              .cause = IDLE_CAPTURE};
    bool is_loading = kind == OVERHEAD_COMPILER || kind == OVERHEAD_MODULE_LOADING ||
                      kind == OVERHEAD_LAZY_LOADING;
    uint32_t thread = is_loading ? overhead_thread(p, s) : IDLE_NONE;
    if (thread != IDLE_NONE && d->way.threads[thread])
        mark_part(d->way.threads[thread], &part);
}

/* ---- data loading ---------------------------------------------------------------------------- */

static void load(struct idle *d, const struct thread *thread, const struct kernel_name *name,
                 bool begins, uint64_t begin_ns, uint64_t end_ns)
{
    struct idle_thread *t = idle_thread_of(d, thread);
    struct idle_entry what = {.begin_ns = begin_ns,
                              .end_ns = end_ns,
                              .since_ns = begin_ns,
                              .place = named(name),
                              .cause = IDLE_LOADER};
    if (begins)
        enter(t, &what);
    else
        leave(t, &what);
}

static bool is_loader(const struct host_span *op)
{
    return op_is_label(op) && op_kind_of(op->scope, op->text) == OP_KIND_LOADER;
}

void idle_take_op(struct idle *d, const struct slice *s)
{
    const struct host_span *op = s->span;
    if (s->change == SPAN_CLOSED && !op->is_moved && (op_works(op) || op_is_label(op)) &&
        d->way.threads[op->thread->index])
        ended(d->way.threads[op->thread->index], named(op->text), op->begin_ns, op->end_ns);
    if (!op->is_traced && is_loader(op))
        load(d, op->thread, op->text, s->change == SPAN_OPENED, op->begin_ns, op->end_ns);
}

void idle_take_range(struct idle *d, const struct slice *s)
{
    const struct host_span *range = s->span;
    bool opens = s->change == SPAN_OPENED;
    if ((!opens && s->change != SPAN_CLOSED) || !range->nested || !range->text)
        return;
    struct key key = {(uintptr_t)range->text, 0, 0};
    uint64_t says = key_map_get(&d->way.loaders, key);
    if (!opens && d->way.threads[range->thread->index])
        ended(d->way.threads[range->thread->index], named(range->text), range->begin_ns,
              range->end_ns);
    if (!says) {
        says = 1 + (regexec(&d->way.loading, range->text->shown, 0, NULL, 0) == 0);
        (void)key_map_set(&d->way.loaders, key, says); /* else it is matched again */
    }
    if (says == 2)
        load(d, range->thread, range->text, opens, range->begin_ns, range->end_ns);
}

void idle_take_silence(struct idle *d, const struct slice *s)
{
    struct idle_thread *t = idle_thread_of(d, s->event.thread);
    t->silence =
        (struct idle_silence){.ns = record_arg(s->event.record, SILENCE_NS), .is_pending = true};
    (void)silence_look_of(s->event.record,
                          &t->silence.look); /* if not known, the thread counts as running */
    thread_times_take(&d->host, s);
}
