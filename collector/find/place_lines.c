/* SPDX-License-Identifier: Apache-2.0 */
#include "find/place_lines.h"

#include "frame.h"
#include "symbol/cuda_stub.h"
#include "symbol/own_line.h"

void place_lines_init(struct place_lines *l, const struct stack_table *all, uint64_t bytes)
{
    *l = (struct place_lines){.all = all};
    stack_table_init(&l->few, bytes);
}

void place_lines_release(struct place_lines *l)
{
    symbols_free(l->symbols);
    shown_frames_release(&l->shown);
    stack_table_release(&l->few);
}

static bool may_be_own(const struct stack_table *t, uint32_t process, uint64_t word)
{
    if (frame_kind(word) == FRAME_PYTHON) {
        const struct stack_place *place = stack_table_place(t, process, frame_python(word));
        return place && place->file && own_python_file(place->file->raw);
    }
    const struct stack_module *module = frame_kind(word) == FRAME_MODULE
                                            ? stack_table_module(t, process, frame_module(word))
                                            : NULL;
    return module && module->path && own_module(module->path->raw);
}

int place_lines_add(struct place_lines *l, uint32_t process, uint32_t stack)
{
    return stack ? stack_table_pick(&l->few, l->all, process, stack, may_be_own) : 0;
}

int place_lines_find(struct place_lines *l, struct recording *rec, const char *symbol_folder)
{
    return l->few.stack_count ? symbols_create(&l->symbols, rec, &l->few, symbol_folder, true) : 0;
}

/*
 * A function whose line is not known is only the second choice: of programs that are linked to
 * CUDA's runtime statically, it is the runtime's. True: no better one is to be had.
 */
static bool prefer(struct shown_frame *best, const struct shown_frame *frame)
{
    bool has_line = frame->file && frame->line;
    if (!own_frame(frame) || (!frame->name && !has_line))
        return false;
    if (has_line || !best->name)
        *best = *frame;
    return has_line;
}

/* The functions at an address of a module, from what is inlined there outwards; *called is the one
 * before. */
static bool prefer_native(const struct place_lines *l, uint32_t process, uint64_t word,
                          const struct kernel_name **called, struct shown_frame *best)
{
    uint32_t count = 0;
    const struct symbol *found = symbols_of(l->symbols, process, word, &count);
    const struct stack_module *module = stack_table_module(&l->few, process, frame_module(word));
    for (uint32_t i = 0; found && i < count; i++) {
        const struct shown_frame frame = {.kind = SHOWN_NATIVE,
                                          .is_stub =
                                              cuda_stub(found[i].function, found[i].file, *called),
                                          .name = found[i].function,
                                          .file = found[i].file,
                                          .module = module ? module->path : NULL,
                                          .line = found[i].line};
        *called = found[i].function;
        if (prefer(best, &frame))
            return true;
    }
    return false;
}

static bool prefer_python(const struct place_lines *l, uint32_t process, uint64_t word,
                          struct shown_frame *best)
{
    const struct stack_place *place = stack_table_place(&l->few, process, frame_python(word));
    const struct shown_frame frame = {.kind = SHOWN_PYTHON,
                                      .name = place ? place->function : NULL,
                                      .file = place ? place->file : NULL,
                                      .line = place ? place->line : 0};
    return prefer(best, &frame);
}

int place_line(struct place_lines *l, uint32_t process, uint32_t stack, const char **text)
{
    uint64_t words[FRAME_COUNT_MAX];
    struct shown_frame best = {0};
    const struct kernel_name *called = NULL;
    uint32_t number = 0;
    const struct recorded_stack *picked =
        l->symbols && stack ? stack_table_stack(&l->few, process, stack) : NULL;
    uint32_t count = picked ? stack_table_words(&l->few, picked, words) : 0;
    bool is_found = false;
    for (uint32_t i = 0; i < count && !is_found; i++)
        is_found = frame_kind(words[i]) == FRAME_PYTHON
                       ? prefer_python(l, process, words[i], &best)
                       : prefer_native(l, process, words[i], &called, &best);
    int error = best.name || best.file ? shown_frame_number(&l->shown, &best, &number) : 0;
    *text = number ? shown_frame_of(&l->shown, number)->label : NULL;
    return error;
}
