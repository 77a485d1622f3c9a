/* SPDX-License-Identifier: Apache-2.0 */
/* StringIds, and callchains made of them. Texts are deduplicated within bounded memory; beyond it,
 * each use gets a row. All are valid UTF-8, as SQLite's readers expect. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/sqlite_tables.h"
#include "record/op_record.h"

/* Parts of a text that have a number, besides enum kernel_part. */
enum { PART_INPUTS = KERNEL_RAW + 1, PART_FUNCTION, PART_SYMBOL, PART_MODULE };

struct sql_value sqlite_text(struct export_writer *w, const char *text, size_t bytes)
{
    bool is_new;
    uint64_t number = text_number(&w->texts, text, bytes, &is_new);
    if (number && !is_new)
        return sql_integer(number);
    if (!number)
        number = TEXT_NUMBERS_MAX + ++w->text_count;
    put_STRINGS(w, number, text, bytes);
    return sql_integer(number);
}

/* The same for a part of a permanent text or function (by its address) or frame (by its number),
 * looked up so since most repeat. */
static struct sql_value kept_text(struct export_writer *w, uint64_t owner, unsigned part,
                                  const char *text, size_t bytes)
{
    struct key key = {owner, part, 0};
    uint64_t number = key_map_get(&w->text_ids, key);
    if (number)
        return sql_integer(number);
    struct sql_value id = sqlite_text(w, text, bytes);
    (void)sqlite_ok(w, key_map_set(&w->text_ids, key, (uint64_t)id.integer));
    return id;
}

struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise)
{
    return name ? kept_text(w, (uintptr_t)name, KERNEL_SHOWN, name->shown, strlen(name->shown))
                : sqlite_text(w, otherwise, strlen(otherwise));
}

struct sql_value sqlite_function(struct export_writer *w, const struct function *f)
{
    return kept_text(w, (uintptr_t)f, PART_FUNCTION, f->name, strlen(f->name));
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
    if (part == KERNEL_RAW)
        return IF(name, kept_text(w, (uintptr_t)name, part, name->raw, name->raw_bytes));
    if (!name)
        snprintf(unknown, sizeof unknown, "kernel %llu", (unsigned long long)number);
    if (part == KERNEL_SHOWN || !name)
        return sqlite_name(w, name, unknown);
    const char *text = base_of(name->shown, &bytes);
    return kept_text(w, (uintptr_t)name, part, text, bytes);
}

struct sql_value sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs)
{
    char *text = inputs ? malloc(OP_TEXT_BYTES(inputs->raw_bytes)) : NULL;
    if (!inputs || !sqlite_ok(w, text ? 0 : GPUPROF_NO_MEMORY))
        return (struct sql_value){0};
    char *end = op_put_dims(text, inputs->raw, inputs->raw_bytes);
    struct sql_value id = kept_text(w, (uintptr_t)inputs, PART_INPUTS, text, (size_t)(end - text));
    free(text);
    return id;
}

/* ---- callchains -------------------------------------------------------------------------------
 *
 * Frame by frame: those of samples have the sample's id, as nsys' have, of others each different
 * one is there once.
 */

#define UNKNOWN "[Unknown]" /* nsys' word */

static void sqlite_texts_put_frames(struct export_writer *w, uint64_t id, uint32_t node,
                                    bool is_sample)
{
    const struct call_tree *t = &w->tree;
    for (uint64_t depth = 0; node && !w->error; depth++, node = call_tree_node(t, node)->parent) {
        uint32_t frame = call_tree_node(t, node)->frame;
        const struct shown_frame *f = frame ? shown_frame_of(&t->frames, frame) : NULL;
        /* A Python frame includes its line, and its file is the module. */
        bool is_named = f && f->name && (f->kind == SHOWN_NATIVE || f->kind == SHOWN_INLINED);
        const char *symbol = is_named ? f->name->shown : f ? f->label : UNKNOWN;
        const struct kernel_name *file = !f ? NULL : f->kind == SHOWN_PYTHON ? f->file : f->module;
        const char *module = file ? file->raw : UNKNOWN;
        struct sql_value symbol_id = kept_text(w, frame, PART_SYMBOL, symbol, strlen(symbol));
        struct sql_value module_id = kept_text(w, frame, PART_MODULE, module, strlen(module));
        (is_sample ? put_SAMPLE_CHAINS : put_OSRT_CHAINS)(w, id, symbol_id, module_id, f, depth);
    }
}

uint64_t sqlite_chain(struct export_writer *w, const struct process *p, uint32_t stack,
                      uint64_t sample)
{
    uint32_t node = 0;
    if (!stack || w->error)
        return 0;
    if (!w->has_tree) {
        w->has_tree = true;
        w->error = call_tree_init(&w->tree, &w->walk->survey, NULL, w->scope.options->symbols);
    }
    if (!w->error)
        (void)sqlite_ok(w, call_tree_stack(&w->tree, 0, p->index, stack, NULL, &node));
    if (w->error || !node)
        return 0;
    if (sample) {
        sqlite_texts_put_frames(w, sample, node, true);
        return sample;
    }
    struct key key = {node, 0, 0};
    if (key_map_get(&w->chains, key))
        return node;
    int error = key_map_set(&w->chains, key, 1);
    if (error == GPUPROF_LIMIT)
        return 0; /* without this note, frames would be written twice */
    if (sqlite_ok(w, error))
        sqlite_texts_put_frames(w, node, node, false);
    return node;
}
