/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StringIds: each text once. A text that finds no more room in what is known of them has a row for
 * each of its uses. All are valid UTF-8, as readers of SQLite expect.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/sqlite_tables.h"
#include "record/op_record.h"

/* What of a text a number stands for, besides enum kernel_part. */
#define PART_INPUTS (KERNEL_RAW + 1)

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

/* The number of a part of a text that is the walk's, and stays: known by its place, as most are
 * again. 0: it has none yet. */
static uint64_t part_of(const struct export_writer *w, const struct kernel_name *name,
                        unsigned part)
{
    return key_map_get(&w->text_ids, (struct key){(uintptr_t)name, part, 1});
}

static struct sql_value make_part(struct export_writer *w, const struct kernel_name *name,
                                  unsigned part, const char *text, size_t bytes)
{
    struct sql_value id = sqlite_text(w, text, bytes);
    struct key key = {(uintptr_t)name, part, 1};
    (void)sqlite_ok(w, key_map_set(&w->text_ids, key, (uint64_t)id.integer));
    return id;
}

struct sql_value sqlite_name(struct export_writer *w, const struct kernel_name *name,
                             const char *otherwise)
{
    uint64_t number = name ? part_of(w, name, KERNEL_SHOWN) : 0;
    return number ? sql_integer(number)
           : name ? make_part(w, name, KERNEL_SHOWN, name->shown, strlen(name->shown))
                  : sqlite_text(w, otherwise, strlen(otherwise));
}

struct sql_value sqlite_function(struct export_writer *w, const struct function *f)
{
    uint32_t *ids = array_reach(w->function_ids, &w->function_count, f->index, sizeof *ids);
    if (!sqlite_ok(w, ids ? 0 : GPUPROF_NO_MEMORY))
        return (struct sql_value){0};
    w->function_ids = ids;
    if (ids[f->index])
        return sql_integer(ids[f->index]);
    struct sql_value id = sqlite_text(w, f->name, strlen(f->name));
    ids[f->index] = id.integer <= UINT32_MAX ? (uint32_t)id.integer : 0;
    return id;
}

/*
 * "kernel" of "void ns::kernel<int, (anonymous namespace)::X>(float*)": what stands behind the last
 * "::" or space in front of its template's or its own arguments.
 */
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
    uint64_t known = name ? part_of(w, name, part) : 0;
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
    uint64_t number = inputs ? part_of(w, inputs, PART_INPUTS) : 0;
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
    free(w->function_ids);
}
