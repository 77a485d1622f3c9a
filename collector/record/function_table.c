/* SPDX-License-Identifier: Apache-2.0 */
#include "record/function_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "crc32c.h"
#include "error.h"
#include "record/gpu_record.h"

static uint32_t function_hash(const void *item)
{
    const char *text = (*(const struct function *const *)item)->description;
    return crc32c(0, text, strlen(text)); /* one instruction for eight bytes */
}

static bool same_function(const void *a, const void *b)
{
    return strcmp((*(const struct function *const *)a)->description,
                  (*(const struct function *const *)b)->description) == 0;
}

static const struct number_kind function_kind = {
    .item_bytes = sizeof(struct function *), .hash = function_hash, .same = same_function};

void function_table_release(struct function_table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->functions[i]);
    free(t->functions);
    number_set_release(&t->numbers);
    *t = (struct function_table){0};
}

void function_codes_release(struct function_codes *codes)
{
    free(codes->numbers);
    *codes = (struct function_codes){0};
}

static unsigned word_index(const char *word, const char *(*name_of)(unsigned), unsigned count,
                           unsigned unknown)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(name_of(i), word) == 0)
            return i;
    return unknown;
}

/* This build's row of that symbol, or NULL; the search starts at its likely index. */
static const struct api_function *own_row(const char *symbol, uint32_t index)
{
    for (uint32_t i = 0; i < API_FUNCTION_COUNT; i++) {
        const struct api_function *row = &api_functions[(index + i) % API_FUNCTION_COUNT];
        if (strcmp(row->symbol, symbol) == 0)
            return row;
    }
    return NULL;
}

/* The role of most functions of a class. */
static unsigned usual_role(unsigned class)
{
    static const uint8_t classes[] = {
#define API_ROLE(NAME, class, ...) API_##class,
#include "api/api_roles.def"
    };
    unsigned role = 0;
    while (role < API_ROLE_COUNT && classes[role] != class)
        role++;
    return role;
}

/* Cuts the text of a description into the function's fields, which are views of it. */
static int function_cut(struct function *f, char *rest)
{
    char *symbol = strsep(&rest, "|"), *domain = strsep(&rest, "|");
    char *class = strsep(&rest, "|"), *args = strsep(&rest, "|");
    if (!symbol[0] || !class)
        return GPUPROF_DAMAGED;
    f->symbol = symbol;
    f->domain = (uint8_t)word_index(domain, api_domain_name, API_DOMAIN_COUNT, FUNCTION_DOMAIN_ANY);
    f->class = (uint8_t)word_index(class, api_class_name, API_CLASS_COUNT, FUNCTION_DOMAIN_ANY);
    const struct api_function *own = own_row(symbol, f->index);
    f->does = (uint8_t)(own && own->class == f->class ? own->does : usual_role(f->class));
    f->memory = own && own->class == f->class ? own->memory : API_MEMORY_NONE;
    f->name = own ? own->name : symbol;
    while (args && args[0]) {
        char *label = strsep(&args, ","), *kind = strsep(&label, ":");
        if (!label || !label[0] || f->arg_count == RECORD_ARGS_MAX)
            return GPUPROF_DAMAGED;
        /* A kind from a later version is shown as a number. */
        f->args[f->arg_count].kind =
            (uint8_t)word_index(kind, arg_kind_name, ARG_CALL_KIND_COUNT, ARG_COUNT);
        if (f->args[f->arg_count].kind == ARG_BYTES)
            f->bytes |= (uint16_t)(1u << f->arg_count);
        f->args[f->arg_count++].label = label;
    }
    for (unsigned i = 0; i < f->arg_count; i++) { /* one without the other is just a number */
        if (f->args[i].kind == ARG_DIM3_XY && i + 1 < f->arg_count &&
            f->args[i + 1].kind == ARG_DIM3_Z)
            i++;
        else if (f->args[i].kind == ARG_DIM3_XY || f->args[i].kind == ARG_DIM3_Z)
            f->args[i].kind = ARG_COUNT;
    }
    return 0;
}

static int function_make(const char *description, uint32_t index, struct function **made)
{
    size_t bytes = strlen(description) + 1;
    struct function *f = memory_new(1, sizeof *f + 2 * bytes);
    f->index = index;
    f->description = memcpy(f->text, description, bytes);
    int error = function_cut(f, memcpy(f->text + bytes, description, bytes));
    if (error < 0)
        free(f);
    else
        *made = f;
    return error;
}

/* Represents all functions beyond the maximum. */
static const char others[] = "other_functions|?|?|";

static int table_find(struct function_table *t, const char *description,
                      const struct function **found)
{
    const struct function wanted = {.description = description}, *item = &wanted;
    const uint32_t *number =
        number_set_find(&t->numbers, &function_kind, t->functions, t->count, &item);
    struct function *made = NULL;
    if (*number) {
        *found = t->functions[*number - 1];
        return 0;
    }
    if (t->count >= FUNCTIONS_MAX - (strcmp(description, others) != 0))
        return GPUPROF_LIMIT;
    int error = function_make(description, t->count, &made);
    if (error < 0)
        return error;
    *found = made;
    NUMBER_ADD(&t->numbers, &function_kind, t->functions, t->count, FUNCTIONS_MAX, &made);
    return 0;
}

static int codes_set(struct function_codes *codes, unsigned code, const struct function *f)
{
    if (code >= FUNCTION_CODES_MAX)
        return GPUPROF_LIMIT;
    codes->numbers = array_reach(codes->numbers, &codes->count, code, sizeof *codes->numbers);
    codes->numbers[code] = (uint16_t)(f->index + 1);
    return 0;
}

int function_describe(struct function_table *t, struct function_codes *codes, unsigned code,
                      const uint8_t *text, size_t length)
{
    char description[FUNCTION_BYTES_MAX + 1];
    if (length == 0 || length > FUNCTION_BYTES_MAX || memchr(text, '\0', length))
        return GPUPROF_DAMAGED;
    memcpy(description, text, length);
    description[length] = '\0';
    const struct function *f;
    int error = table_find(t, description, &f);
    return error < 0 ? error : codes_set(codes, code, f);
}

void function_set_callback(struct function_table *t, const struct function_codes *codes,
                           unsigned code, uint64_t callback)
{
    if (code < codes->count && codes->numbers[code] && callback <= UINT32_MAX)
        t->functions[codes->numbers[code] - 1]->callback = (uint32_t)callback;
}

/* Writes the description of this build's function. */
static void describe_own(unsigned code, char text[static FUNCTION_BYTES_MAX + 1])
{
    const struct api_function *api = &api_functions[code];
    int at = snprintf(text, FUNCTION_BYTES_MAX + 1, "%s|%s|%s|", api->symbol,
                      api_domain_name(api->domain), api_class_name(api->class));
    for (unsigned i = 0; i < api->arg_count && at < FUNCTION_BYTES_MAX; i++)
        at += snprintf(text + at, FUNCTION_BYTES_MAX + 1 - (size_t)at, "%s%s:%s", i ? "," : "",
                       arg_kind_name(api->args[i].kind), api->args[i].label);
}

__attribute__((noinline)) const struct function *
function_made_up(struct function_table *t, struct function_codes *codes, unsigned code)
{
    char text[FUNCTION_BYTES_MAX + 1];
    const struct function *f;
    if (codes->is_own && code < API_FUNCTION_COUNT)
        describe_own(code, text);
    else
        snprintf(text, sizeof text, "function_%u|?|?|", code);
    int error = table_find(t, text, &f);
    if (error == GPUPROF_LIMIT)
        error = table_find(t, others, &f);
    if (error < 0)
        return NULL;
    codes_set(codes, code, f); /* only a cache: without it the next call searches again */
    return f;
}

/* ---- system functions ------------------------------------------------------------------------ */

void os_functions_release(struct os_functions *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        free(f->list[i]);
    free(f->list);
    *f = (struct os_functions){0};
}

void os_functions_take(struct os_functions *f, const struct record *r)
{
    size_t length = r->byte_count < OS_NAME_BYTES_MAX ? r->byte_count : OS_NAME_BYTES_MAX;
    if (r->code >= OS_FUNCTIONS_MAX || !length || os_function_of(f, r))
        return;
    struct os_function **list = array_reach(f->list, &f->count, r->code, sizeof *list);
    f->list = list;
    struct os_function *made = memory_new(1, sizeof *made + length + 1);
    made->class = record_arg(r, OS_FUNCTION_CLASS);
    memcpy(made->name, r->bytes, length);
    list[r->code] = made;
}

const char *os_function_name(const struct os_functions *f, const struct record *r,
                             char text[static OS_TEXT_BYTES])
{
    const struct os_function *function = os_function_of(f, r);
    if (function)
        return function->name;
    snprintf(text, OS_TEXT_BYTES, "os_function_%u", r->code);
    return text;
}

const char *os_class_text(uint64_t class)
{
    static const char *const names[OS_CLASS_COUNT] = {
        [OS_FILE] = "file",           [OS_SOCKET] = "socket",       [OS_POLL] = "poll",
        [OS_SLEEP] = "sleep",         [OS_PROCESS] = "process",     [OS_LOCK] = "lock",
        [OS_CONDITION] = "condition", [OS_SEMAPHORE] = "semaphore", [OS_BARRIER] = "barrier",
        [OS_THREAD] = "thread",       [OS_MEMORY] = "memory",       [OS_LOAD] = "load",
        [OS_DEVICE] = "device",       [OS_FUTEX] = "futex"};
    const char *name = class < OS_CLASS_COUNT ? names[class] : NULL;
    return name ? name : "other";
}
