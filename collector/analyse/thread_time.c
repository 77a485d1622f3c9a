/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/thread_time.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "resolve/host_facts.h"

#define SPANS_FIRST 64
#define OPEN_MAX    16 /* records open at one time in a thread; more are ignored */
/* A sample shows where a thread was at another time if it is at most this far away. */
#define SAMPLE_NEAR_NS 50000000u
#define PART_LEAST     10 /* 1/PART_LEAST of a sample: smaller parts are not separated */

static const char in_gpuprof[] = "gpuprof itself", in_read[] = "read or write",
                  is_detached[] = "in no sample: its thread blocks their signal",
                  in_swap[] = "read from a file or swap", in_faults[] = "pages touched first";

const char *const did_words[DID_KINDS] = {
    [DID_NONE] = "none",
    [DID_RUNNING] = "running",
    [DID_GC] = "garbage collection",
    [DID_GIL] = "GIL",
    [DID_STOPPED] = "stop of the world",
    [DID_LOCK] = "lock",
    [DID_CONDITION] = "condition",
    [DID_FILE] = "file",
    [DID_PIPE] = "pipe",
    [DID_SOCKET] = "socket",
    [DID_POLL] = "poll",
    [DID_SLEEP] = "sleep",
    [DID_CHILD] = "child process",
    [DID_LOAD] = "loading a library",
    [DID_MEMORY] = "memory",
    [DID_DEVICE] = "device",
    [DID_FAULT] = "page fault",
    [DID_IMPORT] = "import",
    [DID_PREEMPTED] = "preempted",
    [DID_WORKERS] = "busy workers",
    [DID_THROTTLED] = "throttled",
    [DID_WAITED] = "waiting",
    [DID_UNKNOWN] = "unknown",
};

void thread_times_init(struct thread_times *h, struct walk *walk, thread_horizon_fn *horizon,
                       void *context)
{
    const struct recording *rec = walk->rec;
    *h = (struct thread_times){.walk = walk, .horizon = horizon, .context = context};
    h->names.plain = true;
    kernel_names_limit(&h->names, recording_bytes(rec));
    h->threads = memory_new(2 * rec->thread_count + rec->count + 1u, sizeof *h->threads);
    h->silences = h->threads + rec->thread_count;
    h->stops = h->silences + rec->thread_count;
    h->is_known = memory_new(rec->count + 1u, sizeof *h->is_known);
    h->busy_ns = memory_new(rec->count + 1u, sizeof *h->busy_ns);
}

void thread_times_release(struct thread_times *h)
{
    const struct recording *rec = h->threads ? h->walk->rec : NULL;
    for (uint32_t i = 0; rec && i < 2 * rec->thread_count + rec->count; i++)
        free(h->threads[i].spans);
    free(h->threads);
    free(h->is_known);
    free(h->busy_ns);
    kernel_names_release(&h->names);
    *h = (struct thread_times){0};
}

/* Makes room for one more span: drops what nobody will query or, if there are too many, the oldest
 * quarter. */
static void thread_time_make_room(struct thread_times *h, uint32_t process, struct thread_spans *t)
{
    uint64_t horizon_ns = t->count ? h->horizon(h->context, process) : 0;
    uint32_t over = 0, before = t->capacity, more = before ? before : SPANS_FIRST;
    while (over < t->count && t->spans[over].reach_ns <= horizon_ns)
        over++;
    if (over < t->count / 2 || !before) {
        bool has_room = before < THREAD_SPANS_MAX && h->span_count + more <= THREAD_SPANS_ALL;
        if (has_room)
            array_grow(&t->spans, &t->capacity, sizeof *t->spans, SPANS_FIRST);
        h->span_count += t->capacity - before;
        over = has_room || over ? over : (t->count + 3) / 4;
    }
    t->count -= over;
    if (t->count)
        memmove(t->spans, t->spans + over, t->count * sizeof *t->spans);
}

static void thread_time_add(struct thread_times *h, const struct process *p, struct thread_spans *t,
                            const struct thread_span *new)
{
    h->is_known[p->index] = true;
    if (new->did == (DID_RUNNING | DID_SAMPLED) || new->did == DID_FILE)
        h->busy_ns[p->index] += new->ns ? new->ns : new->end_ns - new->begin_ns;
    if (t->count == t->capacity)
        thread_time_make_room(h, p->index, t);
    if (!t->capacity)
        return;
    uint64_t reach_ns = t->count ? t->spans[t->count - 1].reach_ns : 0;
    struct thread_span *s = &t->spans[t->count++];
    *s = *new;
    s->reach_ns = max_of(new->end_ns, reach_ns);
}

/* ---- records --------------------------------------------------------------------------------- */

static enum thread_did kind_of_class(uint64_t class)
{
    static const uint8_t kinds[OS_CLASS_COUNT] = {
        [OS_FILE] = DID_FILE,           [OS_SOCKET] = DID_SOCKET,    [OS_POLL] = DID_POLL,
        [OS_SLEEP] = DID_SLEEP,         [OS_PROCESS] = DID_CHILD,    [OS_LOCK] = DID_LOCK,
        [OS_CONDITION] = DID_CONDITION, [OS_SEMAPHORE] = DID_LOCK, /* Python's locks are semaphores
                                                                    */
        [OS_BARRIER] = DID_CONDITION,   [OS_THREAD] = DID_CONDITION, [OS_MEMORY] = DID_MEMORY,
        [OS_LOAD] = DID_LOAD,           [OS_DEVICE] = DID_DEVICE,    [OS_FUTEX] = DID_LOCK,
    };
    return class < OS_CLASS_COUNT && kinds[class] ? (enum thread_did)kinds[class] : DID_WAITED;
}

/* What a call of class OS_FILE waits for, by the name of its descriptor. */
static enum thread_did kind_of_file(const char *name)
{
    static const char pipe[] = "pipe:";
    return name[0] == '/'                              ? DID_FILE
           : strncmp(name, pipe, sizeof pipe - 1) == 0 ? DID_PIPE
                                                       : DID_SOCKET; /* or an eventfd */
}

/* Adds a sample by another thread. The kernel's counts since the previous sample precede the state
 * at the sample. */
static void take_look(struct thread_times *h, const struct slice *s,
                      const struct host_sample *sample, const struct thread_span *span)
{
    struct thread_spans *t = &h->threads[sample->thread->index];
    struct thread_span delay = *span, fault = *span, rest = *span;
    const char *said = process_meta(s->event.process, "page_fault_ns");
    uint64_t fault_ns = said ? strtoull(said, NULL, 10) : 0;
    delay.did = DID_PREEMPTED | (span->did & (DID_SAMPLED | DID_LOOKED));
    fault.did = DID_FAULT | DID_RAN | (span->did & (DID_SAMPLED | DID_LOOKED));
    delay.word_kind = IDLE_WORD_NONE;
    fault.word_kind = IDLE_WORD_OURS;
    fault.word = (uintptr_t)in_faults;
    delay.ns = min_of(sample->delay_ns, span->ns);
    fault.ns = min_of(sample->ran_ns, span->ns - delay.ns);
    if (!fault_ns || sample->faults < fault.ns / fault_ns)
        fault.ns = sample->faults * fault_ns;
    delay.ns = delay.ns < span->ns / PART_LEAST ? 0 : delay.ns;
    fault.ns = fault.ns < sample->ran_ns / PART_LEAST ? 0 : fault.ns;
    rest.ns -= delay.ns + fault.ns;
    const struct thread_span *parts[] = {&delay, &fault, &rest};
    for (unsigned i = 0; i < 3; i++)
        if (parts[i]->ns)
            thread_time_add(h, s->event.process, t, parts[i]);
}

static void thread_time_take_sample(struct thread_times *h, const struct slice *s)
{
    struct host_sample sample;
    if (!host_sample(s, &sample) || !sample.thread || !sample.ns)
        return;
    struct thread_span span = {.begin_ns = sample.at_ns,
                               .end_ns = sample.at_ns,
                               .ns = sample.ns,
                               .stack = sample.stack,
                               .did = DID_RUNNING};
    if (sample.in_gpuprof || sample.is_silent) {
        span.word_kind = IDLE_WORD_OURS;
        span.word = (uintptr_t)(sample.is_silent ? is_detached : in_gpuprof);
    }
    if (!sample.is_cpu && sample.holder) {
        span.did = DID_GIL;
        span.word_kind = IDLE_WORD_HOLDER;
        span.word = sample.holder;
        span.stack = sample.holder_stack;
    } else if (!sample.is_cpu && sample.state != 'R') {
        const struct system_call *call = system_call_of(sample.syscall);
        span.did = call                                        ? kind_of_class(call->class)
                   : sample.syscall < 0 && sample.state == 'D' ? DID_FAULT
                                                               : DID_WAITED;
        if (call && !call->class) {
            span.word_kind = IDLE_WORD_OURS;
            span.word = (uintptr_t)in_read;
        } else if (span.did == DID_FAULT && sample.major_faults) {
            span.word_kind = IDLE_WORD_OURS;
            span.word = (uintptr_t)in_swap;
        }
    }
    span.did |= sample.is_cpu ? DID_SAMPLED : DID_LOOKED;
    take_look(h, s, &sample, &span);
}

/* Adds a silence, unless the process has no other records: then nobody will query. */
static void take_silence(struct thread_times *h, const struct event *e)
{
    uint64_t ns = record_arg(e->record, SILENCE_NS);
    struct thread_span span = {.begin_ns = e->begin_ns - min_of(ns, e->begin_ns),
                               .end_ns = e->begin_ns};
    bool is_asked =
        thread_times_has(h, e->process->index) && silence_look_of(e->record, &span.look);
    if (is_asked)
        thread_time_add(h, e->process, &h->silences[e->thread->index], &span);
}

static void name_call(struct thread_times *h, const struct event *e, struct thread_span *span)
{
    const struct record *r = e->record;
    char text[OS_TEXT_BYTES];
    const char *name = r->byte_count ? (const char *)r->bytes : host_os_name(e, text);
    const struct kernel_name *word =
        kernel_name_intern(&h->names, name, r->byte_count ? r->byte_count : strlen(name));
    span->did = kind_of_class(host_os_class(e));
    if (!word)
        return;
    if (span->did == DID_FILE && r->byte_count)
        span->did = kind_of_file(word->shown);
    span->word_kind = IDLE_WORD_NAME;
    span->word = (uintptr_t)word;
}

void thread_times_take(struct thread_times *h, const struct slice *s)
{
    static const char *const generations[] = {"generation 0", "generation 1", "generation 2"};
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct thread_span span = {.begin_ns = e->begin_ns, .end_ns = e->end_ns, .stack = r->stack_id};
    switch (r->type) {
    case RECORD_SAMPLE: thread_time_take_sample(h, s); return;
    case RECORD_SILENCE: take_silence(h, e); return;
    case RECORD_HOST_COUNTERS:
        span = (struct thread_span){.did = DID_THROTTLED};
        if (host_stop(s, &span.begin_ns, &span.end_ns, &span.ns))
            thread_time_add(h, e->process, &h->stops[e->process->index], &span);
        return;
    case RECORD_OS_CALL: name_call(h, e, &span); break;
    case RECORD_GIL:
        if (r->code != GIL_WAITED && r->code != GIL_STOPPED)
            return;
        span.did = DID_STOPPED;
        if (r->code == GIL_STOPPED)
            break;
        span.did = DID_GIL;
        span.stack = 0; /* the holder's counts */
        span.word_kind = IDLE_WORD_HOLDER;
        span.word = record_arg(r, GIL_OTHER);
        break;
    case RECORD_GC:
        span.did = DID_GC;
        span.word_kind = IDLE_WORD_OURS;
        span.word = (uintptr_t)(r->code < 3 ? generations[r->code] : "all generations");
        break;
    default: return;
    }
    thread_time_add(h, e->process, &h->threads[e->thread->index], &span);
}

/* ---- what a thread did ----------------------------------------------------------------------- */

/* The stack of a thread at that time: of its longest sample then, else of the nearest one; 0 if
 * there is none. */
static uint32_t stack_at(const struct thread_spans *t, const struct thread_span *time)
{
    uint64_t most_ns = 0, near_ns = SAMPLE_NEAR_NS;
    uint32_t stack = 0;
    for (uint32_t i = t->count; i; i--) {
        const struct thread_span *s = &t->spans[i - 1];
        uint64_t apart_ns = s->begin_ns < time->begin_ns ? time->begin_ns - s->begin_ns
                            : s->begin_ns > time->end_ns ? s->begin_ns - time->end_ns
                                                         : 0;
        if (s->begin_ns + SAMPLE_NEAR_NS < time->begin_ns)
            break;
        if (!s->ns || (s->did & 0xff) != DID_RUNNING || !s->stack || apart_ns > near_ns ||
            (apart_ns == near_ns && s->ns <= most_ns))
            continue;
        stack = s->stack;
        most_ns = s->ns;
        near_ns = apart_ns;
    }
    return stack;
}

/* The stack of a span: for a wait for the GIL the holder's; for a collection, which has none, a
 * sample's. */
static uint32_t thread_time_stack_of(const struct thread_times *h, uint32_t process,
                                     const struct thread_spans *own, const struct thread_span *s)
{
    struct thread_table *all = &h->walk->rec->processes[process]->threads;
    const struct thread *holder = s->did == DID_GIL && s->word ? thread_of_tid(all, s->word) : NULL;
    if (s->stack || (s->did != DID_GIL && s->did != DID_GC))
        return s->stack;
    return s->did == DID_GC ? stack_at(own, s)
           : holder         ? stack_at(&h->threads[holder->index], s)
                            : 0;
}

/* The progress through the time. */
struct way {
    const struct thread_times *h;
    const struct thread_spans *spans;
    uint32_t process;
    uint64_t at_ns;
    uint64_t reported_ns;
    thread_piece_fn *notify;
    void *context;
    const struct thread_span *open[OPEN_MAX];
    unsigned count;
};

static void thread_time_report(struct way *w, const struct thread_span *s, uint64_t end_ns)
{
    struct thread_piece piece = {
        .did = s->did,
        .place = {.word = s->word,
                  .stack = thread_time_stack_of(w->h, w->process, w->spans, s),
                  .function = IDLE_NONE,
                  .kind = s->word_kind},
        .at_ns = w->at_ns,
        .ns = s->ns ? s->ns : end_ns - w->at_ns,
    };
    w->reported_ns += s->ns ? 0 : piece.ns;
    w->notify(w->context, &piece);
}

static unsigned priority(const struct thread_span *s)
{
    return s->did == DID_GC ? 2 : s->did == DID_GIL;
}

/* Reports the open span with the highest priority; among equal ones the last to begin. */
static void go_on(struct way *w, uint64_t to_ns)
{
    while (w->count && w->at_ns < to_ns) {
        const struct thread_span *best = w->open[0];
        uint64_t end_ns = to_ns;
        for (unsigned i = 0; i < w->count; i++) {
            best = priority(w->open[i]) >= priority(best) ? w->open[i] : best;
            end_ns = min_of(w->open[i]->end_ns, end_ns);
        }
        if (end_ns > w->at_ns)
            thread_time_report(w, best, end_ns);
        w->at_ns = max_of(end_ns, w->at_ns);
        unsigned kept = 0;
        for (unsigned i = 0; i < w->count; i++)
            if (w->open[i]->end_ns > w->at_ns)
                w->open[kept++] = w->open[i];
        w->count = kept;
    }
    w->at_ns = max_of(to_ns, w->at_ns);
}

/* The index of the first span after all that ended by then. */
static uint32_t first_after(const struct thread_spans *t, uint64_t at_ns)
{
    uint32_t i = t->count;
    while (i && t->spans[i - 1].reach_ns > at_ns)
        i--;
    return i;
}

/* Reports stops; those partly inside the time count in proportion. */
static void report_stops(const struct thread_spans *stops, uint64_t begin_ns, uint64_t end_ns,
                         thread_piece_fn *reported, void *context)
{
    for (uint32_t i = first_after(stops, begin_ns); i < stops->count; i++) {
        const struct thread_span *s = &stops->spans[i];
        uint64_t ns = overlap_ns(s->begin_ns, s->end_ns, begin_ns, end_ns);
        double part = ns ? (double)ns / (double)(s->end_ns - s->begin_ns) : 0;
        struct thread_piece piece = {.did = DID_THROTTLED,
                                     .place = {.function = IDLE_NONE},
                                     .at_ns = max_of(s->begin_ns, begin_ns),
                                     .ns = (uint64_t)(part * (double)s->ns)};
        reported(context, &piece);
    }
}

void thread_times_split(const struct thread_times *h, uint32_t process, uint32_t thread,
                        uint64_t begin_ns, uint64_t end_ns, thread_piece_fn *reported,
                        void *context)
{
    const struct thread_spans *t = &h->threads[thread];
    struct way w = {.h = h,
                    .spans = t,
                    .process = process,
                    .at_ns = begin_ns,
                    .notify = reported,
                    .context = context};
    for (uint32_t i = first_after(t, begin_ns); i < t->count; i++) {
        const struct thread_span *s = &t->spans[i];
        if (s->begin_ns >= end_ns && (!s->ns || s->begin_ns > end_ns))
            break;
        if (s->end_ns <= begin_ns)
            continue;
        go_on(&w, s->begin_ns);
        if (s->ns && !w.count)
            thread_time_report(&w, s, 0);
        else if (!s->ns && w.count < OPEN_MAX)
            w.open[w.count++] = s;
    }
    go_on(&w, end_ns);
    assert(w.reported_ns <= end_ns - begin_ns);
    report_stops(&h->stops[process], begin_ns, end_ns, reported, context);
}

void thread_times_silences(const struct thread_times *h, uint32_t thread, uint64_t begin_ns,
                           uint64_t end_ns, struct thread_shares *shares)
{
    const struct thread_spans *t = &h->silences[thread];
    for (uint32_t i = first_after(t, begin_ns); i < t->count; i++) {
        const struct thread_span *s = &t->spans[i];
        double ns = (double)overlap_ns(s->begin_ns, s->end_ns, begin_ns, end_ns);
        uint64_t waited_ns = (uint64_t)(ns * s->look.waiting / SILENCE_ALL);
        uint64_t preempted_ns = (uint64_t)(ns * s->look.preempted / SILENCE_ALL);
        uint64_t off_ns = (uint64_t)(ns * s->look.unknown / SILENCE_ALL);
        shares->waited_ns += waited_ns;
        shares->preempted_ns += preempted_ns;
        shares->off_ns += off_ns;
        shares->ran_ns += (uint64_t)ns - waited_ns - preempted_ns - off_ns;
        begin_ns = max_of(begin_ns, min_of(s->end_ns, end_ns));
    }
}
