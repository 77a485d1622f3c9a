/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "futex.h"
#include "objects.h"

#define BINDINGS_MAX  16384
#define BIND_LOCK_NS  2000000000u
#define PAGE_BYTES    4096u
#define LOOKED_AT_MAX 16

struct binding bindings[HOOK_SLOT_COUNT];

static struct binding arena[BINDINGS_MAX];          /* the further ones */
static struct binding last_resort[HOOK_SLOT_COUNT]; /* when the arena is full or locked */
static _Atomic uint32_t arena_used;
static struct lock bind_lock;

/* Any slot's, by a number below HOOK_SLOT_COUNT + arena_used. */
static struct binding *binding_at(uint32_t i)
{
    return i < HOOK_SLOT_COUNT ? &bindings[i] : &arena[i - HOOK_SLOT_COUNT];
}

/* Objects that were looked at: is one CUDA's, or stands in for it? resolve_refresh empties it. */
static struct {
    _Atomic uint32_t version; /* odd while the entry is written */
    _Atomic uintptr_t low;
    _Atomic uintptr_t bytes;
    _Atomic bool is_cuda;
} looked_at[LOOKED_AT_MAX];

static int find_looked_at(uintptr_t address)
{
    for (int i = 0; i < LOOKED_AT_MAX; i++) {
        uint32_t version = atomic_load(&looked_at[i].version);
        bool inside = address - atomic_load(&looked_at[i].low) < atomic_load(&looked_at[i].bytes);
        bool is_cuda = atomic_load(&looked_at[i].is_cuda);
        if (inside && !(version & 1) && atomic_load(&looked_at[i].version) == version)
            return is_cuda;
    }
    return -1;
}

static void add_looked_at(const struct object *o, bool is_cuda)
{
    static _Atomic uint32_t next;
    unsigned i = atomic_fetch_add(&next, 1) % LOOKED_AT_MAX;
    uint32_t version = atomic_load(&looked_at[i].version);
    if (version & 1 ||
        !atomic_compare_exchange_strong(&looked_at[i].version, &version, version + 1))
        return;
    atomic_store(&looked_at[i].low, o->low);
    atomic_store(&looked_at[i].bytes, o->high - o->low);
    atomic_store(&looked_at[i].is_cuda, is_cuda);
    atomic_store(&looked_at[i].version, version + 2);
}

bool resolve_is_cuda(uintptr_t caller)
{
    struct object o;
    int is_cuda = find_looked_at(caller);
    if (is_cuda < 0 && object_at(caller, &o)) {
        is_cuda = object_is(&o, "libcuda.so") || object_is(&o, "libcudart.so");
        for (uint32_t i = HOOK_SLOT_COUNT + atomic_load(&arena_used); !is_cuda && i > 0; i--)
            is_cuda = (uintptr_t)binding_at(i - 1)->real - o.low < o.high - o.low;
        add_looked_at(&o, is_cuda);
    }
    return is_cuda > 0;
}

static void fill(struct binding *b, uintptr_t low, uintptr_t bytes, void *real,
                 uint32_t runtime_major)
{
    b->low = low;
    b->real = real;
    b->runtime_major = runtime_major;
    atomic_store(&b->bytes, bytes);
}

/* Appends or fills an empty entry, so that readers never meet a list that lost one. */
static const struct binding *bind(unsigned slot, uintptr_t low, uintptr_t bytes, void *real,
                                  uint32_t runtime_major)
{
    bool locked = lock_take(&bind_lock, BIND_LOCK_NS);
    struct binding *b = &bindings[slot], *last = b;
    struct binding *empty = NULL; /* or its object was unloaded: plugins may come and go for ever */
    while (b && !(b->low == low && atomic_load(&b->bytes) == bytes)) {
        if (atomic_load(&b->bytes) == 0)
            empty = b;
        last = b;
        b = atomic_load(&b->next);
    }
    uint32_t used = atomic_load(&arena_used);
    if (!b && locked && empty) {
        b = empty;
        fill(b, low, bytes, real, runtime_major);
    }
    if (!b && locked && used < BINDINGS_MAX) {
        b = &arena[used];
        fill(b, low, bytes, real, runtime_major);
        atomic_store(&arena_used, used + 1);
        atomic_store_explicit(&last->next, b, memory_order_release);
    }
    if (!b) {
        b = &last_resort[slot]; /* right for this call; not entered into the list */
        b->real = real;
        b->runtime_major = runtime_major;
    }
    if (locked)
        lock_drop(&bind_lock);
    return b;
}

struct search {
    const char *symbol;
    const char *stem; /* "libcudart.so" or "libcuda.so" */
    const struct object *caller;
    bool past_self;
    bool past_libc;
    void *chain;  /* another preload's hook: defined before libc in load order, not by the stem */
    void *needed; /* by the object of the stem that the caller is linked with */
    void *first;  /* by the first object of the stem */
    void *any;
    uint32_t needed_major;
    uint32_t first_major;
};

static uint32_t major_of(const struct object *o)
{
    const char *digits = object_soname(o) + strlen("libcudart.so.");
    uint32_t major = 0;
    if (!object_is(o, "libcudart.so") || strlen(object_soname(o)) <= strlen("libcudart.so."))
        return 0;
    for (; *digits >= '0' && *digits <= '9' && major < 1000; digits++)
        major = 10 * major + (uint32_t)(*digits - '0');
    return major;
}

static int visit_search(const struct object *o, void *data)
{
    struct search *s = data;
    if ((uintptr_t)&bindings >= o->low && (uintptr_t)&bindings < o->high) {
        s->past_self = true;
        return 0;
    }
    if (!s->past_self)
        return 0;
    if (object_is(o, "libc.so"))
        s->past_libc = true;
    void *address = object_symbol(o, s->symbol);
    if (!address)
        return 0;
    if (!s->any)
        s->any = address;
    if (!object_is(o, s->stem)) {
        if (!s->chain && !s->past_libc && !s->first)
            s->chain = address;
        return 0;
    }
    if (!s->first) {
        s->first = address;
        s->first_major = major_of(o);
    }
    if (!s->needed && s->caller && object_needs(s->caller, object_soname(o))) {
        s->needed = address;
        s->needed_major = major_of(o);
    }
    return 0;
}

const struct binding *resolve_slow(unsigned slot, enum api_domain domain, const char *symbol,
                                   uintptr_t caller)
{
    int saved = errno;
    struct object from;
    bool known = object_at(caller, &from);
    struct search s = {.symbol = symbol,
                       .stem = domain == API_DRIVER ? "libcuda.so" : "libcudart.so",
                       .caller = known ? &from : NULL};
    objects_each(visit_search, &s);
    void *real = s.chain ? s.chain : s.needed ? s.needed : s.first ? s.first : s.any;
    const struct binding *b = NULL;
    if (real && domain == API_DRIVER)
        b = bind(slot, 0, UINTPTR_MAX, real, 0);
    else if (real)
        b = bind(slot, known ? from.low : caller & ~(uintptr_t)(PAGE_BYTES - 1),
                 known ? from.high - from.low : PAGE_BYTES, real,
                 s.needed ? s.needed_major : s.first_major);
    errno = saved;
    return b;
}

void resolve_driver(unsigned slot, void *real)
{
    if (!atomic_load_explicit(&bindings[slot].bytes, memory_order_acquire))
        bind(slot, 0, UINTPTR_MAX, real, 0);
}

void resolve_runtime(unsigned slot, uintptr_t caller, void *real)
{
    struct object from, to;
    if (object_at(caller, &from) && object_at((uintptr_t)real, &to))
        bind(slot, from.low, from.high - from.low, real, major_of(&to));
}

static int visit_count(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(unsigned long long *)data = info->dlpi_subs;
    return 1;
}

/* Does the object that the binding was made for still lie there? */
static bool caller_is_there(const struct binding *b)
{
    struct object o;
    uintptr_t bytes = atomic_load(&b->bytes);
    if (b->low == 0 || bytes == PAGE_BYTES) /* the driver's; code that belongs to no object */
        return true;
    return object_at(b->low, &o) && o.low == b->low && o.high - o.low == bytes;
}

void resolve_refresh(void)
{
    static _Atomic unsigned long long seen;
    unsigned long long unloaded = 0;
    int saved = errno;
    objects_iterate(visit_count, &unloaded);
    if (unloaded == atomic_load(&seen))
        return;
    /* Not beside bind(), which may be giving an entry that was dead to another object. */
    bool locked = lock_take(&bind_lock, BIND_LOCK_NS);
    for (unsigned i = 0; i < LOOKED_AT_MAX; i++)
        atomic_store(&looked_at[i].bytes, 0);
    uint32_t count = HOOK_SLOT_COUNT + atomic_load(&arena_used);
    for (uint32_t i = 0; i < count; i++) {
        struct binding *b = binding_at(i);
        struct object o;
        if (atomic_load(&b->bytes) && !(caller_is_there(b) && object_at((uintptr_t)b->real, &o)))
            atomic_store(&b->bytes, 0);
    }
    atomic_store(&seen, unloaded);
    if (locked)
        lock_drop(&bind_lock);
    errno = saved;
}
