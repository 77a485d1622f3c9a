/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome trace format, JSON object form, as Perfetto, catapult and the Kineto-based tools read
 * it. Calls are put together from pieces of text made once per function and once per thread. Order
 * at an equal time: the outer call first. With GPU work in it, it has Kineto's head and fields.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/json_text.h"
#include "error.h"
#include "record/argument_text.h"
#include "record/gpu_record.h"
#include "trace/chrome.h"

#define CALL_FIXED_BYTES 768 /* of a call without its arguments */
#define ARG_FIXED_BYTES  160 /* of an argument without its label and kernel name */
#define CALL_KERNELS_MAX 4   /* kernels named in one call; more are shown as handles */
_Static_assert(CALL_FIXED_BYTES + 6 * 2 * FUNCTION_BYTES_MAX + RECORD_ARGS_MAX * ARG_FIXED_BYTES +
                       CALL_KERNELS_MAX * (6 * KERNEL_NAME_BYTES_MAX + 2) + CHROME_STACK_BYTES <
                   OUTPUT_BUFFER_BYTES,
               "a call fits into the buffer");

/* Text that is copied 16 bytes at a time: its memory reaches to a multiple of that. */
struct piece {
    char *text; /* owned */
    uint32_t length;
};

struct function_pieces {
    struct piece head;                    /* up to the pid */
    struct piece labels[RECORD_ARGS_MAX]; /* ,"label": */
    struct piece tail;                    /* "cbid" and "symbol", each where there is one */
    uint8_t kinds[RECORD_ARGS_MAX];       /* enum arg_kind of each argument, described or not */
    bool launches;                        /* work of a device */
    uint32_t bytes_max;                   /* of a call, written out */
};

static void pieces_free(struct function_pieces *f)
{
    if (!f)
        return;
    free(f->head.text);
    free(f->tail.text);
    for (unsigned i = 0; i < RECORD_ARGS_MAX; i++)
        free(f->labels[i].text);
    free(f);
}

static void chrome_free(struct trace_writer *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; i < w->function_count; i++)
        pieces_free(w->functions[i]);
    free(w->functions);
    free(w->rows);
    free(w->spans);
    free(w->frame_numbers);
    free(w->frame_nodes);
    chrome_memory_free(w->memory);
    chrome_counters_release(w);
    op_pairs_release(&w->op_pairs);
    free(w->forward_ids);
    free(w->throttled);
    gpu_rows_release(&w->gpu_rows);
    device_pids_release(&w->own_pids);
    projections_release(&w->projections);
    key_map_release(&w->named_devices);
    free(w);
}

static struct trace_writer *chrome_create(struct output *out, struct walk *walk,
                                          const struct trace_scope *scope)
{
    struct recording *rec = walk->rec;
    struct trace_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->walk = walk;
    w->rec = rec;
    w->scope = *scope;
    const struct process *only = scope->only;
    w->processes = rec->processes + (only ? only->index : 0);
    w->process_count = only ? 1 : rec->count;
    w->first_thread = only ? only->first_thread : 0;
    w->thread_count = only ? only->thread_count : rec->thread_count;
    w->rows = calloc(w->thread_count + 1u, sizeof *w->rows);
    w->spans = calloc(w->process_count + 1u, sizeof *w->spans);
    projections_init(&w->projections, scope->survey, chrome_projected, w);
    if (scope->selection)
        w->is_of_time =
            selection_time(scope->selection, &w->from_ns, &w->to_ns) && w->to_ns > w->from_ns;
    counters_init(&w->counters, w->from_ns);
    device_pids_init(&w->own_pids, w->processes, w->process_count);
    gpu_rows_init(&w->gpu_rows, scope->pids ? scope->pids : &w->own_pids);
    if (!w->rows || !w->spans || chrome_memory_create(w) < 0) {
        chrome_free(w);
        return NULL;
    }
    for (uint32_t i = 0; i < w->process_count; i++)
        w->spans[i].begin_ns = UINT64_MAX;
    return w;
}

static int chrome_begin(struct trace_writer *w, uint64_t origin_ns)
{
    w->origin_ns = origin_ns;
    return chrome_head(w);
}

/* before + text as a JSON string + behind; false: no memory. */
static bool piece_make(struct piece *p, const char *before, const char *text, const char *behind)
{
    size_t before_bytes = strlen(before);
    size_t behind_bytes = strlen(behind);
    size_t text_bytes = strlen(text);
    char *out =
        malloc(before_bytes + json_escape_bytes_max(text_bytes) + behind_bytes + JSON_COPY_BYTES);
    p->text = out;
    if (!out)
        return false;
    memcpy(out, before, before_bytes);
    out = json_escape(out + before_bytes, text, text_bytes);
    memcpy(out, behind, behind_bytes);
    p->length = (uint32_t)((size_t)(out - p->text) + behind_bytes);
    return true;
}

static struct function_pieces *pieces_make(const struct function *f)
{
    struct function_pieces *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    const char *category = api_libraries[f->domain < API_DOMAIN_COUNT ? f->domain : 0].category;
    char before[64];
    snprintf(before, sizeof before, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
    bool ok = piece_make(&made->head, before, f->name, ",\"pid\":");
    int length = f->callback ? snprintf(before, sizeof before, ",\"cbid\":%u", f->callback) : 0;
    snprintf(before + length, sizeof before - (size_t)length, ",\"symbol\":");
    if (ok && strcmp(f->symbol, f->name) != 0)
        ok = piece_make(&made->tail, before, f->symbol, "");
    else if (ok && length) {
        ok = piece_make(&made->tail, before, "", "");
        made->tail.length = (uint32_t)length;
    }
    made->launches = f->does == API_DOES_LAUNCH || f->does == API_DOES_GRAPH_LAUNCH;
    made->bytes_max = CALL_FIXED_BYTES + made->head.length + made->tail.length;
    unsigned kernels = 0;
    for (unsigned i = 0; ok && i < RECORD_ARGS_MAX; i++) {
        char number[16];
        bool known = i < f->arg_count;
        snprintf(number, sizeof number, "arg%u", i);
        const char *label = known ? f->args[i].label : number;
        /* HTA takes a runtime call with args.stream for GPU work. */
        if (strcmp(label, "stream") == 0)
            label = "cuda_stream";
        made->kinds[i] = known ? f->args[i].kind : ARG_HANDLE;
        if (made->kinds[i] == ARG_KERNEL && ++kernels > CALL_KERNELS_MAX)
            made->kinds[i] = ARG_HANDLE;
        ok = piece_make(&made->labels[i], ",", label, ":");
        made->bytes_max += ARG_FIXED_BYTES + made->labels[i].length;
        if (made->kinds[i] == ARG_KERNEL)
            made->bytes_max += (uint32_t)json_escape_bytes_max(KERNEL_NAME_BYTES_MAX);
    }
    if (!ok) {
        pieces_free(made);
        return NULL;
    }
    return made;
}

static struct function_pieces *pieces_of(struct trace_writer *w, const struct function *f)
{
    struct function_pieces **functions =
        array_reach(w->functions, &w->function_count, f->index, sizeof(struct function_pieces *));
    if (!functions)
        return NULL;
    w->functions = functions;
    if (!w->functions[f->index])
        w->functions[f->index] = pieces_make(f);
    return w->functions[f->index];
}

static char *put_kernel(struct trace_writer *w, char *out, const struct slice *s, uint64_t handle)
{
    const struct kernel_name *name = walk_handle(s, handle);
    return name ? json_copy(out, name->json, name->json_bytes)
                : chrome_put_value(w, out, ARG_HANDLE, handle);
}

static inline char *put_arg(struct trace_writer *w, char *out, const struct slice *s, unsigned kind,
                            uint64_t value)
{
    switch (kind) {
    case ARG_KERNEL: return put_kernel(w, out, s, value);
    case ARG_DIM3: return chrome_put_value(w, out, kind, value);
    case ARG_KIND:
    case ARG_ADDRESS:
    case ARG_DEVICE: return argument_json(kind, value, out);
    case ARG_BYTES:
    case ARG_COUNT: return json_number(out, value);
    default: return chrome_put_value(w, out, ARG_HANDLE, value);
    }
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

/* The operator that made the call, or else the range that it is in, which Kineto's readers take for
 * one. */
static char *put_external_id(char *out, const struct slice *s)
{
    const struct op *op = walk_op(s);
    struct range *range = op ? NULL : walk_range(s, true);
    if (range)
        range->used = true;
    return json_decimal(PUT(out, ",\"External id\":"), op      ? op->number
                                                       : range ? range->sequence
                                                               : 0);
}

static int take_call(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct function_pieces *pieces = pieces_of(w, e->function);
    struct trace_row *row = chrome_row(w, e->thread->index);
    if (!pieces)
        return GPUPROF_NO_MEMORY;
    uint64_t begin_ns = chrome_time(w, e->begin_ns);
    uint64_t end_ns = chrome_time(w, e->end_ns);
    uint32_t stack = 0;
    int error = w->scope.tree && e->record->stack_id
                    ? chrome_stack(w, e->process, e->record->stack_id, walk_range(s, false), &stack)
                    : 0;
    if (error < 0)
        return error;
    trace_row_fit(row, &begin_ns, &end_ns);
    char *out = output_room(w->out, pieces->bytes_max + (stack ? CHROME_STACK_BYTES : 0));
    out = json_copy(out, pieces->head.text, pieces->head.length);
    out = chrome_put_ids(out, row);
    out = json_microseconds(out, begin_ns);
    out = PUT(out, ",\"dur\":");
    out = json_microseconds(out, end_ns - begin_ns);
    if (e->record->correlation && chrome_binds(w, e->function))
        out = chrome_put_binding(out, e->process->index, e->record->correlation, true);
    w->arguments = out = PUT(out, ",\"args\":");
    for (unsigned i = 0; i < e->record->arg_count; i++) {
        unsigned kind = pieces->kinds[i];
        uint64_t value;
        if (!function_value(e->record->args, e->record->arg_count, i, &kind, &value) ||
            function_lacks_device(e->function, kind, value))
            continue;
        out = json_copy(out, pieces->labels[i].text, pieces->labels[i].length);
        out = put_arg(w, out, s, kind, value);
    }
    out = put_flags(out, e);
    if (w->scope.survey && e->record->correlation)
        out = put_external_id(out, s);
    out = json_copy(out, pieces->tail.text, pieces->tail.length);
    chrome_end_slice(w, out, stack);
    w->calls++;
    chrome_reach(w, e->process, begin_ns, end_ns);
    return pieces->launches ? chrome_count_launch(w, e, begin_ns) : 0;
}

/* What has begun there may end where it is shown. */
static bool is_hidden(struct trace_writer *w, const struct slice *s)
{
    if (!w->scope.is_hidden || !*w->scope.is_hidden || s->change == RANGE_OPENED ||
        s->op_change == OP_OPENED || s->library_change == LIBRARY_OPENED)
        return false;
    if (s->change != RANGE_NONE || s->op_change != OP_SAME || s->library_change != LIBRARY_SAME)
        trace_row_forget(chrome_row(w, s->event.thread->index));
    return true;
}

/* It is in the sums and counters of the whole. */
static int leave_out(struct trace_writer *w, const struct slice *s)
{
    uint64_t ns;
    enum left_out kind;
    if (!w->scope.left_out || *w->scope.left_out == LEFT_OUT_KINDS ||
        !thinning_leaves_out(w->scope.thinning, s, &kind, &ns))
        return 0;
    int error = chrome_count_left_out(w, s, kind, ns);
    if (error < 0 || kind != LEFT_OUT_CALLS)
        return error;
    const struct function_pieces *pieces = pieces_of(w, s->event.function);
    if (!pieces)
        return GPUPROF_NO_MEMORY;
    return pieces->launches ? chrome_count_launch(w, &s->event, chrome_time(w, s->event.begin_ns))
                            : 0;
}

static int take_sample(struct trace_writer *w, const struct slice *s)
{
    int error = s->event.record->type == RECORD_DEVICE_CLOCKS ? chrome_throttle(w, s) : 0;
    return error < 0 ? error : chrome_count_device(w, s);
}

static int chrome_take(struct trace_writer *w, const struct slice *s)
{
    int error = chrome_memory_take(w, s);
    if (error < 0)
        return error;
    if (is_hidden(w, s))
        return leave_out(w, s);
    if (s->op_change != OP_SAME)
        return chrome_op(w, s);
    if (s->library_change != LIBRARY_SAME)
        return chrome_library(w, s);
    switch (s->event.record->type) {
    case RECORD_CALL: return take_call(w, s);
    case RECORD_KERNEL:
    case RECORD_COPY:
    case RECORD_SET:
    case RECORD_GRAPH:
    case RECORD_SYNC:
    case RECORD_OVERHEAD: return w->scope.survey ? chrome_gpu(w, s) : 0;
    case RECORD_RESIDENT: return chrome_count_resident(w, &s->event);
    default:
        return is_host_record(s->event.record->type) ? chrome_host(w, s)
               : s->source                           ? take_sample(w, s)
                                                     : chrome_range(w, s);
    }
}

static int chrome_end(struct trace_writer *w)
{
    int error = chrome_memory_end(w);
    if (error == 0)
        error = chrome_throttle_end(w);
    if (error == 0)
        error = chrome_ranges_end(w);
    chrome_put_counters(w);
    return error < 0 ? error : chrome_tail(w);
}

const struct trace_format chrome_format = {
    .file = {"chrome", "json"},
    .rank_ending = "pt.trace.json", /* as HTA and TensorBoard look for */
    .for_perfetto = true,
    .is_text = true,
    .needs = WALK_RANGES | WALK_OPS | WALK_LIBRARIES | WALK_WORK | WALK_LOSSES,
    .create = chrome_create,
    .begin = chrome_begin,
    .take = chrome_take,
    .end = chrome_end,
    .free = chrome_free,
};
