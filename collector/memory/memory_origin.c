/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of blocks: found at the allocation, named at the end. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "memory/memory_report.h"
#include "resolve/call_tree.h"
#include "symbol/shown_frame.h"

#define FRAMES_SHOWN_MAX 24 /* frames of a stack */

static const struct number_kind origin_kind = NUMBER_KEY(struct memory_origin, kind);

/* The number of the owner; beyond the maximum 0, everything else. */
static uint32_t memory_origin_number_of(struct memory_report *m, const struct memory_origin *wanted)
{
    uint32_t found = NUMBER_ADD(&m->origins.numbers, &origin_kind, m->origins.list,
                                m->origins.count, m->owners.most, wanted);
    return found ? found - 1 : 0;
}

/* The innermost line of the user's own, else the innermost line. */
static const struct stack_place *line_of(const struct memory_report *m, const struct process *p,
                                         uint32_t number)
{
    const struct stack_table *table = &m->walk.survey.stacks;
    const struct recorded_stack *stack = stack_table_stack(table, p->index, number);
    const struct stack_place *line = NULL;
    for (uint32_t n = stack ? stack->frame : 0; n; n = table->frames[n - 1].parent) {
        uint64_t word = table->frames[n - 1].word;
        const struct stack_place *place =
            frame_kind(word) == FRAME_PYTHON
                ? stack_table_place(table, p->index, frame_python(word))
                : NULL;
        if (place && place->file && own_python_file(place->file->raw))
            return place;
        line = line ? line : place;
    }
    return line;
}

/* The number of the owner by line + 1, found once for each stack; 0: there is no line. */
static uint32_t line_origin(struct memory_report *m, const struct slice *s, struct memory_origin *o)
{
    const struct process *p = s->event.process;
    struct key key = {p->index, s->event.record->stack_id, 0};
    uint32_t known = (uint32_t)key_map_get(&m->origins.of_stacks, key);
    const struct stack_place *line = !known && key.b ? line_of(m, p, (uint32_t)key.b) : NULL;
    if (!line)
        return known;
    o->by = MEMORY_BY_LINE;
    o->file = line->file;
    o->name = line->function;
    o->line = line->line;
    known = memory_origin_number_of(m, o) + 1;
    key_map_set(&m->origins.of_stacks, key, known);
    return known;
}

uint32_t memory_origin_of(void *report, const struct slice *s, unsigned kind)
{
    struct memory_report *m = report;
    const struct record *r = s->event.record;
    struct memory_origin o;
    memset(&o, 0, sizeof o);
    bool is_cuptis = r->type == RECORD_MEMORY; /* only CUPTI reports it; it may be a variable */
    uint32_t line = m->by == MEMORY_BY_LINE && !is_cuptis ? line_origin(m, s, &o) : 0;
    if (line)
        return line - 1;
    const struct host_span *library = m->by == MEMORY_BY_LIBRARY ? walk_library(s) : NULL;
    const struct host_span *op = m->by <= MEMORY_BY_OPERATOR ? walk_op(s) : NULL;
    if (is_cuptis) {
        o.by = MEMORY_BY_KIND;
        o.kind = kind;
        if (r->bytes && m->by != MEMORY_BY_KIND)
            o.name = kernel_name_intern(&m->walk.texts, r->bytes, r->byte_count);
    } else if (m->by == MEMORY_BY_STACK && r->stack_id) {
        o.by = MEMORY_BY_STACK;
        o.process = s->event.process->index;
        o.stack = r->stack_id;
        o.function = kind == LEDGER_TENSOR ? NULL : s->event.function;
    } else if (library) {
        o.by = MEMORY_BY_LIBRARY;
        o.function = library->function;
    } else if (op && op->text) {
        o.by = MEMORY_BY_OPERATOR;
        o.name = op->text;
    } else if (m->by == MEMORY_BY_KIND || kind == LEDGER_TENSOR) {
        o.by = MEMORY_BY_KIND;
        o.kind = kind;
    } else {
        o.by = MEMORY_BY_FUNCTION;
        o.function = s->event.function;
    }
    return memory_origin_number_of(m, &o);
}

/* The number of frames to show. Frames below the program's own code (the C library, the
 * interpreter) are the same for all owners and are left out. */
static unsigned frames_until_own(const struct call_tree *tree, uint32_t node)
{
    unsigned frames = 0, shown = 0;
    for (; node && frames < FRAMES_SHOWN_MAX; node = call_tree_node(tree, node)->parent) {
        const struct shown_frame *f = call_tree_frame(tree, node);
        frames++;
        if (own_frame(f) && !(f->name && strcmp(f->name->raw, "_start") == 0))
            shown = frames;
    }
    return shown ? shown : frames;
}

static char *stack_text(const struct memory_origin *o, struct call_tree *tree)
{
    uint32_t node = call_tree_stack(tree, 0, o->process, o->stack, NULL);
    struct new_text text;
    FILE *memory = new_text_begin(&text);
    fputs(o->function ? o->function->name : ledger_kind_name(LEDGER_TENSOR), memory);
    for (unsigned frames = frames_until_own(tree, node); frames && node; frames--) {
        fprintf(memory, " | %s", call_tree_frame(tree, node)->label);
        node = call_tree_node(tree, node)->parent;
    }
    return new_text_end(&text, memory);
}

char *memory_owner_text(const struct memory_report *m, uint32_t origin)
{
    const struct memory_origin *o = &m->origins.list[origin];
    if (origin == 0)
        return memory_text("(everything else)");
    if (o->by == MEMORY_BY_STACK && m->has_tree)
        return stack_text(o, (struct call_tree *)&m->tree); /* only names change, when looked up */
    if (o->by == MEMORY_BY_LINE)
        return text_printf("%s (%s:%u)", o->name ? o->name->raw : "?", o->file ? o->file->raw : "?",
                           o->line);
    if (o->by == MEMORY_BY_KIND)
        return o->name ? text_printf("variable %s", o->name->raw)
                       : memory_text(ledger_kind_name(o->kind));
    return memory_text(o->name ? o->name->shown : o->function ? o->function->name : "?");
}
