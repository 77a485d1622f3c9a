/* SPDX-License-Identifier: Apache-2.0 */
#include "record/os_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

void os_functions_release(struct os_functions *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        free(f->list[i]);
    free(f->list);
    *f = (struct os_functions){0};
}

int os_functions_take(struct os_functions *f, const struct record *r)
{
    size_t length = r->byte_count < OS_NAME_BYTES_MAX ? r->byte_count : OS_NAME_BYTES_MAX;
    if (r->code >= OS_FUNCTIONS_MAX || !length || os_function_of(f, r))
        return 0;
    struct os_function **list = array_reach(f->list, &f->count, r->code, sizeof *list);
    if (!list)
        return GPUPROF_NO_MEMORY;
    f->list = list;
    struct os_function *made = calloc(1, sizeof *made + length + 1);
    if (!made)
        return GPUPROF_NO_MEMORY;
    made->class = record_arg(r, OS_FUNCTION_CLASS);
    memcpy(made->name, r->bytes, length);
    list[r->code] = made;
    return 0;
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
