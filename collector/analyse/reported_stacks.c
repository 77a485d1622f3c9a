/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/reported_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "error.h"
#include "symbol/shown_frame.h"

static bool is_python(const struct call_tree *tree, uint32_t node)
{
    for (; node; node = call_tree_node(tree, node)->parent) {
        unsigned kind = call_tree_frame(tree, node)->kind;
        if (kind == SHOWN_NATIVE || kind == SHOWN_INLINED || kind == SHOWN_ADDRESS)
            return false;
    }
    return true;
}

static char *own_line_text(const struct call_tree *tree, uint32_t node)
{
    uint32_t own = 0;
    for (uint32_t n = node; n; n = call_tree_node(tree, n)->parent) {
        const struct shown_frame *f = call_tree_frame(tree, n);
        bool is_own = own_frame(f), has_line = is_own && f->file && f->line;
        own = has_line || (is_own && !own) ? n : own;
        if (has_line) /* as in place_lines.c */
            break;
    }
    return strdup(call_tree_frame(tree, own ? own : node)->label);
}

char *stack_text(const struct call_tree *tree, uint32_t node, bool is_json)
{
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    if (!memory)
        return NULL;
    fputs(is_json ? "[" : "", memory);
    for (unsigned i = 0; node; node = call_tree_node(tree, node)->parent, i++) {
        const struct shown_frame *f = call_tree_frame(tree, node);
        fputs(!i ? "" : is_json ? ", " : "\n", memory);
        if (!is_json && i > STACK_FRAMES_SHOWN_MAX) {
            fputs("...", memory);
            break;
        }
        fputs(is_json ? f->json : f->label, memory);
    }
    fputs(is_json ? "]" : "", memory);
    return new_text_end(&text, memory);
}

int reported_stacks_find(struct survey *survey, const char *symbol_folder,
                         struct reported_stack *const *list, uint32_t count)
{
    const struct stack_table *t = &survey->stacks;
    const struct recorded_stack *stack;
    struct call_tree tree = {0};
    bool *wanted = calloc(t->frame_count + 1u, sizeof *wanted);
    if (!wanted)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        stack = stack_table_stack(t, list[i]->process->index, list[i]->stack);
        for (uint32_t n = stack ? stack->frame : 0; n; n = t->frames[n - 1].parent)
            wanted[n - 1] = true;
    }
    int error = call_tree_init(&tree, survey, wanted, symbol_folder);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        struct reported_stack *s = list[i];
        uint32_t node = 0;
        error = call_tree_stack(&tree, 0, s->process->index, s->stack, NULL, &node);
        if (!node)
            continue;
        s->is_python = is_python(&tree, node);
        s->line = own_line_text(&tree, node);
        s->lines = stack_text(&tree, node, false);
        s->json = stack_text(&tree, node, true);
    }
    call_tree_release(&tree);
    free(wanted);
    return error;
}

void reported_stack_release(struct reported_stack *s)
{
    free(s->line);
    free(s->lines);
    free(s->json);
}

char *reported_stack_below(const struct reported_stack *s, char *title)
{
    char *line = title ? json_line(title) : NULL;
    char *all = line && s->lines ? text_printf("%s\n%s", line, s->lines) : line;
    if (all != line)
        free(line);
    free(title);
    return all;
}
