/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StringIds: each text once. A text that finds no more room in what is known of them has a row for
 * each of its uses. All are valid UTF-8, as readers of SQLite expect.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "error.h"
#include "export/sqlite_writer.h"
#include "record/op_record.h"

/* What of a text a number stands for. */
enum text_part { PART_WHOLE, PART_BASE, PART_RAW, PART_INPUTS };

static int insert(struct export_writer *w, const char *text, size_t bytes, struct sql_value *id)
{
    *id = sql_integer(++w->text_count);
    struct sql_value row[STRINGS_COLUMNS] = {
        [SQL_STRINGS_ID] = *id,
        [SQL_STRINGS_VALUE] = {.kind = SQL_RECORDED, .text = text, .bytes = bytes}};
    return sql_base_insert(w->base, SQL_STRINGS, row);
}

int sqlite_text(struct export_writer *w, const char *text, size_t bytes, struct sql_value *id)
{
    const struct kernel_name *known;
    int error = kernel_name_intern(&w->texts, (const uint8_t *)text, bytes, &known);
    if (error < 0)
        return error;
    struct key key = {(uintptr_t)known, PART_WHOLE, 0};
    uint64_t number = known ? key_map_get(&w->text_ids, key) : 0;
    *id = sql_integer(number);
    if (number)
        return 0;
    error = insert(w, text, bytes, id);
    if (error == 0 && known)
        error = key_map_set(&w->text_ids, key, w->text_count);
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* A part of a text that is the walk's, and stays: known by its place, as most are again. */
static int part_of(struct export_writer *w, const struct kernel_name *name, enum text_part part,
                   const char *text, size_t bytes, struct sql_value *id)
{
    struct key key = {(uintptr_t)name, part, 1};
    uint64_t number = key_map_get(&w->text_ids, key);
    *id = sql_integer(number);
    if (number)
        return 0;
    int error = sqlite_text(w, text, bytes, id);
    if (error == 0)
        error = key_map_set(&w->text_ids, key, (uint64_t)id->integer);
    return error == GPUPROF_LIMIT ? 0 : error;
}

int sqlite_name(struct export_writer *w, const struct kernel_name *name, const char *otherwise,
                struct sql_value *id)
{
    return name ? part_of(w, name, PART_WHOLE, name->shown, strlen(name->shown), id)
                : sqlite_text(w, otherwise, strlen(otherwise), id);
}

int sqlite_function(struct export_writer *w, const struct function *f, struct sql_value *id)
{
    uint32_t *ids = array_reach(w->function_ids, &w->function_count, f->index, sizeof *ids);
    if (!ids)
        return GPUPROF_NO_MEMORY;
    w->function_ids = ids;
    *id = sql_integer(w->function_ids[f->index]);
    if (w->function_ids[f->index])
        return 0;
    int error = sqlite_text(w, f->name, strlen(f->name), id);
    if (error == 0 && id->integer <= UINT32_MAX)
        w->function_ids[f->index] = (uint32_t)id->integer;
    return error;
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
    return *bytes ? begin : text;
}

int sqlite_kernel(struct export_writer *w, const struct kernel_name *name, uint64_t number,
                  struct sql_value *demangled, struct sql_value *base, struct sql_value *mangled)
{
    char unknown[48];
    size_t bytes;
    if (!name) {
        int length = snprintf(unknown, sizeof unknown, "kernel %llu", (unsigned long long)number);
        int error = sqlite_text(w, unknown, (size_t)length, demangled);
        *base = *demangled;
        return error;
    }
    const char *text = base_of(name->shown, &bytes);
    int error = sqlite_name(w, name, "", demangled);
    if (error == 0)
        error = part_of(w, name, PART_BASE, text, bytes ? bytes : strlen(text), base);
    return error < 0 ? error : part_of(w, name, PART_RAW, name->raw, name->raw_bytes, mangled);
}

int sqlite_inputs(struct export_writer *w, const struct kernel_name *inputs, struct sql_value *id)
{
    struct key key = {(uintptr_t)inputs, PART_INPUTS, 1};
    uint64_t number = inputs ? key_map_get(&w->text_ids, key) : 0;
    *id = sql_integer_or_null(number);
    if (number || !inputs)
        return 0;
    char *text = malloc(OP_TEXT_BYTES(inputs->raw_bytes));
    if (!text)
        return GPUPROF_NO_MEMORY;
    char *end = op_put_dims(text, inputs->raw, inputs->raw_bytes);
    int error = part_of(w, inputs, PART_INPUTS, text, (size_t)(end - text), id);
    free(text);
    return error;
}

void sqlite_texts_release(struct export_writer *w)
{
    kernel_names_release(&w->texts);
    key_map_release(&w->text_ids);
    free(w->function_ids);
}
