/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/names.h"

#include <string.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "cuda/name_texts.h"
#include "record/thread.h"

#define NAMES_FIRST   4096u      /* initial size; doubles when needed */
#define NAMES_MAX     (1u << 22) /* PyTorch registers about 10^5 */
#define NAMES_LOCK_NS 2000000000u

_Static_assert(NAME_CACHE_SLOTS == 1u << 12, "name_slot takes 12 bits");

struct entry {
    uint64_t handle; /* 0: free */
    uint64_t module;
    const char *name;    /* NULL: the handle's meaning is not known, or no longer */
    uint32_t next;       /* next entry of the same module: index + 1 */
    uint32_t previous;   /* previous entry, likewise; 0: this is the first */
    uint16_t generation; /* how often this handle was defined */
    bool is_copy;        /* we own the copy */
    bool is_reported;    /* the handle's last NAME record has a name */
    bool is_written;     /* the NAME record of this generation is in the stream */
};

struct module {
    uint64_t handle; /* 0: free */
    uint32_t first;  /* first entry: index + 1 */
};

struct table {
    struct entry *entries; /* from mmap; hash table with open addressing */
    uint32_t capacity;
    uint32_t used;
    struct module *modules;
    uint32_t module_capacity;
    uint32_t module_used;
};

/* Used under the lock by any thread that meets or defines a name. The cache is read without the
 * lock. */
_Atomic uint64_t name_cache[NAME_CACHE_SLOTS];
static struct table names;
static struct lock names_lock;

static uint32_t names_hash_of(uint64_t handle)
{
    return (uint32_t)((handle * 0x9E3779B97F4A7C15u) >> 32);
}

/* Returns the entry of `handle`, or the free one where it belongs. */
static struct entry *names_entry_at(struct entry *entries, uint32_t capacity, uint64_t handle)
{
    uint32_t i = names_hash_of(handle) & (capacity - 1);
    while (entries[i].handle && entries[i].handle != handle)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

static struct module *module_at(struct module *modules, uint32_t capacity, uint64_t handle)
{
    uint32_t i = names_hash_of(handle) & (capacity - 1);
    while (modules[i].handle && modules[i].handle != handle)
        i = (i + 1) & (capacity - 1);
    return &modules[i];
}

static struct module *module_of(const struct entry *e)
{
    return module_at(names.modules, names.module_capacity, e->module);
}

/* Adds the entry to the chain of its module. */
static void link_entry(struct entry *e)
{
    struct module *m = module_of(e);
    uint32_t number = (uint32_t)(e - names.entries) + 1;
    e->previous = 0;
    e->next = m->first;
    if (e->next)
        names.entries[e->next - 1].previous = number;
    m->first = number;
}

static void unlink_entry(struct entry *e)
{
    if (e->next)
        names.entries[e->next - 1].previous = e->previous;
    if (e->previous)
        names.entries[e->previous - 1].next = e->next;
    else
        module_of(e)->first = e->next;
}

/* Can the entry be dropped? It has no name, and no record must say so. */
static bool is_spent(const struct entry *e)
{
    return !e->name && !e->is_reported;
}

/* Returns the next size of a table with so many entries in use; 0: too large. */
static uint32_t next_capacity(uint32_t capacity, uint32_t in_use, uint32_t first)
{
    if (!capacity)
        return first;
    if (4 * in_use <= capacity)
        return capacity;
    return 2 * capacity <= NAMES_MAX ? 2 * capacity : 0;
}

/* Drops unused entries, and enlarges the table if that is not enough. Entries move, so the modules'
 * chains are rebuilt. */
static bool grow_entries(void)
{
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < names.capacity; i++)
        in_use += names.entries[i].handle && !is_spent(&names.entries[i]);
    uint32_t capacity = next_capacity(names.capacity, in_use, NAMES_FIRST);
    struct entry *entries = capacity ? pages_map(capacity * sizeof *entries) : NULL;
    if (!entries)
        return false;
    for (uint32_t i = 0; i < names.module_capacity; i++)
        names.modules[i].first = 0;
    for (uint32_t i = 0; i < names.capacity; i++)
        if (names.entries[i].handle && !is_spent(&names.entries[i]))
            *names_entry_at(entries, capacity, names.entries[i].handle) = names.entries[i];
    struct entry *old = names.entries;
    uint32_t old_capacity = names.capacity;
    /* publish before the old table is freed: another thread may be forking */
    names.entries = entries;
    names.capacity = capacity;
    names.used = in_use;
    for (uint32_t i = 0; i < capacity; i++)
        if (entries[i].module && entries[i].name)
            link_entry(&entries[i]);
    if (old)
        munmap(old, old_capacity * sizeof *old);
    return true;
}

/* The same for modules: drops those without entries. */
static bool grow_modules(void)
{
    uint32_t in_use = 0;
    for (uint32_t i = 0; i < names.module_capacity; i++)
        in_use += names.modules[i].first != 0;
    uint32_t capacity = next_capacity(names.module_capacity, in_use, 1024);
    struct module *modules = capacity ? pages_map(capacity * sizeof *modules) : NULL;
    if (!modules)
        return false;
    for (uint32_t i = 0; i < names.module_capacity; i++)
        if (names.modules[i].first)
            *module_at(modules, capacity, names.modules[i].handle) = names.modules[i];
    struct module *old = names.modules;
    uint32_t old_capacity = names.module_capacity;
    names.modules = modules; /* as in grow_entries */
    names.module_capacity = capacity;
    names.module_used = in_use;
    if (old)
        munmap(old, old_capacity * sizeof *old);
    return true;
}

/* The handle no longer has this meaning. Removes it from the cache, so that threads notice. */
static void forget(struct entry *e)
{
    uint64_t cached = e->handle;
    if (e->name && e->module)
        unlink_entry(e);
    if (e->name && e->is_copy)
        name_text_drop(e->name);
    e->name = NULL;
    e->generation++;
    e->is_written = false;
    atomic_compare_exchange_strong(&name_cache[name_slot(e->handle)], &cached, 0);
}

static struct entry *names_find_entry(uint64_t handle)
{
    struct entry *e = names.capacity ? names_entry_at(names.entries, names.capacity, handle) : NULL;
    return e && e->handle ? e : NULL;
}

/*
 * Defines the handle. The lock must be held. Defining it again with the same name changes nothing.
 * Returns false if there is no space; the handle has no name then. `name` may be another handle's
 * copy.
 */
static bool names_define(uint64_t handle, const char *name, bool copy, uint64_t module)
{
    struct entry *e = names_find_entry(handle);
    if (e && e->name && e->module == module && strcmp(e->name, name) == 0)
        return true;
    if (e)
        forget(e);
    if ((2 * names.used >= names.capacity && !grow_entries()) ||
        (module && 2 * names.module_used >= names.module_capacity && !grow_modules()))
        return false;
    const char *kept = copy ? name_text_keep(name) : name;
    if (!kept)
        return false;
    e = names_entry_at(names.entries, names.capacity, handle);
    names.used += !e->handle;
    e->handle = handle;
    e->module = module;
    e->name = kept;
    e->is_copy = copy;
    if (!module)
        return true;
    struct module *m = module_of(e);
    names.module_used += !m->handle;
    m->handle = module;
    link_entry(e);
    return true;
}

void name_define(uint64_t handle, const char *name, bool copy, uint64_t module)
{
    char cut[NAME_BYTES_MAX + 1];
    size_t length;
    if (!handle || !name)
        return;
    const char *kept = name_as_recorded(name, cut, &length);
    if (!lock_take(&names_lock, NAMES_LOCK_NS)) {
        counter_add(COUNTER_NAMES_DROPPED, 1);
        return;
    }
    if (!names_define(handle, kept, copy || kept == cut, module))
        counter_add(COUNTER_NAMES_DROPPED, 1);
    lock_drop(&names_lock);
}

void name_alias(uint64_t handle, uint64_t known)
{
    if (!handle || handle == known)
        return;
    if (!lock_take(&names_lock, NAMES_LOCK_NS)) {
        counter_add(COUNTER_NAMES_DROPPED, 1);
        return;
    }
    const struct entry *e = names_find_entry(known);
    struct entry *old = names_find_entry(handle);
    if (e && e->name && !names_define(handle, e->name, e->is_copy, e->module))
        counter_add(COUNTER_NAMES_DROPPED, 1);
    else if ((!e || !e->name) && old && old->name)
        forget(old);
    lock_drop(&names_lock);
}

void name_forget(uint64_t handle)
{
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = names_find_entry(handle);
    if (e && e->name)
        forget(e);
    lock_drop(&names_lock);
}

void names_drop_module(uint64_t module)
{
    if (!module || !lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct module *m =
        names.module_capacity ? module_at(names.modules, names.module_capacity, module) : NULL;
    while (m && m->first)
        forget(&names.entries[m->first - 1]);
    lock_drop(&names_lock);
}

/*
 * Copies the entry's name, which may be freed as soon as the lock is released, and fills the rest
 * of its record. The lock must be held. From here on the name counts as written, so that no other
 * thread writes it.
 */
static void take_name(struct entry *e, struct record *r, char *text)
{
    size_t length = e->name ? strlen(e->name) : 0;
    memcpy(text, e->name ? e->name : "", length);
    *r = (struct record){
        RECORD_WITH(NAME, [NAME_HANDLE] = e->handle, [NAME_GENERATION] = e->generation),
        .begin = ticks_now(), .bytes = (const uint8_t *)text, .byte_count = (uint32_t)length};
    e->is_written = true;
    e->is_reported = e->name != NULL;
}

/* The NAME record was dropped. The next call tries again, so nothing is lost. */
static void put_name_back(uint64_t handle, uint64_t generation)
{
    counter_add(COUNTER_DROPPED, (uint64_t)-1);
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = names_find_entry(handle);
    if (e && e->generation == generation) {
        e->is_written = false;
        e->is_reported = true; /* it may not have been; an unneeded end record does no harm */
    }
    uint64_t cached = handle;
    atomic_compare_exchange_strong(&name_cache[name_slot(handle)], &cached, 0);
    lock_drop(&names_lock);
}

/* Does not hold the lock while it appends: that may wait for space, and other threads would wait
 * for us. */
static __attribute__((noinline)) void write_name(struct thread *t, uint64_t handle)
{
    char text[NAME_BYTES_MAX];
    struct record r;
    if (!lock_take(&names_lock, NAMES_LOCK_NS))
        return;
    struct entry *e = names_find_entry(handle);
    bool due = e && !e->is_written && (e->name || e->is_reported);
    if (due)
        take_name(e, &r, text);
    /* A handle without a name is cached, too: another search would find nothing either. */
    atomic_store_explicit(&name_cache[name_slot(handle)], handle, memory_order_relaxed);
    lock_drop(&names_lock);
    if (due && !thread_append(t, &r))
        put_name_back(handle, r.args[NAME_GENERATION]);
}

void name_first_use(struct thread *t, uint64_t handle)
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
        names.entries[i].is_written = names.entries[i].is_reported = false;
    for (unsigned i = 0; i < NAME_CACHE_SLOTS; i++)
        atomic_store_explicit(&name_cache[i], 0, memory_order_relaxed);
}
