/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/place_lines.h"

#include <stdlib.h>

#include "base/text.h"
#include "error.h"
#include "frame.h"
#include "symbol/shown_frame.h"

/* How calls reached a frame of the user's own; from WAYS_ONE on, the number of its only caller. */
enum { WAYS_OF_LIBRARY = 1, WAYS_NONE, WAYS_SEVERAL, WAYS_ONE };

void place_lines_init(struct place_lines *l, const struct stack_table *all, uint64_t bytes,
                      bool has_callers)
{
    *l = (struct place_lines){.all = all, .has_callers = has_callers};
    stack_table_init(&l->few, bytes);
}

void place_lines_release(struct place_lines *l)
{
    free(l->text);
    key_map_release(&l->ways);
    symbols_free(l->symbols);
    shown_frames_release(&l->shown);
    stack_table_release(&l->few);
}

static bool may_be_own(const struct stack_table *t, uint32_t process, uint64_t word,
                       bool is_innermost)
{
    (void)is_innermost;
    if (frame_kind(word) == FRAME_PYTHON) {
        const struct stack_place *place = stack_table_place(t, process, frame_python(word));
        return place && place->file && own_python_file(place->file->raw);
    }
    const struct stack_module *module = frame_kind(word) == FRAME_MODULE
                                            ? stack_table_module(t, process, frame_module(word))
                                            : NULL;
    return module && module->path && own_module(module->path->raw);
}

static bool keeps_innermost(const struct stack_table *t, uint32_t process, uint64_t word,
                            bool is_innermost)
{
    (void)t, (void)process, (void)word;
    return is_innermost;
}

int place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack)
{
    return stack ? stack_table_pick(&l->few, l->all, process, stack, may_be_own) : 0;
}

/* A stack with an own frame needs no library names, which take longer to find. */
int place_lines_add_any(struct place_lines *l, uint32_t process, uint32_t stack)
{
    const struct recorded_stack *recorded = stack_table_stack(l->all, process, stack);
    uint64_t words[FRAME_COUNT_MAX];
    uint32_t count = recorded ? stack_table_words(l->all, recorded, words) : 0, i = 0;
    while (i < count && !may_be_own(l->all, process, words[i], false))
        i++;
    return stack_table_pick(&l->few, l->all, process, stack,
                            i < count ? may_be_own : keeps_innermost);
}

/* Finds the ways to all frames, not only to requested ones, so that a place's text does not depend
 * on the requests. Callers come before what they called. */
static int find_ways(struct place_lines *l)
{
    const struct stack_table *t = l->all;
    uint32_t *own =
        calloc(t->frame_count + 1u, sizeof *own); /* its own frame, or the next outer one */
    int error = own ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t n = 1; error == 0 && n <= t->frame_count; n++) {
        const struct stack_frame *frame = &t->frames[n - 1];
        struct key key = {frame->process, frame->word, 0};
        uint64_t known = key_map_get(&l->ways, key), ways = known;
        uint32_t caller = own[frame->parent];
        if (!known)
            ways = may_be_own(t, frame->process, frame->word, false) ? WAYS_NONE : WAYS_OF_LIBRARY;
        own[n] = ways == WAYS_OF_LIBRARY ? caller : n;
        if (caller && ways == WAYS_NONE)
            ways = WAYS_ONE + caller;
        else if (caller && ways > WAYS_ONE &&
                 t->frames[ways - WAYS_ONE - 1].word != t->frames[caller - 1].word)
            ways = WAYS_SEVERAL;
        if (ways != known)
            error = key_map_set(&l->ways, key, ways);
    }
    free(own);
    return error == GPUPROF_LIMIT ? 0 : error;
}

int place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder)
{
    if (!l->few.stack_count)
        return 0;
    int error = l->has_callers ? find_ways(l) : 0;
    return error < 0 ? error : symbols_create(&l->symbols, rec, &l->few, symbol_folder, true);
}

/* A walk through a stack from its innermost function outwards. */
struct placing {
    const uint64_t *words;
    uint32_t process;
    uint32_t count;
    uint32_t at;     /* current word, ... */
    uint32_t symbol; /* ... and next function in it, innermost inlined first */
    const struct kernel_name *called;
};

static struct placing placing_of(const struct place_lines *l, uint32_t process, uint32_t stack,
                                 uint64_t words[static FRAME_COUNT_MAX])
{
    const struct recorded_stack *picked =
        l->symbols && stack ? stack_table_stack(&l->few, process, stack) : NULL;
    return (struct placing){.words = words,
                            .process = process,
                            .count = picked ? stack_table_words(&l->few, picked, words) : 0};
}

/* Gets the next function at the word; false if there is none. */
static bool next_native(const struct place_lines *l, struct placing *p, struct shown_frame *frame)
{
    uint64_t word = p->words[p->at];
    uint32_t count = 0;
    const struct symbol *found = symbols_of(l->symbols, p->process, word, &count);
    const struct stack_module *module = stack_table_module(&l->few, p->process, frame_module(word));
    if (!found || p->symbol == count)
        return false;
    found += p->symbol++;
    *frame = (struct shown_frame){.kind = SHOWN_NATIVE,
                                  .is_stub = cuda_stub(found->function, found->file, p->called),
                                  .name = found->function,
                                  .file = found->file,
                                  .module = module ? module->path : NULL,
                                  .line = found->line};
    p->called = found->function;
    return true;
}

static bool next_python(const struct place_lines *l, struct placing *p, struct shown_frame *frame)
{
    const struct stack_place *place =
        stack_table_place(&l->few, p->process, frame_python(p->words[p->at]));
    *frame = (struct shown_frame){.kind = SHOWN_PYTHON,
                                  .name = place ? place->function : NULL,
                                  .file = place ? place->file : NULL,
                                  .line = place ? place->line : 0};
    return !p->symbol++;
}

static bool has_line(const struct shown_frame *frame)
{
    return frame->file && frame->line;
}

/* Gets the next known function of the user's own; false if there is none. */
static bool next_own(const struct place_lines *l, struct placing *p, struct shown_frame *frame)
{
    for (; p->at < p->count; p->at++, p->symbol = 0)
        while (frame_kind(p->words[p->at]) == FRAME_PYTHON ? next_python(l, p, frame)
                                                           : next_native(l, p, frame))
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
    uint32_t inlined_at = p->at, at = p->at;
    bool is_parted = false;
    while (next_own(l, p, caller)) {
        is_parted |= p->at == inlined_at;
        for (; at < p->at; at++)
            is_parted |=
                key_map_get(&l->ways, (struct key){p->process, p->words[at], 0}) == WAYS_SEVERAL;
        if (is_parted && has_line(caller) == has_line(line))
            return true;
    }
    return false;
}

static int label_of(struct place_lines *l, const struct shown_frame *frame, const char **label)
{
    uint32_t number = 0;
    int error = shown_frame_number(&l->shown, frame, &number);
    *label = number ? shown_frame_of(&l->shown, number)->label : NULL;
    return error;
}

bool place_frame(const struct place_lines *l, uint32_t process, uint32_t stack,
                 struct shown_frame *frame)
{
    uint64_t words[FRAME_COUNT_MAX];
    struct placing p = placing_of(l, process, stack, words);
    *frame = (struct shown_frame){.kind = SHOWN_ADDRESS};
    if (find_line(l, &p, frame) || !p.count)
        return p.count != 0;
    if (frame_kind(words[0]) == FRAME_PYTHON)
        return next_python(l, &p, frame);
    if (frame_kind(words[0]) != FRAME_MODULE || next_native(l, &p, frame))
        return true;
    const struct stack_module *module =
        stack_table_module(&l->few, process, frame_module(words[0]));
    *frame = (struct shown_frame){.kind = SHOWN_NATIVE, .module = module ? module->path : NULL};
    return true;
}

int place_line(struct place_lines *l, uint32_t process, uint32_t stack, const char **text)
{
    uint64_t words[FRAME_COUNT_MAX];
    struct shown_frame line, caller;
    const char *called_at = NULL;
    struct placing p = placing_of(l, process, stack, words);
    *text = NULL;
    if (!find_line(l, &p, &line))
        return 0;
    int error = label_of(l, &line, text);
    if (error == 0 && l->has_callers && find_caller(l, &p, &line, &caller))
        error = label_of(l, &caller, &called_at);
    if (error < 0 || !*text || !called_at)
        return error;
    free(l->text);
    *text = l->text = text_printf("%s" PLACE_CALLED "%s", *text, called_at);
    return l->text ? 0 : GPUPROF_NO_MEMORY;
}
