/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "symbol/demangle.h"

static uint64_t handle_hash(uint64_t handle)
{
    return (handle * 0x9E3779B97F4A7C15u) >> 32;
}

static uint32_t bytes_hash(const uint8_t *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ text[i]) * 16777619u;
    return hash;
}

static void name_free(struct kernel_name *name)
{
    if (name->shown != name->raw)
        free((char *)name->shown);
    free(name->json);
    free(name);
}

void kernel_names_limit(struct kernel_names *names, uint64_t bytes)
{
    uint64_t text = KERNEL_NAME_TEXT_MAX - KERNEL_NAME_TEXT_FREE;
    uint64_t handles = KERNEL_HANDLES_MAX - KERNEL_HANDLES_FREE;
    if (bytes < text / KERNEL_NAME_TEXT_PER_BYTE)
        text = bytes * KERNEL_NAME_TEXT_PER_BYTE;
    if (bytes / KERNEL_HANDLE_BYTES < handles)
        handles = bytes / KERNEL_HANDLE_BYTES;
    names->text_max = KERNEL_NAME_TEXT_FREE + text;
    names->handles_max = KERNEL_HANDLES_FREE + (uint32_t)handles;
}

void kernel_names_release(struct kernel_names *names)
{
    for (uint32_t i = 0; i < names->slot_count; i++)
        if (names->slots[i])
            name_free(names->slots[i]);
    free(names->slots);
    *names = (struct kernel_names){0};
}

void kernel_handles_release(struct kernel_names *names, struct kernel_handles *handles)
{
    names->handle_count -= handles->count;
    free(handles->slots);
    *handles = (struct kernel_handles){0};
}

/* `known`: as it is to be shown; NULL: it is demangled. */
static struct kernel_name *name_make(struct kernel_names *names, const uint8_t *text, size_t length,
                                     const char *known)
{
    struct kernel_name *name = malloc(sizeof *name + length + 1);
    if (!name)
        return NULL;
    memcpy(name->raw, text, length);
    name->raw[length] = '\0';
    name->raw_bytes = (uint32_t)length;
    char *shown = known ? strdup(known)
                  : names->plain
                      ? NULL
                      : demangle(name->raw, KERNEL_NAME_BYTES_MAX, &names->demangle_failures);
    name->shown = shown ? shown : name->raw;
    name->json = json_string(name->shown, strlen(name->shown));
    if (!name->json) {
        name_free(name);
        return NULL;
    }
    name->json_bytes = (uint32_t)strlen(name->json);
    return name;
}

static int names_grow(struct kernel_names *names)
{
    uint32_t slot_count = names->slot_count ? 2 * names->slot_count : 1024;
    struct kernel_name **slots = calloc(slot_count, sizeof(struct kernel_name *));
    if (!slots)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < names->slot_count; i++) {
        if (!names->slots[i])
            continue;
        uint32_t at = names->slots[i]->hash & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = names->slots[i];
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    return 0;
}

static int intern(struct kernel_names *names, const uint8_t *text, size_t length, const char *shown,
                  const struct kernel_name **found)
{
    *found = NULL;
    if (names->count >= names->slot_count / 2 && names_grow(names) < 0)
        return GPUPROF_NO_MEMORY;
    uint32_t hash = bytes_hash(text, length);
    uint32_t at = hash & (names->slot_count - 1);
    for (; names->slots[at]; at = (at + 1) & (names->slot_count - 1)) {
        struct kernel_name *name = names->slots[at];
        if (name->hash == hash && name->raw_bytes == length &&
            memcmp(name->raw, text, length) == 0) {
            *found = name;
            return 0;
        }
    }
    uint64_t text_max = names->text_max ? names->text_max : KERNEL_NAME_TEXT_MAX;
    if (names->count >= KERNEL_NAMES_MAX || names->text_bytes + length > text_max) {
        names->dropped++;
        return 0;
    }
    struct kernel_name *name = name_make(names, text, length, shown);
    if (!name)
        return GPUPROF_NO_MEMORY;
    name->hash = hash;
    names->text_bytes += sizeof *name + length + strlen(name->shown) + name->json_bytes;
    names->slots[at] = name;
    names->count++;
    *found = name;
    return 0;
}

int kernel_name_intern(struct kernel_names *names, const uint8_t *text, size_t length,
                       const struct kernel_name **found)
{
    return intern(names, text, length, NULL, found);
}

int kernel_name_intern_shown(struct kernel_names *names, const char *text, const char *shown,
                             const struct kernel_name **found)
{
    return intern(names, (const uint8_t *)text, strlen(text), shown, found);
}

/* Of a handle that had a name. */
static const struct kernel_name nameless;

static struct kernel_handle *handle_slot(struct kernel_handle *slots, uint32_t slot_count,
                                         uint64_t handle)
{
    uint32_t at = (uint32_t)handle_hash(handle) & (slot_count - 1);
    while (slots[at].name && slots[at].handle != handle)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

static int handles_grow(struct kernel_handles *handles)
{
    uint32_t slot_count = handles->slot_count ? 2 * handles->slot_count : 64;
    struct kernel_handle *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < handles->slot_count; i++)
        if (handles->slots[i].name)
            *handle_slot(slots, slot_count, handles->slots[i].handle) = handles->slots[i];
    free(handles->slots);
    handles->slots = slots;
    handles->slot_count = slot_count;
    return 0;
}

int kernel_name_set(struct kernel_names *names, struct kernel_handles *handles, uint64_t handle,
                    const uint8_t *text, size_t length)
{
    const struct kernel_name *name = NULL;
    int error = length ? kernel_name_intern(names, text, length, &name) : 0;
    if (error < 0 || !name) {
        if (error == 0 && kernel_name_of(handles, handle))
            handle_slot(handles->slots, handles->slot_count, handle)->name = &nameless;
        return error;
    }
    if (handles->count >= handles->slot_count / 2 && handles_grow(handles) < 0)
        return GPUPROF_NO_MEMORY;
    struct kernel_handle *slot = handle_slot(handles->slots, handles->slot_count, handle);
    if (!slot->name) {
        if (names->handle_count >= (names->handles_max ? names->handles_max : KERNEL_HANDLES_MAX)) {
            names->dropped++;
            return 0;
        }
        names->handle_count++;
        handles->count++;
    }
    *slot = (struct kernel_handle){.handle = handle, .name = name};
    return 0;
}

const struct kernel_name *kernel_name_of(const struct kernel_handles *handles, uint64_t handle)
{
    if (!handles->slot_count)
        return NULL;
    const struct kernel_name *name = handle_slot(handles->slots, handles->slot_count, handle)->name;
    return name == &nameless ? NULL : name;
}
