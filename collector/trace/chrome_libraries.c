/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries as slices of their threads, around the calls of CUDA that they make, with
 * their arguments; and what work was launched in which. One that something crosses which began
 * inside of it stands beside, as ranges do.
 */
#include <string.h>

#include "api/api.h"
#include "base/json_text.h"
#include "error.h"
#include "record/argument_text.h"
#include "trace/chrome.h"

#define ARGS_BYTES (6 * FUNCTION_BYTES_MAX + RECORD_ARGS_MAX * 48)
_Static_assert(CHROME_EVENT_BYTES + 6 * FUNCTION_BYTES_MAX + ARGS_BYTES +
                       6 * KERNEL_NAME_BYTES_MAX + CHROME_STACK_BYTES <
                   OUTPUT_BUFFER_BYTES,
               "a call fits into the buffer");

int chrome_launched_by(struct trace_writer *w, const struct slice *s,
                       const struct kernel_name **text)
{
    int error = 0;
    const struct library_node *node = s->is_called && s->call.library
                                          ? survey_library(w->scope.survey, s->call.library, &error)
                                          : NULL;
    *text = node ? library_kind_text(&w->walk->kinds, node->kind, &error) : NULL;
    return error;
}

static char *put_args(char *out, const struct library_call *call)
{
    const struct function *f = call->function;
    for (unsigned i = 0; i < call->arg_count && i < f->arg_count; i++) {
        const char *label = f->args[i].label;
        /* HTA takes what has args.stream for GPU work. */
        label = strcmp(label, "stream") == 0 ? "cuda_stream" : label;
        *out++ = ',';
        out = json_escape(out, label, strlen(label));
        *out++ = ':';
        out = argument_json(f->args[i].kind, call->args[i], out);
    }
    return out;
}

static char *put_end(char *out, const struct library_call *call, enum library_change change)
{
    if (change == LIBRARY_OPEN)
        return PUT(out, ",\"open\":true");
    if (change == LIBRARY_LEFT)
        return PUT(out, ",\"stale\":true");
    return chrome_put_result(out, call->function, call->result);
}

/* Its begin and end are as they are shown. */
static int put_call(struct trace_writer *w, const struct library_call *call,
                    const struct trace_row *row, enum library_change change)
{
    const struct function *f = call->function;
    char name[6 * FUNCTION_BYTES_MAX + 2];
    uint32_t stack = 0;
    int error = 0;
    const struct kernel_name *text =
        w->walk->is_surveyed ? library_kind_text(&w->walk->kinds, call->kind, &error) : NULL;
    if (error == 0 && w->scope.tree && call->stack)
        error = chrome_stack(w, call->process, call->stack, NULL, &stack);
    if (error < 0)
        return error;
    char *out =
        output_room(w->out, CHROME_EVENT_BYTES + 6 * FUNCTION_BYTES_MAX + ARGS_BYTES +
                                (text ? text->json_bytes : 0) + (stack ? CHROME_STACK_BYTES : 0));
    out = chrome_begin_slice(
        w, out, f->domain < API_DOMAIN_COUNT ? api_libraries[f->domain].category : "library", name,
        (size_t)(json_escape(name, f->name, strlen(f->name)) - name), row, call->begin_ns,
        call->end_ns);
    if (text)
        out = chrome_put(PUT(out, ",\"call\":"), text->json, text->json_bytes);
    chrome_end_slice(w, put_end(put_args(out, call), call, change), stack);
    return 0;
}

/* Nothing that is open on its thread, operator or nested range, began later. */
static bool is_innermost(struct trace_writer *w, const struct library_call *call)
{
    const struct op_stack *ops = ops_stack(&w->walk->ops, call->thread->index);
    const struct range *range = ranges_innermost(&w->walk->ranges, call->thread, true);
    return (!ops->count || ops->open[ops->count - 1].begin_ns <= call->begin_ns) &&
           (!range || range->begin_ns <= call->begin_ns);
}

static int close_call(struct trace_writer *w, const struct library_call *closed,
                      enum library_change change)
{
    struct library_call shown = *closed, *call = &shown;
    const struct trace_row *row =
        chrome_close_nested(w, call->process, chrome_row(w, call->thread->index),
                            is_innermost(w, closed), call->row, &call->begin_ns, &call->end_ns);
    if (!row)
        return GPUPROF_NO_MEMORY;
    return put_call(w, call, row, change);
}

int chrome_library(struct trace_writer *w, const struct slice *s)
{
    struct library_call *call = s->library;
    if (s->library_change != LIBRARY_OPENED)
        return close_call(w, call, s->library_change);
    call->row = chrome_open_nested(w, call->thread, call->begin_ns);
    return 0;
}
