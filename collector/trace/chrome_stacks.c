/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of calls and operators in a Chrome trace: the event names a stack frame, which names its
 * parent, and so on. Perfetto does not read those, so each stack is an array among the arguments,
 * too, of which viewers show an element a line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "error.h"
#include "trace/chrome.h"

#define DEEPER "\"...\"" /* frames that are left out */

/* Numbers the node and those around it, as this trace comes to them: what traces of other processes
 * have made nodes of changes nothing here. */
static int use(struct trace_writer *w, uint32_t node)
{
    const struct call_tree *t = w->scope.tree;
    uint32_t *numbers = array_reach(w->frame_numbers, &w->frame_room, node - 1, sizeof *numbers);
    int error = numbers ? 0 : GPUPROF_NO_MEMORY;
    w->frame_numbers = numbers ? numbers : w->frame_numbers;
    for (; error == 0 && node && !numbers[node - 1]; node = call_tree_node(t, node)->parent) {
        error = ARRAY_PUSH(w->frame_nodes, w->frame_count, &node);
        numbers[node - 1] = w->frame_count;
    }
    return error;
}

int chrome_stack(struct trace_writer *w, const struct process *p, uint32_t stack,
                 const struct range *range, uint32_t *node)
{
    *node = 0;
    if (!w->scope.tree || !stack)
        return 0;
    int error =
        call_tree_stack(w->scope.tree, 0, p->index, stack, range ? range->text : NULL, node);
    return error < 0 || !*node ? error : use(w, *node);
}

char *chrome_put_stack(const struct trace_writer *w, char *out, const char *key, uint32_t node,
                       size_t bytes)
{
    const struct call_tree *t = w->scope.tree;
    out = chrome_put(PUT(out, ",\""), key, strlen(key));
    out = PUT(out, "\":[");
    const char *end = out + bytes;
    for (; node; node = call_tree_node(t, node)->parent) {
        const struct shown_frame *frame = call_tree_frame(t, node);
        if (frame->json_bytes + sizeof DEEPER > (size_t)(end - out)) {
            out = PUT(out, DEEPER);
            break;
        }
        out = chrome_put(out, frame->json, frame->json_bytes);
        if (call_tree_node(t, node)->parent)
            *out++ = ',';
    }
    *out++ = ']';
    return out;
}

static void put_frame(struct trace_writer *w, uint32_t node, const char *separator)
{
    const struct shown_frame *frame = call_tree_frame(w->scope.tree, node);
    const struct kernel_name *category =
        frame->kind == SHOWN_PYTHON || !frame->module ? frame->file : frame->module;
    uint32_t parent = call_tree_node(w->scope.tree, node)->parent;
    output_print(w->out, "%s\n\"%u\":{\"category\":", separator, w->frame_numbers[node - 1]);
    output_write(w->out, category ? category->json : "\"\"", category ? category->json_bytes : 2);
    output_write(w->out, ",\"name\":", 8);
    output_write(w->out, frame->json, frame->json_bytes);
    if (parent)
        output_print(w->out, ",\"parent\":\"%u\"}", w->frame_numbers[parent - 1]);
    else
        output_write(w->out, "}", 1);
}

void chrome_stack_frames(struct trace_writer *w)
{
    const char *separator = ",\n\"stackFrames\":{";
    for (uint32_t i = 0; i < w->frame_count; i++) {
        put_frame(w, w->frame_nodes[i], separator);
        separator = ",";
    }
    if (*separator == ',' && !separator[1])
        output_write(w->out, "}", 1);
}
