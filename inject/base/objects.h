/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loaded objects of the process and their symbols, read from the ELF structures in memory. We
 * do not use dlopen, dlsym or dladdr: they change the program's next dlerror(), and dlsym is one of
 * the functions that we intercept. Nothing here allocates memory.
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
    const char *path; /* "" for the program itself; owned by the loader */
    uintptr_t base;
    uintptr_t low; /* start of its loaded segments */
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

/* dl_iterate_phdr with all signals blocked. If a handler left it by longjmp, the loader's lock
 * would stay held (this was observed). */
int objects_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);

/*
 * Call these around code that takes the lock of the loader's list, with signals blocked. Without
 * them a fork() in between would leave the child with that lock held by a thread that does not
 * exist there, and the child's dlopen would hang. fork() waits until no thread is inside, and
 * entering threads wait for fork(); both waits have a time limit.
 */
void loader_enter(void);
void loader_leave(void);

/* Called before fork(), and after it in parent and child (forked.c). */
void loader_before_fork(void);
void loader_after_fork(bool is_child);

/* Called once in the child of any fork. Returns false if a thread was inside after all (_Fork or a
 * raw clone): the lock may then be held for ever. */
bool loader_reset(void);

/*
 * For each function not found yet, finds the first definition after ours in load order. If there is
 * none it takes the first definition of all: if the driver loaded us, the C library comes before
 * us. Any number of threads may call it at once.
 */
void objects_next(const char *const *names, _Atomic(void *) *found, unsigned count);

/* The object as the loader's list entry describes it, without its address range and headers. Does
 * not wait. */
struct object object_of_map(const struct link_map *map);

/* Number of objects loaded so far, including unloaded ones. */
uint64_t objects_loaded(void);

/* The address of a function or object that `object` defines under `name`, NULL if none. */
void *object_symbol(const struct object *object, const char *name);

/* The same, with the symbol's size. */
void *object_symbol_sized(const struct object *object, const char *name, size_t *bytes);

/* Where `object` keeps the address of a function that it imports, or NULL. */
void **object_import(const struct object *object, const char *name);

/*
 * Calls `visit` with each name that `object` imports, and where it keeps the address, until it
 * returns true; returns that.
 */
bool object_each_import(const struct object *object,
                        bool (*visit)(void **slot, const char *name, void *data), void *data);

/* Redirects the object's calls through `slot` to `to`, even if the loader has made the slot
 * read-only. */
bool object_divert(const struct object *object, void **slot, void *to);

/* The loaded object that contains `address`; false if none. */
bool object_at(uintptr_t address, struct object *object);

static inline bool object_has(const struct object *object, uintptr_t address)
{
    return address - object->low < object->high - object->low;
}

/* Is the object this library? */
static inline bool object_is_ours(const struct object *object)
{
    return object_has(object, (uintptr_t)&object_at);
}

/* True if `object` has `soname`, or a path that ends in it, among its DT_NEEDED entries. */
bool object_needs(const struct object *object, const char *soname);

/* Does the process run under valgrind? It reads all readable memory, and not as the kernel does.
 * Checks once. */
bool objects_are_watched(void);

/* Returns DT_SONAME, or the last part of the path if there is none. Never NULL. */
const char *object_soname(const struct object *object);

/*
 * True if the soname is `stem`, or `stem` followed by '.' and anything ("libcuda.so" + ".1"); with
 * or without the hash that the copies in Python wheels have ("libcudart-d0da41ae.so.11.0").
 */
bool object_is(const struct object *object, const char *stem);

/* The same, or one of the library's parts, which have longer names ("libcudnn_ops.so.9"). */
bool object_is_part(const struct object *object, const char *stem);

#endif
