/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did, for the charging of idle time. */
#include <stdlib.h>

#include "analyse/idle_state.h"
#include "api/api.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/op_stack.h"

struct idle_thread *idle_thread_of(struct idle *d, const struct thread *thread)
{
    struct idle_thread **t = &d->way.threads[thread->index];
    if (!*t && (*t = calloc(1, sizeof **t)))
        (*t)->index = thread->index;
    return *t;
}

static enum idle_cause cause_of(const struct event *e)
{
    const struct function *f = e->function;
    if (e->record->flags & RECORD_CAPTURED)
        return IDLE_CAPTURE;
    if (f->class == API_LAUNCH) /* the most frequent class */
        return IDLE_LAUNCH;
    switch (f->does) {
    case API_DOES_SET:
    case API_DOES_EVENT_RECORD:
    case API_DOES_CONTEXT_RECORD:
    case API_DOES_EVENT_WAIT: return IDLE_LAUNCH;
    default: break;
    }
    switch (f->class) {
    case API_GRAPH_LAUNCH: return IDLE_LAUNCH;
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

static struct idle_place place_of_op(const struct op *op)
{
    if (op->text)
        return named(op->text);
    return (struct idle_place){.word = op->name, .function = IDLE_NONE, .kind = IDLE_WORD_OP};
}

static inline void idle_calls_set_place(struct idle_entry *call, const struct slice *s)
{
    struct idle_place *place = &call->place;
    const struct op *op = walk_op(s);
    const struct range *range = op ? NULL : walk_range(s, false);
    uint32_t own = s->event.record->stack_id;
    const struct op *around = own ? NULL : ops_with_stack(&s->walk->ops, s->event.thread);
    *place = op ? place_of_op(op) : named(range ? range->text : NULL);
    place->stack = around ? around->stack : own;
    place->function = s->event.function->index;
    call->since_ns = around ? around->begin_ns : op ? op->begin_ns : range ? range->begin_ns : 0;
    call->is_around = around != NULL;
}

/* The fast path only compares the entry, which then stays in registers; add_call makes it again. */
static inline struct idle_entry idle_calls_entry_of(const struct slice *s)
{
    const struct event *e = &s->event;
    enum idle_cause cause = cause_of(e);
    struct idle_entry call = {.begin_ns = e->begin_ns,
                              .end_ns = e->end_ns,
                              .cause = (uint8_t)cause,
                              .waits = cause == IDLE_SYNC || cause == IDLE_COPY ||
                                       cause == IDLE_ALLOCATION,
                              .is_open = e->record->flags & RECORD_OPEN};
    idle_calls_set_place(&call, s);
    call.place.is_open = call.is_open;
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
               from != silence->from || call->begin_ns < last->end_ns + IDLE_SILENT_NS) {
        return;
    }
    call->look = silence->look;
    call->place.stack = call->place.stack ? call->place.stack : silence->stack;
}

static __attribute__((noinline)) int idle_calls_add_call(struct idle_thread *t,
                                                         const struct slice *s)
{
    struct idle_entry call = idle_calls_entry_of(s);
    unsigned does = s->event.function->does;
    silence_ended(t, &call);
    if (does == API_DOES_CAPTURE_BEGIN && !s->event.record->result) {
        idle_thread_enter(t, &call);
        return 0;
    }
    if (does == API_DOES_CAPTURE_END && t->depth && t->in.cause == IDLE_CAPTURE) {
        call.begin_ns = t->in.begin_ns;
        return idle_thread_leave(t, &call);
    }
    return idle_thread_call(t, &call);
}

int idle_take_call(struct idle *d, struct idle_process *p, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->flags & RECORD_NESTED)
        return 0;
    struct idle_thread *t = idle_thread_of(d, e->thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    const struct idle_entry call = idle_calls_entry_of(s);
    struct idle_entry *last = t->depth ? NULL : idle_thread_last(t);
    unsigned class = e->function->class;
    if (p->first_call_ns > e->begin_ns)
        p->first_call_ns = e->begin_ns;
    if (class == API_LAUNCH || class == API_GRAPH_LAUNCH || class == API_COPY)
        p->call = (struct idle_submit){t, e->begin_ns, e->end_ns, IDLE_NONE, 0};
    /* Most calls repeat what the thread did last. */
    if (last && call.cause != IDLE_CAPTURE && idle_entry_go_on(last, &call))
        return 0;
    return idle_calls_add_call(t, s);
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
int idle_take_overhead(struct idle *d, const struct idle_process *p, const struct slice *s)
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
    return thread != IDLE_NONE && d->way.threads[thread]
               ? idle_thread_part(d->way.threads[thread], &part)
               : 0;
}

/* ---- data loading ---------------------------------------------------------------------------- */

static int idle_calls_load(struct idle *d, const struct thread *thread,
                           const struct kernel_name *name, bool begins, uint64_t begin_ns,
                           uint64_t end_ns)
{
    struct idle_thread *t = idle_thread_of(d, thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    struct idle_entry what = {.begin_ns = begin_ns,
                              .end_ns = end_ns,
                              .since_ns = begin_ns,
                              .place = named(name),
                              .cause = IDLE_LOADER};
    if (!begins)
        return idle_thread_leave(t, &what);
    idle_thread_enter(t, &what);
    return 0;
}

int idle_take_op(struct idle *d, const struct slice *s)
{
    const struct op *op = s->op;
    const struct kernel_name *name;
    int error = 0;
    if (s->op_change == OP_CLOSED && !op->is_moved && (op_works(op) || op_is_label(op)) &&
        d->way.threads[op->thread->index])
        idle_thread_ended(d->way.threads[op->thread->index], place_of_op(op), op->begin_ns,
                          op->end_ns);
    if (s->replaced && op_is_label(s->replaced) &&
        op_kind_of(s->replaced->scope, name = s->replaced->text) == OP_KIND_LOADER)
        error = idle_calls_load(d, s->replaced->thread, name, false, s->replaced->begin_ns,
                                s->event.begin_ns);
    if (error < 0 || s->op_change == OP_SAME || s->op_change == OP_LEFT || !op_is_label(op) ||
        op->is_traced || op_kind_of(op->scope, name = op->text) != OP_KIND_LOADER)
        return error;
    return idle_calls_load(d, op->thread, name, s->op_change == OP_OPENED, op->begin_ns,
                           op->end_ns);
}

int idle_take_range(struct idle *d, const struct slice *s)
{
    const struct range *range = s->range;
    bool opens = s->change == RANGE_OPENED;
    if ((!opens && s->change != RANGE_CLOSED) || !range->nested || !range->text)
        return 0;
    struct key key = {(uintptr_t)range->text, 0, 0};
    uint64_t says = key_map_get(&d->way.loaders, key);
    if (!opens && d->way.threads[range->thread->index])
        idle_thread_ended(d->way.threads[range->thread->index], named(range->text), range->begin_ns,
                          range->end_ns);
    if (!says) {
        says = 1 + idle_says_loading(range->text->shown);
        int error = key_map_set(&d->way.loaders, key, says);
        if (error == GPUPROF_NO_MEMORY)
            return error;
    }
    return says == 1 ? 0
                     : idle_calls_load(d, range->thread, range->text, opens, range->begin_ns,
                                       range->end_ns);
}

int idle_take_silence(struct idle *d, const struct slice *s)
{
    struct idle_thread *t = idle_thread_of(d, s->event.thread);
    if (!t)
        return GPUPROF_NO_MEMORY;
    t->silence =
        (struct idle_silence){.ns = record_arg(s->event.record, SILENCE_NS), .is_pending = true};
    (void)silence_look_of(s->event.record,
                          &t->silence.look); /* if not known, the thread counts as running */
    return thread_times_take(&d->host, s);
}
