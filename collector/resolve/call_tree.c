/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "frame.h"
#include "symbol/shown_frame.h"

uint32_t call_tree_nodes_max(const struct recording *rec)
{
    return stack_table_limit(TREE_NODES_MAX, TREE_NODES_FREE, TREE_NODES_PER_BYTE,
                             recording_bytes(rec));
}

void call_tree_init(struct call_tree *t, struct survey *survey, const bool *wanted,
                    const char *symbol_folder)
{
    *t = (struct call_tree){.survey = survey};
    t->nodes_max = call_tree_nodes_max(survey->rec);
    t->leaves.count_max = t->nodes_max < KEY_MAP_MAX ? t->nodes_max : KEY_MAP_MAX;
    t->symbols = symbols_create(survey->rec, &survey->stacks, wanted, symbol_folder, false);
}

void call_tree_release(struct call_tree *t)
{
    symbols_free(t->symbols);
    shown_frames_release(&t->frames);
    key_map_release(&t->leaves);
    free(t->nodes);
    number_set_release(&t->numbers);
}

void call_tree_say(const struct call_tree *t)
{
    const struct stack_table *stacks = &t->survey->stacks;
    uint64_t frames = t->left_out + t->frames.left_out;
    if (frames || stacks->texts.dropped || stacks->left_out)
        message("stacks: too many to keep: %llu stacks and modules, %llu frames and %llu names are "
                "left out",
                (unsigned long long)stacks->left_out, (unsigned long long)frames,
                (unsigned long long)stacks->texts.dropped);
}

static const struct number_kind kind = NUMBER_KEY(struct tree_node, frame);

uint32_t call_tree_child(struct call_tree *t, uint32_t parent, const struct shown_frame *frame)
{
    const struct tree_node child = {.parent = parent,
                                    .frame = shown_frame_number(&t->frames, frame)};
    if (!child.frame)
        return parent;
    uint32_t number = NUMBER_ADD(&t->numbers, &kind, t->nodes, t->count, t->nodes_max, &child);
    t->left_out += !number;
    return number ? number : parent;
}

/* Whether a frame is left out; its callees then go below its caller. */
static bool is_folded(const struct call_tree *t, const struct shown_frame *f)
{
    bool is_place = f->kind == SHOWN_PYTHON || f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED;
    if ((t->only_own || t->is_below_python) && f->kind != SHOWN_RANGE && !own_frame(f))
        return true;
    return t->only_named && ((is_place && !f->name) || f->kind == SHOWN_ADDRESS);
}

static void add_shown(struct call_tree *t, const struct shown_frame *frame, uint32_t *node)
{
    if (!is_folded(t, frame))
        *node = call_tree_child(t, *node, frame);
}

/* Adds the function of a frame, then those inlined into it; it called the frame `inner`. */
static void add_frame(struct call_tree *t, uint32_t process, uint64_t frame, uint64_t inner,
                      uint32_t *node)
{
    uint32_t count, inner_count;
    const struct symbol *found = symbols_of(t->symbols, process, frame, &count),
                        *called = symbols_of(t->symbols, process, inner, &inner_count);
    for (uint32_t i = count; i-- > 0;) {
        const struct symbol *next = i ? &found[i - 1] : called ? &called[inner_count - 1] : NULL;
        struct shown_frame shown = symbols_shown(
            t->symbols, process, frame, found ? &found[i] : NULL, next ? next->function : NULL);
        add_shown(t, &shown, node);
    }
}

static void add_stack(struct call_tree *t, const struct recorded_stack *stack,
                      const uint64_t *words, const struct kernel_name *range, uint32_t *node)
{
    const struct shown_frame cut = {.kind = SHOWN_CUT}, borrowed = {.kind = SHOWN_BORROWED};
    const struct shown_frame named = {.kind = SHOWN_RANGE, .name = range};
    uint32_t python = 0; /* the innermost Python frame */
    while (python < stack->count && frame_kind(words[python]) != FRAME_PYTHON)
        python++;
    if (stack->flags & STACK_CUT)
        add_shown(t, &cut, node);
    if (range)
        add_shown(t, &named, node);
    t->is_below_python =
        python < stack->count && process_has(t->survey->rec->processes[stack->process], "python");
    for (uint32_t i = stack->count; i-- > 0;) {
        t->is_below_python &= frame_kind(words[i]) != FRAME_PYTHON;
        add_frame(t, stack->process, words[i], i ? words[i - 1] : 0, node);
        if (i == python && stack->flags & STACK_BORROWED)
            add_shown(t, &borrowed, node);
    }
}

uint32_t call_tree_stack(struct call_tree *t, uint32_t root, uint32_t process, uint32_t stack,
                         const struct kernel_name *range)
{
    const struct stack_table *table = &t->survey->stacks;
    const struct recorded_stack *recorded = stack_table_stack(table, process, stack);
    uint64_t words[FRAME_COUNT_MAX];
    if (!recorded)
        return 0;
    if (range && (!process_has(t->survey->rec->processes[process], "python") ||
                  stack_table_has_python(table, recorded)))
        range = NULL;
    struct key key = {(uint64_t)(recorded - table->stacks), root, (uintptr_t)range};
    uint64_t known = key_map_get(&t->leaves, key);
    if (known)
        return (uint32_t)(known - 1);
    uint32_t leaf = root;
    stack_table_words(table, recorded, words);
    add_stack(t, recorded, words, range, &leaf);
    key_map_set(&t->leaves, key, leaf + 1ull);
    return leaf;
}
