/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome trace format (JSON object form) as Perfetto, catapult and Kineto-based tools read it.
 * At equal times the outer call comes first. A trace with GPU work has Kineto's head and fields.
 */
#include <stdlib.h>

#include "api/api_error.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "trace/chrome.h"

#define CALL_KERNELS_MAX 4 /* kernels named in one call; more are shown as handles */
#define CALL_BYTES                                                                                 \
    (6 * FUNCTION_BYTES_MAX + RECORD_ARGS_MAX * 160 +                                              \
     CALL_KERNELS_MAX * (6 * KERNEL_NAME_BYTES_MAX + 2))

_Static_assert(CHROME_EVENT_BYTES + 6 * FUNCTION_BYTES_MAX + CALL_BYTES + CHROME_STACK_BYTES <
                   OUTPUT_BUFFER_BYTES,
               "a call fits into the buffer");

/* ---- what all slices share ------------------------------------------------------------------- */

void chrome_reach(struct trace_writer *w, const struct process *p, uint64_t begin_ns,
                  uint64_t end_ns)
{
    struct process_span *span = chrome_span(w, p);
    span->begin_ns = min_of(span->begin_ns, begin_ns);
    span->end_ns = max_of(span->end_ns, end_ns);
    w->time.last_ns = max_of(w->time.last_ns, end_ns);
}

void chrome_reach_into(struct trace_writer *w, const struct process *p, const struct shown *at)
{
    uint64_t begin_ns = max_of(at->begin_ns, w->time.from_ns);
    uint64_t end_ns = min_of(at->end_ns, w->time.to_ns);
    if (begin_ns <= end_ns)
        chrome_reach(w, p, begin_ns, end_ns);
}

/* Writes what an event begins with, up to its time. */
static inline char *begin_event(struct trace_writer *w, const char *head, const char *where,
                                const struct kernel_name *name, const char *text,
                                const struct row_ids *ids, size_t bytes)
{
    size_t length = name ? 0 : strlen(text);
    bytes += CHROME_EVENT_BYTES + (name ? name->json_bytes : json_escape_bytes_max(length));
    char *out = output_room(w->out, bytes);
    out = mempcpy(out, head, strlen(head));
    out = PUT(mempcpy(out, where, strlen(where)), "\",\"name\":");
    out = name ? mempcpy(out, name->json, name->json_bytes) : json_escape(out, text, length);
    return chrome_put_ids(PUT(out, ",\"pid\":"), ids);
}

char *chrome_begin_slice(struct trace_writer *w, const char *category,
                         const struct kernel_name *name, const char *text, const struct shown *at,
                         size_t bytes)
{
    char *out =
        begin_event(w, ",\n{\"ph\":\"X\",\"cat\":\"", category, name, text, &at->row->ids, bytes);
    out = json_microseconds(out, at->begin_ns);
    out = json_microseconds(PUT(out, ",\"dur\":"), at->end_ns - at->begin_ns);
    return w->arguments = PUT(out, ",\"args\":");
}

char *chrome_begin_instant(struct trace_writer *w, const char *where,
                           const struct kernel_name *name, const char *text,
                           const struct row_ids *ids, uint64_t at_ns, size_t bytes)
{
    char *out = begin_event(w, ",\n{\"ph\":\"i\",\"s\":\"", where, name, text, ids, bytes);
    out = json_microseconds(out, at_ns);
    return w->arguments = PUT(out, ",\"args\":");
}

char *chrome_end_arguments(const struct trace_writer *w, char *out, uint32_t stack)
{
    if (stack)
        out = chrome_put_stack(w, out, "stack", stack, STACK_TEXT_BYTES);
    *w->arguments = '{';
    out += out == w->arguments;
    *out++ = '}';
    return stack ? json_decimal(PUT(out, ",\"sf\":"), w->frames.numbers[stack - 1]) : out;
}

void chrome_end_slice(struct trace_writer *w, char *out, uint32_t stack)
{
    out = chrome_end_arguments(w, out, stack);
    *out++ = '}';
    output_advance(w->out, out);
}

char *chrome_put_result(char *out, const struct function *f, int32_t result)
{
    const char *name = result ? api_error_name(f->domain, result) : NULL;
    if (result)
        out = json_signed(PUT(out, ",\"result\":"), (uint32_t)result);
    return name ? PUT(mempcpy(PUT(out, ",\"error\":\""), name, strlen(name)), "\"") : out;
}

/* ---- stacks -----------------------------------------------------------------------------------
 */

/*
 * An event names a stack frame, which names its parent, and so on. Perfetto does not read
 * stackFrames, so the stack is also an array among the arguments, which viewers show line by
 * line.
 */
#define DEEPER "\"...\"" /* marks frames left out */

uint32_t chrome_stack(struct trace_writer *w, const struct process *p, uint32_t stack,
                      const struct host_span *range)
{
    struct call_tree *t = w->scope.tree;
    struct chrome_frames *f = &w->frames;
    uint32_t found =
        t && stack ? call_tree_stack(t, 0, p->index, stack, range ? range->text : NULL) : 0;
    if (!found)
        return 0;
    /* Numbers it and its parents in the order in which this trace meets them, so that traces of
     * other processes do not change the output. */
    f->numbers = array_reach(f->numbers, &f->room, found - 1, sizeof *f->numbers);
    for (uint32_t n = found; n && !f->numbers[n - 1]; n = call_tree_node(t, n)->parent) {
        ARRAY_PUSH(f->nodes, f->count, &n);
        f->numbers[n - 1] = f->count;
    }
    return found;
}

char *chrome_put_stack(const struct trace_writer *w, char *out, const char *key, uint32_t node,
                       size_t bytes)
{
    const struct call_tree *t = w->scope.tree;
    out = mempcpy(PUT(out, ",\""), key, strlen(key));
    out = PUT(out, "\":[");
    const char *end = out + bytes;
    for (; node; node = call_tree_node(t, node)->parent) {
        const struct shown_frame *frame = call_tree_frame(t, node);
        if (frame->json_bytes + sizeof DEEPER > (size_t)(end - out)) {
            out = PUT(out, DEEPER);
            break;
        }
        out = mempcpy(out, frame->json, frame->json_bytes);
        if (call_tree_node(t, node)->parent)
            *out++ = ',';
    }
    *out++ = ']';
    return out;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Writes handles and values of unknown kind as hexadecimal numbers. */
static inline char *put_arg(char *out, const struct slice *s, unsigned kind, uint64_t value)
{
    const struct kernel_name *name = kind == ARG_KERNEL ? walk_handle(s, value) : NULL;
    bool is_reported = kind == ARG_DIM3 || kind == ARG_KIND || kind == ARG_DEVICE;
    if (name)
        return json_copy(out, name->json, name->json_bytes);
    if (kind == ARG_BYTES || kind == ARG_COUNT)
        return json_number(out, value);
    return argument_json(is_reported ? kind : (unsigned)ARG_HANDLE, value, out);
}

static char *put_flags(char *out, const struct event *e)
{
    const struct record *r = e->record;
    if (r->result && !(r->flags & (RECORD_OPEN | RECORD_STALE)))
        out = chrome_put_result(out, e->function, r->result);
    if (r->correlation)
        out = json_decimal(PUT(out, ",\"correlation\":"), r->correlation);
    if (r->weight > 1)
        out = json_decimal(PUT(out, ",\"weight\":"), r->weight);
    if (r->flags & RECORD_CAPTURED)
        out = PUT(out, ",\"captured\":true");
    if (r->flags & RECORD_NESTED)
        out = PUT(out, ",\"nested\":true");
    if (r->flags & RECORD_STALE)
        out = PUT(out, ",\"stale\":true");
    if (r->flags & RECORD_OPEN)
        out = PUT(out, ",\"open\":true");
    return out;
}

/* Writes the operator that made the call, or else its range, which Kineto's readers treat as an
 * operator. */
static char *put_external_id(char *out, const struct slice *s)
{
    const struct host_span *op = walk_op(s);
    struct host_span *range = op ? NULL : walk_range(s);
    while (range && !range->nested)
        range = spans_around(&s->walk->spans, range);
    if (range)
        range->used = true;
    return json_decimal(PUT(out, ",\"External id\":"), op ? op->number : range ? range->number : 0);
}

static bool launches(const struct function *f)
{
    return f->does == API_DOES_LAUNCH || f->does == API_DOES_GRAPH_LAUNCH;
}

char *chrome_put_key(char *out, const char *label)
{
    const char *shown = strcmp(label, "stream") == 0 ? "cuda_stream" : label;
    return PUT(json_escape(PUT(out, ","), shown, strlen(shown)), ":");
}

static char *put_args(char *out, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct function *f = s->event.function;
    unsigned kernels = 0;
    struct shown_arg a;
    for (unsigned i = 0; i < r->arg_count; i++) {
        if (!function_show(f, r->args, r->arg_count, i, &a) ||
            function_lacks_device(f, a.kind, a.value))
            continue;
        if (a.kind == ARG_KERNEL && ++kernels > CALL_KERNELS_MAX)
            a.kind = ARG_HANDLE;
        out = put_arg(chrome_put_key(out, a.label), s, a.kind, a.value);
    }
    return out;
}

static void chrome_writer_take_call(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    const struct function *f = e->function;
    struct shown at = {.row = chrome_row(w, e->thread->index),
                       .begin_ns = chrome_time(w, e->begin_ns),
                       .end_ns = chrome_time(w, e->end_ns)};
    uint32_t stack =
        w->scope.tree && r->stack_id ? chrome_stack(w, e->process, r->stack_id, walk_range(s)) : 0;
    trace_row_fit(at.row, &at.begin_ns, &at.end_ns);
    char *out =
        chrome_begin_slice(w, api_libraries[f->domain < API_DOMAIN_COUNT ? f->domain : 0].category,
                           NULL, f->name, &at, CALL_BYTES + (stack ? CHROME_STACK_BYTES : 0));
    if (r->correlation && chrome_binds(w, f))
        out = chrome_put_binding(w, out, e->process->index, r->correlation, true);
    out = put_flags(put_args(out, s), e);
    if (w->scope.survey && r->correlation)
        out = put_external_id(out, s);
    out = PUT_SOME(out, "cbid", f->callback);
    if (strcmp(f->symbol, f->name) != 0)
        out = json_escape(PUT(out, ",\"symbol\":"), f->symbol, strlen(f->symbol));
    chrome_end_slice(w, out, stack);
    w->totals.calls++;
    chrome_reach(w, e->process, at.begin_ns, at.end_ns);
    if (launches(f))
        chrome_count_launch(w, e, at.begin_ns);
}

/* ---- memory ----------------------------------------------------------------------------------
 *
 * From the ledger: counters of each device, and instants in torch.profiler's format for PyTorch's
 * allocator, which TensorBoard's memory view needs.
 */

#define NO_THREAD UINT32_MAX

/* Returns the thread index, which a block has as its owner. */
static uint32_t chrome_memory_owner(void *context, const struct slice *s, unsigned kind)
{
    (void)context;
    (void)kind;
    if (s->event.record->type != RECORD_MEMORY)
        return s->event.thread->index;
    return s->is_called ? s->call.thread : NO_THREAD;
}

/* Returns true if instants show the block: if requested, PyTorch's blocks replace the device blocks
 * that contain them. */
static bool is_shown(const struct trace_writer *w, const struct ledger_block *b)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    if (b->device == LEDGER_NO_DEVICE && !b->is_host)
        return false;
    if (!w->scope.options->memory_events)
        return !is_tensor && w->scope.survey;
    return b->is_host || is_tensor == w->walk->survey.has_tensors[b->process->index];
}

static void put_memory(struct trace_writer *w, const struct ledger_block *b, uint64_t ns,
                       uint32_t thread, bool comes, const struct place_totals *now)
{
    bool is_tensor = b->kind == LEDGER_TENSOR;
    uint64_t at_ns = chrome_time(w, ns);
    struct row_ids ids = chrome_has_row(w, thread)
                             ? chrome_row(w, thread)->ids
                             : row_ids_of(b->process->shown_pid, b->process->shown_pid);
    char *out = chrome_begin_instant(w, "t\",\"cat\":\"cpu_instant_event", NULL, "[memory]", &ids,
                                     at_ns, 0);
    out += sprintf(
        out,
        ",\"Device Type\":%d,\"Device Id\":%lld,\"Addr\":%llu,\"Bytes\":%lld,"
        "\"Total Allocated\":%llu,\"Total Reserved\":%llu,\"kind\":\"%s\"",
        !b->is_host, b->is_host ? -1 : (long long)b->device, (unsigned long long)b->address,
        (long long)(comes ? b->bytes : 0 - b->bytes),
        (unsigned long long)(is_tensor ? now->tensors : now->allocated),
        (unsigned long long)(is_tensor ? totals_tensors_reserved(now) : totals_reserved(now)),
        ledger_kind_name(b->kind));
    chrome_end_slice(w, out, 0);
    chrome_reach(w, b->process, at_ns, at_ns);
    w->totals.gpu_events++;
}

/* Returns true if a filtered change still counts: changes before and between selected events affect
 * their totals. */
static bool chrome_memory_is_counted(const struct trace_writer *w, const struct place_totals *now,
                                     uint64_t at_ns)
{
    const struct selection *piece = w->scope.selection;
    return piece && selection_has_all_kinds(piece) && chrome_time(w, at_ns) < w->time.to_ns &&
           number_list_has(&piece->request->devices, now->device);
}

static void chrome_memory_change(void *context, enum ledger_change change, struct ledger_block *b,
                                 uint64_t at_ns)
{
    struct trace_writer *w = context;
    const struct place_totals *now = ledger_totals_of(&w->memory.ledger, b);
    const struct slice *s = w->memory.slice;
    bool comes = change == LEDGER_GOT;
    if (!comes && change != LEDGER_GONE)
        return;
    bool is_filtered = s ? s->is_filtered : w->scope.selection != NULL;
    if (!now || (is_filtered && !chrome_memory_is_counted(w, now, at_ns)))
        return;
    if (!is_filtered && is_shown(w, b))
        put_memory(w, b, at_ns, s && !comes ? chrome_memory_owner(w, s, b->kind) : b->owner, comes,
                   now);
    chrome_count_memory(w, now, at_ns);
}

/* ---- the writer -------------------------------------------------------------------------------
 */

/* Counts a slice that --max-size leaves out as if it were shown, and as left out. */
static void leave_out(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct left_out *l = w->scope.left_out;
    if (!l || l->kind == LEFT_OUT_KINDS)
        return;
    w->totals.left_out[l->kind]++;
    w->totals.left_out_ns[l->kind] += l->ns;
    chrome_reach(w, e->process, chrome_time(w, l->begin_ns), chrome_time(w, l->begin_ns + l->ns));
    if (is_stream_work(e->record->type))
        chrome_count_work(w, s);
    if (l->kind == LEFT_OUT_CALLS && launches(e->function))
        chrome_count_launch(w, e, chrome_time(w, e->begin_ns));
}

static void take_record(struct trace_writer *w, const struct slice *s)
{
    unsigned type = s->event.record->type;
    if (type == RECORD_CALL) {
        chrome_writer_take_call(w, s);
    } else if (is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD) {
        if (w->scope.survey)
            chrome_gpu(w, s);
    } else if (type == RECORD_RESIDENT) {
        chrome_count_resident(w, &s->event);
    } else if (is_host_record(type)) {
        chrome_host(w, s);
    } else if (s->source) {
        if (type == RECORD_DEVICE_CLOCKS)
            chrome_throttle(w, s);
        chrome_count_device(w, s);
    } else {
        chrome_mark(w, s);
    }
}

static void chrome_take(struct trace_writer *w, const struct slice *s)
{
    w->memory.slice = s;
    w->memory.books.take(w->memory.books.context, s);
    w->memory.slice = NULL;
    const struct host_span *span = s->change != SPAN_MARKED ? s->span : NULL;
    bool is_nested = s->change && span;
    if (s->is_filtered && s->change != SPAN_OPENED) { /* it may end where it is shown */
        if (is_nested && (span->nested || span->type != SPAN_RANGE))
            trace_row_forget(chrome_row(w, span->thread->index), chrome_time(w, span->begin_ns));
        leave_out(w, s);
    } else if (is_nested) {
        chrome_nested(w, s);
    } else {
        take_record(w, s);
    }
}

static void chrome_free(struct trace_writer *w)
{
    free(w->shown.rows);
    free(w->shown.spans);
    free(w->frames.numbers);
    free(w->frames.nodes);
    ledger_release(&w->memory.ledger);
    chrome_counters_release(w);
    op_pairs_release(&w->rows.op_pairs);
    free(w->rows.forward_ids);
    free(w->rows.throttled);
    chrome_rows_release(w);
    projections_release(&w->rows.projections);
    free(w);
}

static struct trace_writer *chrome_create(struct output *out, struct walk *walk,
                                          const struct trace_scope *scope)
{
    struct recording *rec = walk->rec;
    const struct process *only = scope->only;
    struct trace_writer *w = memory_new(1, sizeof *w);
    struct chrome_processes *shown = &w->shown;
    *shown = (struct chrome_processes){
        .list = rec->processes + (only ? only->index : 0),
        .count = only ? 1 : rec->count,
        .first_thread = only ? only->first_thread : 0,
        .thread_count = only ? only->thread_count : rec->thread_count,
    };
    w->out = out;
    w->walk = walk;
    w->scope = *scope;
    w->time.origin_ns = walk->survey.origin_ns;
    shown->rows = memory_new(shown->thread_count + 1u, sizeof *shown->rows);
    shown->spans = memory_new(shown->count + 1u, sizeof *shown->spans);
    w->rows.projections =
        (struct projections){.survey = scope->survey, .notify = chrome_projected, .context = w};
    w->time.to_ns = UINT64_MAX;
    if (scope->selection)
        selection_time(scope->selection, &w->time.from_ns, &w->time.to_ns);
    w->memory.books = ledger_consumer(&w->memory.ledger);
    ledger_init(&w->memory.ledger, walk,
                &(struct ledger_user){
                    .context = w, .change = chrome_memory_change, .owner = chrome_memory_owner});
    /* Buckets have 1 us at first. */
    w->counters = (struct chrome_counters){.shift = 10, .from_ns = w->time.from_ns};
    for (uint32_t i = 0; i < shown->count; i++)
        shown->spans[i].begin_ns = UINT64_MAX;
    chrome_head(w);
    return w;
}

static void chrome_end(struct trace_writer *w)
{
    w->memory.books.end(w->memory.books.context);
    chrome_throttle_end(w);
    projections_end(&w->rows.projections);
    chrome_steps_end(w);
    chrome_put_counters(w);
    chrome_tail(w);
}

const struct trace_format chrome_format = {
    .file = {"chrome", "json"},
    .rank_ending = "pt.trace.json", /* the ending that HTA and TensorBoard look for */
    .is_text = true,
    .create = chrome_create,
    .take = chrome_take,
    .end = chrome_end,
    .free = chrome_free,
};
