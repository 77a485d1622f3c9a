/* SPDX-License-Identifier: Apache-2.0 */
/* StringIds, and callchains made of them. Texts are deduplicated within bounded memory; beyond it,
 * each use gets a row. All are valid UTF-8, as SQLite's readers expect. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/sqlite_tables.h"
#include "record/op_record.h"

/* Parts of a text that have a number, besides enum kernel_part. */
enum { PART_INPUTS = KERNEL_RAW + 1, PART_FUNCTION };

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes)
{
    const struct kernel_name *known = NULL;
    (void)sqlite_ok(w, kernel_name_intern(&w->texts, (const uint8_t *)text, bytes, &known));
    struct key key = {(uintptr_t)known, 0, 0};
    uint64_t number = known ? key_map_get(&w->text_ids, key) : 0;
    if (number)
        return sql_integer(number);
    number = ++w->text_count;
    put_STRINGS(w, number, text, bytes);
    if (known)
        (void)sqlite_ok(w, key_map_set(&w->text_ids, key, number));
    return sql_integer(number);
}

/* Returns the number of a part of a permanent text or function name, looked up by its address since
 * most repeat. 0: none yet. */
static uint64_t sqlite_texts_part_of(const struct export_writer *w, const void *name, unsigned part)
{
    return key_map_get(&w->text_ids, (struct key){(uintptr_t)name, part, 1});
}

static struct sql_value make_part(struct export_writer *w, const void *name, unsigned part,
                                  const char *text, size_t bytes)
{
    struct sql_value id = sqlite_text(w, text, bytes);
    struct key key = {(uintptr_t)name, part, 1};
    (void)sqlite_ok(w, key_map_set(&w->text_ids, key, (uint64_t)id.integer));
    return id;
}

struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise)
{
    uint64_t number = name ? sqlite_texts_part_of(w, name, KERNEL_SHOWN) : 0;
    return number ? sql_integer(number)
           : name ? make_part(w, name, KERNEL_SHOWN, name->shown, strlen(name->shown))
                  : sqlite_text(w, otherwise, strlen(otherwise));
}

struct sql_value sqlite_function(struct export_writer *w, const struct function *f)
{
    uint64_t number = sqlite_texts_part_of(w, f, PART_FUNCTION);
    return number ? sql_integer(number) : make_part(w, f, PART_FUNCTION, f->name, strlen(f->name));
}

/* Returns "kernel" of "void ns::kernel<int, (anonymous namespace)::X>(float*)": the text after the
 * last "::" or space before its template or call arguments. */
static const char *base_of(const char *text, size_t *bytes)
{
    const char *begin = text, *end = NULL;
    unsigned depth = 0;
    for (const char *at = text; *at && !end; at++) {
        bool is_group = *at == '(' && strncmp(at, "(anonymous namespace)", 21) == 0;
        if (is_group && depth == 0)
            at += 20;
        else if (*at == '(' && depth == 0 && at > begin)
            end = at;
        else if (*at == '<')
            depth++;
        else if (*at == '>' && depth)
            depth--;
        else if (depth == 0 && (*at == ':' || *at == ' '))
            begin = at + 1;
    }
    size_t length = end ? (size_t)(end - begin) : strlen(begin);
    const char *arguments = memchr(begin, '<', length);
    *bytes = arguments && arguments > begin ? (size_t)(arguments - begin) : length;
    if (*bytes)
        return begin;
    *bytes = strlen(text);
    return text;
}

struct sql_value sqlite_kernel(struct export_writer *w, const struct kernel_name *name,
                               uint64_t number, enum kernel_part part)
{
    char unknown[48];
    size_t bytes;
    if (!name && part != KERNEL_RAW) {
        snprintf(unknown, sizeof unknown, "kernel %llu", (unsigned long long)number);
        return sqlite_name(w, NULL, unknown);
    }
    uint64_t known = name ? sqlite_texts_part_of(w, name, part) : 0;
    if (known || !name)
        return sql_integer_or_null(known);
    if (part == KERNEL_SHOWN)
        return make_part(w, name, part, name->shown, strlen(name->shown));
    if (part == KERNEL_RAW)
        return make_part(w, name, part, name->raw, name->raw_bytes);
    const char *text = base_of(name->shown, &bytes);
    return make_part(w, name, part, text, bytes);
}

struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs)
{
    uint64_t number = inputs ? sqlite_texts_part_of(w, inputs, PART_INPUTS) : 0;
    if (number || !inputs)
        return sql_integer_or_null(number);
    char *text = malloc(OP_TEXT_BYTES(inputs->raw_bytes));
    if (!sqlite_ok(w, text ? 0 : GPUPROF_NO_MEMORY))
        return (struct sql_value){0};
    char *end = op_put_dims(text, inputs->raw, inputs->raw_bytes);
    struct sql_value id = make_part(w, inputs, PART_INPUTS, text, (size_t)(end - text));
    free(text);
    return id;
}

void sqlite_texts_release(struct export_writer *w)
{
    kernel_names_release(&w->texts);
    key_map_release(&w->text_ids);
}

/* ---- callchains -------------------------------------------------------------------------------
 *
 * Frame by frame: those of samples have the sample's id, as nsys' have, of others each different
 * one is there once.
 */

#define UNKNOWN "[Unknown]" /* nsys' word */

void sqlite_chains_release(struct sqlite_chains *c)
{
    if (c->has_tree)
        call_tree_release(&c->tree);
    key_map_release(&c->reported);
    free(c->texts);
}

static uint32_t sqlite_texts_text_of(struct export_writer *w, const char *text)
{
    struct sql_value id = sqlite_text(w, text, strlen(text));
    return id.integer <= UINT32_MAX ? (uint32_t)id.integer : 0;
}

/* A Python frame includes its line, and its file is the module. */
static struct frame_texts texts_of(struct export_writer *w, uint32_t frame,
                                   const struct shown_frame *f)
{
    struct sqlite_chains *c = &w->chains;
    struct frame_texts *all = array_reach(c->texts, &c->text_count, frame, sizeof *all);
    if (!sqlite_ok(w, all ? 0 : GPUPROF_NO_MEMORY))
        return (struct frame_texts){0};
    c->texts = all;
    if (all[frame].symbol && all[frame].module)
        return all[frame];
    bool is_named = f && f->name && (f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED);
    const struct kernel_name *module = !f ? NULL : f->kind == SHOWN_PYTHON ? f->file : f->module;
    all[frame].symbol = sqlite_texts_text_of(w, is_named ? f->name->shown : f ? f->label : UNKNOWN);
    all[frame].module = sqlite_texts_text_of(w, module ? module->raw : UNKNOWN);
    return all[frame];
}

static void sqlite_texts_put_frames(struct export_writer *w, uint64_t id, uint32_t node,
                                    bool is_sample)
{
    const struct call_tree *t = &w->chains.tree;
    for (uint64_t depth = 0; node && !w->error; depth++, node = call_tree_node(t, node)->parent) {
        uint32_t frame = call_tree_node(t, node)->frame;
        const struct shown_frame *f = frame ? shown_frame_of(&t->frames, frame) : NULL;
        struct frame_texts texts = texts_of(w, frame, f);
        (is_sample ? put_SAMPLE_CHAINS : put_OSRT_CHAINS)(w, id, &texts, f, depth);
    }
}

uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample)
{
    struct sqlite_chains *c = &w->chains;
    uint32_t node = 0;
    if (!stack || w->error)
        return 0;
    if (!c->has_tree) {
        c->has_tree = true;
        w->error = call_tree_init(&c->tree, &w->walk->survey, w->scope.options->symbols);
    }
    if (!w->error)
        (void)sqlite_ok(w, call_tree_stack(&c->tree, 0, p->index, stack, NULL, &node));
    if (w->error || !node)
        return 0;
    if (sample) {
        sqlite_texts_put_frames(w, sample, node, true);
        return sample;
    }
    struct key key = {node, 0, 0};
    if (key_map_get(&c->reported, key))
        return node;
    int error = key_map_set(&c->reported, key, 1);
    if (error == GPUPROF_LIMIT)
        return 0; /* without this note, frames would be written twice */
    if (sqlite_ok(w, error))
        sqlite_texts_put_frames(w, node, node, false);
    return node;
}
