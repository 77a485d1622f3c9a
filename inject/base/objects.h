/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loaded objects of the process and their symbols, read from the ELF structures in memory. Used
 * instead of dlopen/dlsym/dladdr because those change what the program's next dlerror() says, and
 * because dlsym is what we intercept. Nothing is allocated.
 */
#ifndef GPUPROF_INJECT_OBJECTS_H
#define GPUPROF_INJECT_OBJECTS_H

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object {
    const char *path; /* "" for the program itself; a view */
    uintptr_t base;
    uintptr_t low; /* the range of its loaded segments */
    uintptr_t high;
    const ElfW(Phdr) * headers;
    unsigned header_count;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t string_bytes;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
    const ElfW(Half) * versions;
};

/*
 * Calls `visit` for each loaded object in load order (the program, preloads, dependencies, later
 * ones) until it returns non-zero; returns that. Takes the loader's list lock, as the unwinder
 * does.
 */
int objects_each(int (*visit)(const struct object *object, void *data), void *data);

/*
 * dl_iterate_phdr with all signals blocked: a handler that left it by longjmp would leave the
 * loader's lock held (seen).
 */
int objects_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);

/*
 * Around whatever takes the lock of the loader's list, with signals blocked: a fork() meanwhile
 * would leave its child with that lock held, by a thread that is not there, and the child's own
 * dlopen would hang. So fork() waits until nobody is inside, and who wants in waits for it; neither
 * without a bound.
 */
void loader_enter(void);
void loader_leave(void);

/* In fork(), before and after it, there on both sides (forked.c). */
void loader_before_fork(void);
void loader_after_fork(bool is_child);

/*
 * In the child of any fork, once. False: a thread was inside, after all (_Fork, or a raw clone),
 * and the lock may be held for ever.
 */
bool loader_reset(void);

/*
 * Of each function that is not found yet the first definition behind ours, or the first of all
 * where none is: the driver has loaded us, behind the C library. By any number of threads at once.
 */
void objects_next(const char *const *names, _Atomic(void *) *found, unsigned count);

/* What the loader's own entry says: neither its range nor its headers. Waits for nobody. */
struct object object_of_map(const struct link_map *map);

/* How many objects have been loaded so far, the unloaded ones too. */
uint64_t objects_loaded(void);

/* The address of a function or object that `object` defines under `name`, NULL if none. */
void *object_symbol(const struct object *object, const char *name);

/* The same, and its size as the symbol has it. */
void *object_symbol_sized(const struct object *object, const char *name, size_t *bytes);

/* Where `object` keeps the address of a function that it imports, or NULL. */
void **object_import(const struct object *object, const char *name);

/*
 * Calls `visit` with each name that `object` imports, and where it keeps the address, until it
 * returns true; returns that.
 */
bool object_each_import(const struct object *object,
                        bool (*visit)(void **slot, const char *name, void *data), void *data);

/* Leads the object's calls through `slot` to `to`, even where the loader has sealed the slot. */
bool object_divert(const struct object *object, void **slot, void *to);

/* The loaded object that contains `address`; false if none. */
bool object_at(uintptr_t address, struct object *object);

static inline bool object_has(const struct object *object, uintptr_t address)
{
    return address - object->low < object->high - object->low;
}

/* Is it this library? */
static inline bool object_is_ours(const struct object *object)
{
    return object_has(object, (uintptr_t)&object_at);
}

/* True if `object` has `soname`, or a path that ends in it, among its DT_NEEDED entries. */
bool object_needs(const struct object *object, const char *soname);

/* Is the process run by valgrind, which reads all memory that can be read, and not as the kernel
 * does? Looks once. */
bool objects_are_watched(void);

/* DT_SONAME, else the last part of the path. Never NULL. */
const char *object_soname(const struct object *object);

/*
 * True if the soname is `stem`, or `stem` followed by '.' and anything ("libcuda.so" + ".1"); with
 * or without the hash that the copies in Python wheels have ("libcudart-d0da41ae.so.11.0").
 */
bool object_is(const struct object *object, const char *stem);

/* The same, or a part of that library, which are named after it ("libcudnn_ops.so.9"). */
bool object_is_part(const struct object *object, const char *stem);

#endif
