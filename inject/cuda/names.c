/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/names.h"

#include <string.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/thread.h"

#define NAMES_FIRST     4096u        /* entries at start; doubles */
#define NAMES_MAX       (1u << 22)   /* PyTorch registers about 10^5 */
#define NAME_BYTES_MAX  4096u        /* kept of one name */
#define ARENA_BYTES     (256u << 10) /* copied names, a piece at a time */
#define ARENA_BYTES_MAX (64u << 20)
#define NAMES_LOCK_NS   2000000000u

_Static_assert(NAME_BYTES_MAX <= RECORD_BYTES_MAX, "a name fits into a record");
_Static_assert(NAME_CACHE_SLOTS == 1u << 12, "name_slot takes 12 bits");

struct entry {
    uint64_t handle; /* 0 = free */
    uint64_t module;
    const char *name;    /* NULL: its module is gone */
    uint32_t next;       /* of the module's entries, index + 1 */
    uint16_t generation; /* definitions of this handle so far */
    bool written;        /* the NAME record of this generation is in the stream */
};

struct module {
    uint64_t handle; /* 0 = free */
    uint32_t first;  /* entry index + 1 */
};

struct table {
    struct entry *entries; /* mmap'ed; open addressing */
    uint32_t capacity;
    uint32_t used;
    struct module *modules;
    uint32_t module_capacity;
    uint32_t module_used;
    char *arena;
    size_t arena_free;
    size_t arena_total;
};

/* By any thread that meets or defines a name, under the lock; the cache is read without. */
_Atomic uint64_t name_cache[NAME_CACHE_SLOTS];
static struct table names;
static struct lock names_lock;

static uint32_t hash_of(uint64_t handle)
{
    return (uint32_t)((handle * 0x9E3779B97F4A7C15u) >> 32);
}

/* The entry of `handle`, or the free one where it belongs. */
static struct entry *entry_at(struct entry *entries, uint32_t capacity, uint64_t handle)
{
    uint32_t i = hash_of(handle) & (capacity - 1);
    while (entries[i].handle && entries[i].handle != handle)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

static struct module *module_at(struct module *modules, uint32_t capacity, uint64_t handle)
{
    uint32_t i = hash_of(handle) & (capacity - 1);
    while (modules[i].handle && modules[i].handle != handle)
        i = (i + 1) & (capacity - 1);
    return &modules[i];
}

/* Entries move, so the chains of the modules are made anew. */
static bool grow_entries(void)
{
    uint32_t capacity = names.capacity ? 2 * names.capacity : NAMES_FIRST;
    if (capacity > NAMES_MAX)
        return false;
    struct entry *entries = pages_map(capacity * sizeof *entries);
    if (!entries)
        return false;
    for (uint32_t i = 0; i < names.module_capacity; i++)
        names.modules[i].first = 0;
    for (uint32_t i = 0; i < names.capacity; i++) {
        if (!names.entries[i].handle)
            continue;
        struct entry *e = entry_at(entries, capacity, names.entries[i].handle);
        *e = names.entries[i];
        e->next = 0;
        if (e->module && e->name) {
            struct module *m = module_at(names.modules, names.module_capacity, e->module);
            e->next = m->first;
            m->first = (uint32_t)(e - entries) + 1;
        }
    }
    struct entry *old = names.entries;
    uint32_t old_capacity = names.capacity;
    names.entries = entries; /* before the old ones go: another thread may be forking meanwhile */
    names.capacity = capacity;
    if (old)
        munmap(old, old_capacity * sizeof *old);
    return true;
}

static bool grow_modules(void)
{
    uint32_t capacity = names.module_capacity ? 2 * names.module_capacity : 1024;
    struct module *modules = capacity > NAMES_MAX ? NULL : pages_map(capacity * sizeof *modules);
    if (!modules)
        return false;
    for (uint32_t i = 0; i < names.module_capacity; i++)
        if (names.modules[i].handle)
            *module_at(modules, capacity, names.modules[i].handle) = names.modules[i];
    struct module *old = names.modules;
    uint32_t old_capacity = names.module_capacity;
    names.modules = modules; /* as in grow_entries */
    names.module_capacity = capacity;
    if (old)
        munmap(old, old_capacity * sizeof *old);
    return true;
}

static const char *copy_name(const char *name)
{
    size_t length = strnlen(name, NAME_BYTES_MAX);
    if (length + 1 > names.arena_free) {
        char *arena = names.arena_total < ARENA_BYTES_MAX ? pages_map(ARENA_BYTES) : NULL;
        if (!arena)
            return NULL;
        names.arena = arena;
        names.arena_free = ARENA_BYTES;
        names.arena_total += ARENA_BYTES;
    }
    char *copy = names.arena;
    memcpy(copy, name, length);
    copy[length] = '\0';
    if (name[length])
        counter_add(COUNTER_NAMES_TRUNCATED, 1);
    names.arena += length + 1;
    names.arena_free -= length + 1;
    return copy;
}

/* With the lock held. Defining a handle by the same name again changes nothing. */
static bool define(uint64_t handle, const char *name, bool copy, uint64_t module)
{
    if (2 * names.used >= names.capacity && !grow_entries())
        return false;
    struct entry *e = entry_at(names.entries, names.capacity, handle);
    if (e->name && e->module == module && strcmp(e->name, name) == 0)
        return true;
    const char *kept = copy ? copy_name(name) : name;
    if (!kept)
        return false;
    if (module && 2 * names.module_used >= names.module_capacity && !grow_modules())
        return false;
    if (!e->handle)
        names.used++;
    bool chained = e->module && e->name; /* already on a chain: leave it there, it is harmless */
    e->handle = handle;
    e->name = kept;
    e->generation++;
    e->written = false;
    if (module && !chained) {
        struct module *m = module_at(names.modules, names.module_capacity, module);
        if (!m->handle) {
            m->handle = module;
            names.module_used++;
        }
        e->next = m->first;
        m->first = (uint32_t)(e - names.entries) + 1;
    }
    if (!chained || module == 0)
        e->module = module;
    /* Threads must meet the new meaning: out of the cache with the old one. */
    uint64_t cached = handle;
    atomic_compare_exchange_strong(&name_cache[name_slot(handle)], &cached, 0);
    return true;
}

void name_define(uint64_t handle, const char *name, bool copy, uint64_t module)
{
    if (!handle || !name)
        return;
    if (!lock_take(&names_lock, NAMES_LOCK_NS)) {
        counter_add(COUNTER_NAMES_DROPPED, 1);
        return;
    }
    if (!define(handle, name, copy, module))
        counter_add(COUNTER_NAMES_DROPPED, 1);
    lock_drop(&names_lock);
}

void name_alias(uint64_t handle, uint64_t known)
{
    if (!handle || handle == known || !lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = names.capacity ? entry_at(names.entries, names.capacity, known) : NULL;
    if (e && e->name && !define(handle, e->name, true, 0))
        counter_add(COUNTER_NAMES_DROPPED, 1);
    lock_drop(&names_lock);
}

void names_drop_module(uint64_t module)
{
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct module *m =
        names.module_capacity ? module_at(names.modules, names.module_capacity, module) : NULL;
    for (uint32_t i = m && m->handle ? m->first : 0; i; i = names.entries[i - 1].next) {
        struct entry *e = &names.entries[i - 1];
        if (e->module == module)
            e->name = NULL;
    }
    if (m)
        m->first = 0;
    lock_drop(&names_lock);
}

static struct entry *find_entry(uint64_t handle)
{
    struct entry *e = names.capacity ? entry_at(names.entries, names.capacity, handle) : NULL;
    return e && e->handle ? e : NULL;
}

/*
 * With the lock held: a copy of the entry's name, which may go as soon as the lock does, and the
 * rest of its record. From here on the name counts as written, so that no other thread writes it.
 */
static void take_name(struct entry *e, struct record *r, char *text)
{
    size_t length = strnlen(e->name, NAME_BYTES_MAX + 1);
    if (length > NAME_BYTES_MAX) {
        counter_add(COUNTER_NAMES_TRUNCATED, 1);
        length = NAME_BYTES_MAX;
    }
    memcpy(text, e->name, length);
    *r = (struct record){
        RECORD_WITH(NAME, [NAME_HANDLE] = e->handle, [NAME_GENERATION] = e->generation),
        .begin = ticks_now(), .bytes = (const uint8_t *)text, .byte_count = (uint32_t)length};
    e->written = true;
}

/* The record of that name was dropped: tried again with the next call, so nothing is lost by it. */
static void put_name_back(uint64_t handle, uint64_t generation)
{
    counter_add(COUNTER_DROPPED, (uint64_t)-1);
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = find_entry(handle);
    if (e && e->generation == generation)
        e->written = false;
    uint64_t cached = handle;
    atomic_compare_exchange_strong(&name_cache[name_slot(handle)], &cached, 0);
    lock_drop(&names_lock);
}

/* Not under the lock while it appends: that may wait for room, and others would wait for us. */
static __attribute__((noinline)) void write_name(struct thread *t, uint64_t handle)
{
    char text[NAME_BYTES_MAX];
    struct record r;
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = find_entry(handle);
    bool due = e && e->name && !e->written;
    if (due)
        take_name(e, &r, text);
    /* A handle without a name goes into the cache too: looking again would find nothing again. */
    atomic_store_explicit(&name_cache[name_slot(handle)], handle, memory_order_relaxed);
    lock_drop(&names_lock);
    if (due && !thread_append(t, &r))
        put_name_back(handle, r.args[NAME_GENERATION]);
}

void name_first_sight(struct thread *t, uint64_t handle)
{
    if (!handle)
        return;
    uint64_t signals = block_signals(); /* a name counts as written before it is */
    write_name(t, handle);
    restore_signals(signals);
}

void names_reset(void)
{
    atomic_store(&names_lock.holder, 0);
    for (uint32_t i = 0; i < names.capacity; i++)
        names.entries[i].written = false;
    for (unsigned i = 0; i < NAME_CACHE_SLOTS; i++)
        atomic_store_explicit(&name_cache[i], 0, memory_order_relaxed);
}
