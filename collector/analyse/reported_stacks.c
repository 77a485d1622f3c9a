/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/reported_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "symbol/shown_frame.h"

void reported_stacks_init(struct reported_stacks *t, struct recording *rec,
                          const struct stack_table *all)
{
    *t = (struct reported_stacks){.few.rec = rec};
    stack_table_init(&t->few.stacks, recording_bytes(rec));
    t->few.stacks.frames_max = all->frames_max;
}

void reported_stacks_release(struct reported_stacks *t)
{
    if (t->has_tree)
        call_tree_release(&t->tree);
    if (t->few.rec)
        stack_table_release(&t->few.stacks);
}

int reported_stacks_add(struct reported_stacks *t, const struct stack_table *all,
                        const struct reported_stack *s)
{
    return s->stack ? stack_table_pick(&t->few.stacks, all, s->process->index, s->stack, NULL) : 0;
}

int reported_stacks_finish(struct reported_stacks *t, const char *symbol_folder)
{
    if (!t->few.stacks.stack_count)
        return 0;
    t->has_tree = true;
    return call_tree_init(&t->tree, &t->few, symbol_folder);
}

void reported_stacks_find(struct reported_stacks *t, struct reported_stack *s)
{
    uint32_t node = 0;
    if (t->has_tree && s->stack &&
        call_tree_stack(&t->tree, 0, s->process->index, s->stack, NULL, &node) == 0)
        s->node = node;
    s->line = reported_stack_line(t, s->node);
}

bool reported_stack_is_python(const struct reported_stacks *t, uint32_t node)
{
    bool is_python = node != 0;
    for (; node; node = call_tree_node(&t->tree, node)->parent) {
        unsigned kind = call_tree_frame(&t->tree, node)->kind;
        is_python &= kind != SHOWN_NATIVE && kind != SHOWN_INLINED && kind != SHOWN_ADDRESS;
    }
    return is_python;
}

char *reported_stack_line(const struct reported_stacks *t, uint32_t node)
{
    uint32_t own = 0;
    if (!node)
        return NULL;
    for (uint32_t n = node; n; n = call_tree_node(&t->tree, n)->parent) {
        const struct shown_frame *f = call_tree_frame(&t->tree, n);
        bool is_own = own_frame(f), has_line = is_own && f->file && f->line;
        own = has_line || (is_own && !own) ? n : own;
        if (has_line) /* as in place_lines.c */
            break;
    }
    return strdup(call_tree_frame(&t->tree, own ? own : node)->label);
}

char *reported_stack_text(const struct reported_stacks *t, uint32_t node, bool is_json)
{
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    if (!memory)
        return NULL;
    fputs(is_json ? "[" : "", memory);
    for (bool is_first = true; node; is_first = false) {
        const struct shown_frame *f = call_tree_frame(&t->tree, node);
        if (is_json)
            fprintf(memory, "%s%s", is_first ? "" : ", ", f->json);
        else
            fprintf(memory, "\n%s", f->label);
        node = call_tree_node(&t->tree, node)->parent;
    }
    fputs(is_json ? "]" : "", memory);
    return new_text_end(&text, memory);
}

char *reported_stack_below(const struct reported_stacks *t, uint32_t node, char *title)
{
    char *line = title ? json_line(title) : NULL, *stack = reported_stack_text(t, node, false);
    char *all = line ? text_printf("%s%s", line, stack ? stack : "") : NULL;
    free(stack);
    free(line);
    free(title);
    return all;
}
