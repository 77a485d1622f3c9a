/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/workers.h"

void kernel_names_limit(struct kernel_names *names, uint64_t bytes)
{
    bytes = min_of(bytes, KERNEL_NAME_TEXT_MAX); /* enough for both limits */
    uint64_t text = KERNEL_NAME_TEXT_FREE + bytes * KERNEL_NAME_TEXT_PER_BYTE;
    uint64_t handles = KERNEL_HANDLES_FREE + bytes / KERNEL_HANDLE_BYTES;
    names->text_max = min_of(text, KERNEL_NAME_TEXT_MAX);
    names->handles_max = (uint32_t)min_of(handles, KERNEL_HANDLES_MAX);
}

void kernel_names_release(struct kernel_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        struct kernel_name *name = names->list[i].name;
        if (name->shown != name->raw)
            free((char *)name->shown);
        free(name->json);
        free(name);
    }
    free(names->list);
    number_set_release(&names->set);
    *names = (struct kernel_names){0};
}

void kernel_handles_release(struct kernel_names *names, struct kernel_handles *handles)
{
    names->handle_count -= handles->names.count;
    key_map_release(&handles->names);
}

static struct kernel_name *name_make(struct kernel_names *names, const char *text, size_t length)
{
    struct kernel_name *name = memory_new(1, sizeof *name + length + 1);
    memcpy(name->raw, text, length);
    name->raw_bytes = (uint32_t)length;
    char *shown =
        names->plain ? NULL : demangle(name->raw, KERNEL_NAME_BYTES_MAX, &names->demangle_failures);
    name->shown = shown ? shown : name->raw;
    name->json = memory_from(json_string(name->shown, strlen(name->shown)));
    name->json_bytes = (uint32_t)strlen(name->json);
    return name;
}

static uint32_t kernel_names_hash_of(const void *item)
{
    return ((const struct known_name *)item)->hash;
}

static bool kernel_names_is_same(const void *left, const void *right)
{
    const struct known_name *a = left, *b = right;
    return a->hash == b->hash && a->bytes == b->bytes && memcmp(a->raw, b->raw, a->bytes) == 0;
}

const struct kernel_name *kernel_name_intern(struct kernel_names *names, const void *text,
                                             size_t length)
{
    static const struct number_kind kind = {sizeof(struct known_name), 0, kernel_names_hash_of,
                                            kernel_names_is_same};
    struct known_name wanted = {NULL, text, (uint32_t)length, text_hash(text, length)};
    uint32_t *number = number_set_find(&names->set, &kind, names->list, names->count, &wanted);
    if (*number)
        return names->list[*number - 1].name;
    uint64_t text_max = names->text_max ? names->text_max : KERNEL_NAME_TEXT_MAX;
    if (names->count >= KERNEL_NAMES_MAX || names->text_bytes + length > text_max) {
        names->dropped++;
        return NULL;
    }
    wanted.name = name_make(names, text, length);
    wanted.raw = wanted.name->raw;
    ARRAY_PUSH(names->list, names->count, &wanted);
    *number = wanted.name->number = names->count;
    names->text_bytes +=
        sizeof *wanted.name + length + strlen(wanted.name->shown) + wanted.name->json_bytes;
    return wanted.name;
}

void kernel_name_set(struct kernel_names *names, struct kernel_handles *handles, uint64_t handle,
                     const void *text, size_t length)
{
    const struct kernel_name *name = length ? kernel_name_intern(names, text, length) : NULL;
    const struct key key = {.a = handle};
    bool is_known = key_map_get(&handles->names, key);
    if (!name && is_known) {
        key_map_remove(&handles->names, key);
        names->handle_count--;
    }
    if (!name)
        return;
    if (!is_known &&
        names->handle_count >= (names->handles_max ? names->handles_max : KERNEL_HANDLES_MAX)) {
        names->dropped++;
        return;
    }
    names->handle_count += !is_known;
    handles->names.count_max = KERNEL_HANDLES_MAX;
    (void)key_map_set(&handles->names, key, (uintptr_t)name);
}

const struct kernel_name *kernel_name_of(const struct kernel_handles *handles, uint64_t handle)
{
    return (const struct kernel_name *)(uintptr_t)key_map_get(&handles->names,
                                                              (struct key){.a = handle});
}

/* ---- demangling ------------------------------------------------------------------------------ */

/*
 * A mangled name of a few hundred bytes can stand for gigabytes and occupy a demangler for years:
 * in f(pair<A, A>, pair<B, B>, ...) each argument names the previous one twice. Neither the C++
 * library's demangler nor libiberty's (for Rust) bounds that. So names with too many back
 * references are demangled in a child process with a time limit.
 */

#define HARMLESS_REFERENCES 16   /* at most 2^8 or 3^5 times as long */
#define HARMLESS_BYTES      4096 /* older libiberty does not bound its recursion */
#define CHILD_SECONDS       0.2  /* names of tens of kilobytes take some milliseconds */

struct question {
    const char *mangled;
    size_t bytes_max;
};

/* From the C++ ABI library, as <cxxabi.h> is no C header. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* From libiberty, whose header declares many C library names again. */
char *rust_demangle(const char *mangled, int options);

/* Returns true for few back references (C++: S_, S1_, T_; Rust: B_, B1_), no pack expansion (Dp,
 * sp) and no lifetime list with a count from the name (FG1_, DG1_). */
static bool is_harmless(const char *mangled)
{
    bool rust = mangled[1] == 'R';
    unsigned references = 0;
    const char *p = mangled;
    for (; *p; p++) {
        bool numbered = p[1] == '_' || (p[1] >= '0' && p[1] <= '9') || (p[1] >= 'A' && p[1] <= 'Z');
        references += rust ? *p == 'B' : (*p == 'S' || *p == 'T') && numbered;
        if (rust ? (p[0] == 'D' || p[0] == 'F') && p[1] == 'G' && p[2] != '_'
                 : (p[0] == 'D' || p[0] == 's') && p[1] == 'p')
            return false;
    }
    return references <= HARMLESS_REFERENCES && p - mangled <= HARMLESS_BYTES;
}

/* Rust's older mangling looks like a C++ name with a hash at its end. */
static char *demangle_here(const char *mangled)
{
    int status = 0;
    char *shown = rust_demangle(mangled, 0);
    return shown || mangled[1] == 'R' ? shown : __cxa_demangle(mangled, NULL, NULL, &status);
}

/* Runs in the child: writes the demangled name, or its begin; "" if it cannot be demangled. */
static void put_demangled(void *result, void *context)
{
    const struct question *question = context;
    char *shown = demangle_here(question->mangled);
    if (shown)
        strncpy(result, shown, question->bytes_max + 1);
}

/* Like demangle, for a name that may grow. */
static char *demangle_aside(const char *mangled, size_t bytes_max, unsigned *failures)
{
    struct question question = {mangled, bytes_max};
    char *text = memory_new(bytes_max + 2, 1);
    bool has_ended = aside_run(put_demangled, text, bytes_max + 2, &question, CHILD_SECONDS);
    if (has_ended && *text && strlen(text) <= bytes_max)
        return text;
    *failures += !has_ended || *text;
    free(text);
    return NULL;
}

char *demangle(const char *mangled, size_t bytes_max, unsigned *failures)
{
    if (mangled[0] != '_' || (mangled[1] != 'Z' && mangled[1] != 'R'))
        return NULL;
    if (!is_harmless(mangled))
        return *failures < DEMANGLE_FAILURES_MAX ? demangle_aside(mangled, bytes_max, failures)
                                                 : NULL;
    char *shown = demangle_here(mangled);
    if (!shown || strlen(shown) <= bytes_max)
        return shown;
    free(shown);
    return NULL;
}

void kernel_name_strip(char *name)
{
    static const char unnamed[] = "(anonymous namespace)::";
    size_t begin = 0, written = 0, angles = 0, parentheses = 0; /* the last two count open ones */
    const char *from = name;
    for (; *from; from++) {
        if (!angles && strncmp(from, unnamed, sizeof unnamed - 1) == 0)
            from += sizeof unnamed - 2;
        else if (*from == '(' && !angles)
            break; /* parameters follow */
        else if (*from == '(')
            parentheses++;
        else if (*from == ')')
            parentheses -= parentheses > 0;
        else if (*from == '<' && !parentheses) /* otherwise a comparison: f<(3 < 4)> */
            angles++;
        else if (*from == '>' && !parentheses)
            angles -= angles > 0;
        else if (!angles)
            name[written++] = *from;
        if (*from == ' ' && !angles)
            begin = written;
    }
    if (*from) { /* without parameters, the word before a space is not a type */
        memmove(name, name + begin, written - begin);
        written -= begin;
    }
    name[written] = '\0';
}
