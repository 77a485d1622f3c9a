/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "bytes.h"
#include "error.h"
#include "frame.h"
#include "gpu_record.h"

enum { MODULE_NUMBER };
enum { PYTHON_LOCATION, PYTHON_LINE };
enum { STACK_NUMBER, STACK_FLAGS };

int stack_table_init(struct stack_table *t, uint32_t process_count)
{
    *t = (struct stack_table){.texts = {.plain = true}};
    t->modules_of.count_max = STACK_MODULES_MAX;
    t->places_of.count_max = STACK_PLACES_MAX;
    t->stacks_of.count_max = STACKS_MAX;
    t->unread = calloc(process_count + 1u, sizeof *t->unread);
    return t->unread ? 0 : GPUPROF_NO_MEMORY;
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
    free(t->words);
    free(t->unread);
}

/* Is it a build id in hexadecimal digits? */
static bool is_build_id(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
    return length >= 2 && length % 2 == 0 && length <= 2u * BUILD_ID_MAX;
}

/* 1, 0 if the record means nothing or there is no room, or GPUPROF_NO_MEMORY. */
static int take_module(struct stack_table *t, struct key key, const struct record *r)
{
    const uint8_t *blank = r->bytes ? memchr(r->bytes, ' ', r->byte_count) : NULL;
    size_t id_bytes = blank ? (size_t)(blank - r->bytes) : 0;
    bool has_id = blank && is_build_id(r->bytes, id_bytes);
    if (key.b > FRAME_MODULE_MAX || !blank || id_bytes + 1 == r->byte_count ||
        (!has_id && (id_bytes != 1 || *r->bytes != '-')))
        return 0;
    struct stack_module *modules =
        array_room(t->modules, t->module_count, &t->module_capacity, sizeof *modules, 64);
    if (!modules)
        return GPUPROF_NO_MEMORY;
    t->modules = modules;
    struct stack_module *m = &modules[t->module_count];
    *m = (struct stack_module){.process = (uint32_t)key.a};
    int error = kernel_name_intern(&t->texts, blank + 1, r->byte_count - id_bytes - 1, &m->path);
    if (error == 0 && has_id)
        error = kernel_name_intern(&t->texts, r->bytes, id_bytes, &m->build_id);
    if (error == 0)
        error = key_map_set(&t->modules_of, key, t->module_count + 1ull);
    t->module_count += error == 0;
    return error == GPUPROF_LIMIT ? 0 : error < 0 ? error : 1;
}

static int take_place(struct stack_table *t, struct key key, const struct record *r)
{
    const uint8_t *zero = r->bytes ? memchr(r->bytes, '\0', r->byte_count) : NULL;
    uint64_t line = record_arg(r, PYTHON_LINE);
    if (!zero)
        return 0;
    struct stack_place *places =
        array_room(t->places, t->place_count, &t->place_capacity, sizeof *places, 256);
    if (!places)
        return GPUPROF_NO_MEMORY;
    t->places = places;
    struct stack_place *p = &places[t->place_count];
    size_t file_bytes = (size_t)(zero - r->bytes);
    *p = (struct stack_place){.line = line <= INT32_MAX ? (uint32_t)line : 0};
    int error = kernel_name_intern(&t->texts, r->bytes, file_bytes, &p->file);
    if (error == 0)
        error =
            kernel_name_intern(&t->texts, zero + 1, r->byte_count - file_bytes - 1, &p->function);
    if (error == 0)
        error = key_map_set(&t->places_of, key, t->place_count + 1ull);
    t->place_count += error == 0;
    return error == GPUPROF_LIMIT ? 0 : error < 0 ? error : 1;
}

/* Room for `count` more words. */
static int reserve_words(struct stack_table *t, uint32_t count)
{
    while (t->word_capacity - t->word_count < count) {
        uint64_t *words =
            array_room(t->words, t->word_capacity, &t->word_capacity, sizeof *words, 4096);
        if (!words)
            return GPUPROF_NO_MEMORY;
        t->words = words;
    }
    return 0;
}

static int take_stack(struct stack_table *t, struct key key, const struct record *r)
{
    uint32_t count = r->byte_count / 8;
    if (!count || r->byte_count % 8 || key.b > UINT32_MAX ||
        STACK_WORDS_MAX - t->word_count < count)
        return 0;
    struct recorded_stack *stacks =
        array_room(t->stacks, t->stack_count, &t->stack_capacity, sizeof *stacks, 256);
    if (!stacks)
        return GPUPROF_NO_MEMORY;
    t->stacks = stacks;
    int error = reserve_words(t, count);
    if (error == 0)
        error = key_map_set(&t->stacks_of, key, t->stack_count + 1ull);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    stacks[t->stack_count++] =
        (struct recorded_stack){.first = t->word_count,
                                .count = count,
                                .flags = (uint32_t)record_arg(r, STACK_FLAGS),
                                .process = (uint32_t)key.a};
    for (uint32_t i = 0; i < count; i++)
        t->words[t->word_count++] = load_u64(r->bytes + 8 * i);
    return 1;
}

int stack_table_take(struct stack_table *t, const struct event *e)
{
    const struct record *r = e->record;
    struct key key = {e->process->index, record_arg(r, 0), 0};
    struct key_map *map = r->type == RECORD_MODULE   ? &t->modules_of
                          : r->type == RECORD_PYTHON ? &t->places_of
                                                     : &t->stacks_of;
    int taken = 0;
    /* A number means one thing: what is said of it again changes nothing. */
    if (key.b && key_map_get(map, key))
        return 0;
    if (key.b)
        taken = r->type == RECORD_MODULE   ? take_module(t, key, r)
                : r->type == RECORD_PYTHON ? take_place(t, key, r)
                                           : take_stack(t, key, r);
    t->unread[e->process->index] += taken == 0;
    return taken < 0 ? taken : 0;
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
