/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/place_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "frame.h"
#include "symbol/shown_frame.h"

/* How calls reached a frame of the user's own; from WAYS_ONE on, the number of its only caller. */
enum { WAYS_OF_LIBRARY = 1, WAYS_NONE, WAYS_SEVERAL, WAYS_ONE };

void place_lines_release(struct place_lines *l)
{
    free(l->text);
    free(l->wanted);
    key_map_release(&l->ways);
    symbols_free(l->symbols);
    shown_frames_release(&l->shown);
}

static bool may_be_own(const struct stack_table *t, const struct stack_frame *f)
{
    if (frame_kind(f->word) == FRAME_PYTHON) {
        const struct stack_place *place = stack_table_place(t, f->process, frame_python(f->word));
        return place && place->file && own_python_file(place->file->raw);
    }
    const struct stack_module *module =
        frame_kind(f->word) == FRAME_MODULE
            ? stack_table_module(t, f->process, frame_module(f->word))
            : NULL;
    return module && module->path && own_module(module->path->raw);
}

/* The number of the innermost frame of a stack. */
static uint32_t innermost(const struct place_lines *l, uint32_t process, uint32_t stack)
{
    const struct recorded_stack *s = stack ? stack_table_stack(l->stacks, process, stack) : NULL;
    return s ? s->frame : 0;
}

void place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack, bool any)
{
    const struct stack_table *t = l->stacks;
    uint32_t first = innermost(l, process, stack);
    if (!first)
        return;
    if (!l->wanted)
        l->wanted = memory_new(t->frame_count + 1u, sizeof *l->wanted);
    for (uint32_t n = first; n; n = t->frames[n - 1].parent) {
        bool is_own = may_be_own(t, &t->frames[n - 1]);
        l->wanted[n - 1] |= is_own;
        any &= !is_own;
    }
    if (any)
        l->wanted[first - 1] = true;
}

/* Finds the ways to all frames, not only to requested ones, so that a place's text does not depend
 * on the requests. Callers come before what they called. */
static void find_ways(struct place_lines *l)
{
    const struct stack_table *t = l->stacks;
    uint32_t *own =
        memory_new(t->frame_count + 1u, sizeof *own); /* its own frame, or the next outer one */
    for (uint32_t n = 1; n <= t->frame_count; n++) {
        const struct stack_frame *frame = &t->frames[n - 1];
        struct key key = {frame->process, frame->word, 0};
        uint64_t known = key_map_get(&l->ways, key), ways = known;
        uint32_t caller = own[frame->parent];
        if (!known)
            ways = may_be_own(t, frame) ? WAYS_NONE : WAYS_OF_LIBRARY;
        own[n] = ways == WAYS_OF_LIBRARY ? caller : n;
        if (caller && ways == WAYS_NONE)
            ways = WAYS_ONE + caller;
        else if (caller && ways > WAYS_ONE &&
                 t->frames[ways - WAYS_ONE - 1].word != t->frames[caller - 1].word)
            ways = WAYS_SEVERAL;
        if (ways != known)
            key_map_set(&l->ways, key, ways);
    }
    free(own);
}

void place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder)
{
    if (!l->wanted)
        return;
    if (l->has_callers)
        find_ways(l);
    l->symbols = symbols_create(rec, l->stacks, l->wanted, symbol_folder, true);
}

/* A walk through a stack from its innermost function outwards. */
struct placing {
    uint32_t frame;  /* number of the current frame, 0: at the end ... */
    uint32_t symbol; /* ... and next function in it, innermost inlined first */
    const struct kernel_name *called;
};

static struct placing placing_of(const struct place_lines *l, uint32_t process, uint32_t stack)
{
    return (struct placing){.frame = l->symbols ? innermost(l, process, stack) : 0};
}

/* Gets the next function of the current frame; false if there is none. */
static bool next_function(const struct place_lines *l, struct placing *p, struct shown_frame *frame)
{
    const struct stack_frame *f = &l->stacks->frames[p->frame - 1];
    uint32_t count;
    const struct symbol *found = symbols_of(l->symbols, f->process, f->word, &count);
    if (p->symbol == count)
        return false;
    found = found ? found + p->symbol : NULL;
    p->symbol++;
    *frame = symbols_shown(l->symbols, f->process, f->word, found, p->called);
    p->called = found ? found->function : p->called;
    return true;
}

static bool has_line(const struct shown_frame *frame)
{
    return frame->file && frame->line;
}

/* Gets the next known function of the user's own; false if there is none. */
static bool next_own(const struct place_lines *l, struct placing *p, struct shown_frame *frame)
{
    for (; p->frame; p->frame = l->stacks->frames[p->frame - 1].parent, p->symbol = 0)
        while (next_function(l, p, frame))
            if (own_frame(frame) && (frame->name || has_line(frame)))
                return true;
    return false;
}

/* Finds the innermost line, and moves *p behind it; false if nothing is known. A function without a
 * line is the second choice: it may belong to a library inside the user's module. */
static bool find_line(const struct place_lines *l, struct placing *p, struct shown_frame *line)
{
    struct placing next = *p;
    struct shown_frame frame;
    bool is_found = false;
    while (!(is_found && has_line(line)) && next_own(l, &next, &frame))
        if (!is_found || has_line(&frame)) {
            *line = frame;
            *p = next;
            is_found = true;
        }
    return is_found;
}

/* Finds the nearest outer line that distinguishes the ways to `line`, or contains it inlined. */
static bool find_caller(const struct place_lines *l, struct placing *p,
                        const struct shown_frame *line, struct shown_frame *caller)
{
    uint32_t inlined_at = p->frame, at = p->frame;
    bool is_parted = false;
    while (next_own(l, p, caller)) {
        is_parted |= p->frame == inlined_at;
        for (const struct stack_frame *f; at != p->frame; at = f->parent) {
            f = &l->stacks->frames[at - 1];
            is_parted |=
                key_map_get(&l->ways, (struct key){f->process, f->word, 0}) == WAYS_SEVERAL;
        }
        if (is_parted && has_line(caller) == has_line(line))
            return true;
    }
    return false;
}

static const char *label_of(struct place_lines *l, const struct shown_frame *frame)
{
    uint32_t number = shown_frame_number(&l->shown, frame);
    return number ? shown_frame_of(&l->shown, number)->label : NULL;
}

bool place_frame(const struct place_lines *l, uint32_t process, uint32_t stack,
                 struct shown_frame *frame)
{
    struct placing p = placing_of(l, process, stack);
    if (find_line(l, &p, frame))
        return true;
    while (p.frame && !l->wanted[p.frame - 1])
        p.frame = l->stacks->frames[p.frame - 1].parent;
    if (!p.frame)
        return false;
    next_function(l, &p, frame);
    frame->line = frame->name || frame->file ? frame->line : 0;
    return true;
}

const char *place_line(struct place_lines *l, uint32_t process, uint32_t stack)
{
    struct shown_frame line, caller;
    struct placing p = placing_of(l, process, stack);
    if (!find_line(l, &p, &line))
        return NULL;
    const char *text = label_of(l, &line), *called_at = NULL;
    if (l->has_callers && find_caller(l, &p, &line, &caller))
        called_at = label_of(l, &caller);
    if (!text || !called_at)
        return text;
    free(l->text);
    return l->text = text_printf("%s" PLACE_CALLED "%s", text, called_at);
}

/* ---- whole stacks as text ---- */

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
    return memory_text(call_tree_frame(tree, own ? own : node)->label);
}

char *stack_text(const struct call_tree *tree, uint32_t node, bool is_json)
{
    struct new_text text;
    FILE *memory = new_text_begin(&text);
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

void reported_stacks_find(struct survey *survey, const char *symbol_folder,
                          struct reported_stack *const *list, uint32_t count)
{
    const struct stack_table *t = &survey->stacks;
    const struct recorded_stack *stack;
    struct call_tree tree = {0};
    bool *wanted = memory_new(t->frame_count + 1u, sizeof *wanted);
    for (uint32_t i = 0; i < count; i++) {
        stack =
            list[i]->stack ? stack_table_stack(t, list[i]->process->index, list[i]->stack) : NULL;
        for (uint32_t n = stack ? stack->frame : 0; n; n = t->frames[n - 1].parent)
            wanted[n - 1] = true;
    }
    call_tree_init(&tree, survey, wanted, symbol_folder);
    for (uint32_t i = 0; i < count; i++) {
        struct reported_stack *s = list[i];
        uint32_t node = s->stack ? call_tree_stack(&tree, 0, s->process->index, s->stack, NULL) : 0;
        if (!node)
            continue;
        s->line = own_line_text(&tree, node);
        s->lines = stack_text(&tree, node, false);
        s->json = stack_text(&tree, node, true);
    }
    call_tree_release(&tree);
    free(wanted);
}

void reported_stack_release(struct reported_stack *s)
{
    free(s->line);
    free(s->lines);
    free(s->json);
}

char *reported_stack_below(const struct reported_stack *s, char *title)
{
    char *line = json_line(title);
    free(title);
    if (!s->lines)
        return line;
    char *all = text_printf("%s\n%s", line, s->lines);
    free(line);
    return all;
}
