/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/stack_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "bytes.h"
#include "error.h"
#include "frame.h"
#include "record/gpu_record.h"

/* Whether it is a build id in hexadecimal digits. */
static bool is_build_id(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
    return length >= 2 && length % 2 == 0 && length <= 2u * BUILD_ID_MAX;
}

/* Length of the first of the two texts of a valid MODULE or PYTHON record. */
static uint32_t stack_record_first_bytes(const struct record *r)
{
    const uint8_t *end =
        r->bytes ? memchr(r->bytes, r->type == RECORD_MODULE ? ' ' : '\0', r->byte_count) : NULL;
    return end ? (uint32_t)(end - r->bytes) : r->byte_count;
}

_Static_assert((int)MODULE_MODULE == (int)STACK_STACK && (int)PYTHON_LOCATION == (int)STACK_STACK,
               "all begin with their number");

bool stack_record_is_good(const struct record *r)
{
    uint64_t number = record_arg(r, STACK_STACK);
    switch (r->type) {
    case RECORD_MODULE:
    case RECORD_PYTHON: return number && stack_record_first_bytes(r) < r->byte_count;
    case RECORD_STACK:
        return number && number <= UINT32_MAX && r->byte_count && r->byte_count % 8 == 0;
    default: return true;
    }
}

uint32_t stack_table_limit(uint32_t most, uint32_t free, uint32_t ratio, uint64_t bytes)
{
    return bytes < (most - free) / ratio ? free + ratio * (uint32_t)bytes : most;
}

void stack_table_init(struct stack_table *t, uint64_t bytes)
{
    *t = (struct stack_table){.texts = {.plain = true}};
    kernel_names_limit(&t->texts, bytes);
    t->modules_of.count_max = STACK_MODULES_MAX;
    t->places_of.count_max = stack_table_limit(STACK_PLACES_MAX, STACKS_FREE, 1, bytes);
    t->stacks_of.count_max = stack_table_limit(STACKS_MAX, STACKS_FREE, 1, bytes);
    t->frames_max =
        stack_table_limit(STACK_FRAMES_MAX, STACK_FRAMES_FREE, STACK_FRAMES_PER_BYTE, bytes);
}

void stack_table_release(struct stack_table *t)
{
    kernel_names_release(&t->texts);
    key_map_release(&t->modules_of);
    key_map_release(&t->places_of);
    key_map_release(&t->stacks_of);
    free(t->modules);
    free(t->places);
    free(t->stacks);
    free(t->frames);
    number_set_release(&t->frame_numbers);
}

/* Returns whether there is room. */
static bool take_module(struct stack_table *t, struct key key, const struct record *r)
{
    uint32_t bytes = stack_record_first_bytes(r) + 1;
    uint32_t id_bytes = is_build_id(r->bytes, bytes - 1) ? bytes - 1 : 0;
    struct stack_module m = {.process = (uint32_t)key.a};
    char stand_in[2 * BUILD_ID_MAX + 16];
    const void *path = r->bytes + bytes;
    size_t path_bytes = r->byte_count - bytes;
    if (!path_bytes) { /* its path could not be read: name it by its build id */
        path_bytes = (size_t)snprintf(stand_in, sizeof stand_in, "[build id %.*s]", (int)id_bytes,
                                      (const char *)r->bytes);
        path = stand_in;
    }
    m.path = kernel_name_intern(&t->texts, path, path_bytes);
    if (id_bytes)
        m.build_id = kernel_name_intern(&t->texts, r->bytes, id_bytes);
    return KEY_MAP_ITEM(&t->modules_of, key, t->modules, t->module_count, UINT32_MAX, &m) > 0;
}

static bool take_place(struct stack_table *t, struct key key, const struct record *r)
{
    uint32_t file_bytes = stack_record_first_bytes(r);
    uint64_t line = record_arg(r, PYTHON_LINE);
    struct stack_place p = {.line = line <= INT32_MAX ? (uint32_t)line : 0};
    p.file = kernel_name_intern(&t->texts, r->bytes, file_bytes);
    p.function =
        kernel_name_intern(&t->texts, r->bytes + file_bytes + 1, r->byte_count - file_bytes - 1);
    return KEY_MAP_ITEM(&t->places_of, key, t->places, t->place_count, UINT32_MAX, &p) > 0;
}

static const struct number_kind frame_kind_of = NUMBER_KEY(struct stack_frame, process);

/* Adds the frame that *frame called and stores its number there. Returns whether there is room. */
static bool add_frame(struct stack_table *t, uint32_t process, uint64_t word, uint32_t *frame)
{
    struct stack_frame inner = {.word = word, .parent = *frame, .process = process};
    int64_t number = NUMBER_ADD(&t->frame_numbers, &frame_kind_of, t->frames, t->frame_count,
                                t->frames_max, &inner);
    if (number)
        *frame = (uint32_t)number;
    return number;
}

static bool stack_table_take_stack(struct stack_table *t, struct key key, const struct record *r)
{
    uint32_t count = r->byte_count / 8;
    if (t->stacks_of.count == t->stacks_of.count_max)
        return false;
    uint32_t frame = 0;
    for (uint32_t i = count; i > 0; i--)
        if (!add_frame(t, (uint32_t)key.a, load_u64(r->bytes + 8 * (i - 1)), &frame))
            return false;
    struct recorded_stack stack = {.frame = frame,
                                   .count = count,
                                   .flags = (uint32_t)record_arg(r, STACK_FLAGS),
                                   .process = (uint32_t)key.a};
    KEY_MAP_ITEM(&t->stacks_of, key, t->stacks, t->stack_count, UINT32_MAX, &stack);
    return true;
}

uint32_t stack_table_words(const struct stack_table *t, const struct recorded_stack *stack,
                           uint64_t words[static FRAME_COUNT_MAX])
{
    uint32_t count = 0;
    for (uint32_t n = stack->frame; n && count < FRAME_COUNT_MAX; n = t->frames[n - 1].parent)
        words[count++] = t->frames[n - 1].word;
    return count;
}

bool stack_table_has_python(const struct stack_table *t, const struct recorded_stack *stack)
{
    uint32_t count = 0;
    for (uint32_t n = stack->frame; n && count < FRAME_COUNT_MAX; n = t->frames[n - 1].parent)
        if (count++, frame_kind(t->frames[n - 1].word) == FRAME_PYTHON)
            return true;
    return false;
}

int stack_table_take(struct stack_table *t, const struct event *e)
{
    const struct record *r = e->record;
    struct key key = {e->process->index, record_arg(r, STACK_STACK), 0};
    struct key_map *map = r->type == RECORD_MODULE   ? &t->modules_of
                          : r->type == RECORD_PYTHON ? &t->places_of
                                                     : &t->stacks_of;
    /* The first record of a number counts; later ones change nothing. */
    if (!stack_record_is_good(r) || key_map_get(map, key))
        return 0;
    bool is_taken = r->type == RECORD_MODULE   ? take_module(t, key, r)
                    : r->type == RECORD_PYTHON ? take_place(t, key, r)
                                               : stack_table_take_stack(t, key, r);
    t->left_out += !is_taken;
    return 0;
}

const struct recorded_stack *stack_table_stack(const struct stack_table *t, uint32_t process,
                                               uint32_t number)
{
    uint64_t place = key_map_get(&t->stacks_of, (struct key){process, number, 0});
    return place ? &t->stacks[place - 1] : NULL;
}

const struct stack_module *stack_table_module(const struct stack_table *t, uint32_t process,
                                              uint32_t number)
{
    uint64_t place = key_map_get(&t->modules_of, (struct key){process, number, 0});
    return place ? &t->modules[place - 1] : NULL;
}

const struct stack_place *stack_table_place(const struct stack_table *t, uint32_t process,
                                            uint32_t number)
{
    uint64_t place = key_map_get(&t->places_of, (struct key){process, number, 0});
    return place ? &t->places[place - 1] : NULL;
}
