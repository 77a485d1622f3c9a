/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/resolve.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/futex.h"
#include "base/objects.h"
#include "record/thread.h"

#define BINDINGS_MAX  16384
#define BIND_LOCK_NS  2000000000u
#define PAGE_BYTES    4096u
#define LOOKED_AT_MAX 16

/* Written under the lock by any thread at its first call of a function; read without the lock. */
struct binding bindings[HOOK_SLOT_COUNT];

static struct binding arena[BINDINGS_MAX]; /* further bindings of the slots */
static _Atomic uint32_t arena_used;
static struct lock bind_lock;

/* Returns a binding by its number, below HOOK_SLOT_COUNT + arena_used. */
static struct binding *binding_at(uint32_t i)
{
    return i < HOOK_SLOT_COUNT ? &bindings[i] : &arena[i - HOOK_SLOT_COUNT];
}

/* Results of checks, written by any thread: whether the object is CUDA's, or stands in for CUDA.
 * resolve_refresh empties it. */
static struct {
    _Atomic uint32_t version; /* odd while the entry is being written */
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

/* Calls now go to this function, so earlier checks of its object are no longer valid. */
static void drop_looked_at(uintptr_t address)
{
    for (int i = 0; i < LOOKED_AT_MAX; i++)
        if (address - atomic_load(&looked_at[i].low) < atomic_load(&looked_at[i].bytes))
            atomic_store(&looked_at[i].bytes, 0);
}

static bool is_self(const struct object *o)
{
    return object_has(o, (uintptr_t)&bindings);
}

static bool is_owners(unsigned domain)
{
    return api_libraries[domain].layer == API_OWNER;
}

bool resolve_is_cuda(uintptr_t caller)
{
    struct object o;
    int is_cuda = this_thread.stand_in ? -1 : find_looked_at(caller);
    if (is_cuda < 0 && object_at(caller, &o)) {
        if (this_thread.stand_in && object_has(&o, this_thread.stand_in))
            return true; /* it counts only while it is called in place of CUDA */
        /* The caller is this library: a function that a hook called has jumped to another hook, or
         * to the same one. */
        is_cuda = is_self(&o);
        for (unsigned i = 0; !is_cuda && i < API_DOMAIN_COUNT; i++)
            is_cuda = is_owners(i) && object_is(&o, api_libraries[i].soname);
        for (uint32_t i = HOOK_SLOT_COUNT + atomic_load(&arena_used); !is_cuda && i > 0; i--)
            is_cuda =
                binding_at(i - 1)->is_owners && object_has(&o, (uintptr_t)binding_at(i - 1)->real);
        add_looked_at(&o, is_cuda);
    }
    return is_cuda > 0;
}

/* The function that calls go to. */
struct target {
    void *real;
    enum api_domain domain;
    uint32_t major; /* major version of its library, if several may be loaded */
    bool is_own;    /* see struct binding */
};

static void resolve_fill(struct binding *b, uintptr_t low, uintptr_t bytes, const struct target *to)
{
    b->low = low;
    b->real = to->real;
    b->major = to->major;
    b->is_owners = is_owners(to->domain);
    b->is_own = to->is_own;
    atomic_store(&b->is_asked, false);
    atomic_store(&b->bytes, bytes);
}

/* Adds a binding, or fills an empty one, so that readers never see a list with a missing entry.
 * Returns NULL if there is no space, or if the lock was not available. */
static struct binding *resolve_bind(unsigned slot, uintptr_t low, uintptr_t bytes,
                                    const struct target *to)
{
    bool locked = lock_take(&bind_lock, BIND_LOCK_NS);
    struct binding *b = &bindings[slot], *last = b;
    /* or one whose object was unloaded: plugins may be loaded and unloaded for ever */
    struct binding *empty = NULL;
    while (b && !(b->low == low && atomic_load(&b->bytes) == bytes)) {
        if (atomic_load(&b->bytes) == 0)
            empty = b;
        last = b;
        b = atomic_load(&b->next);
    }
    uint32_t used = atomic_load(&arena_used);
    if (!b && locked && empty) {
        b = empty;
        resolve_fill(b, low, bytes, to);
    }
    if (!b && locked && used < BINDINGS_MAX) {
        b = &arena[used];
        resolve_fill(b, low, bytes, to);
        atomic_store(&arena_used, used + 1);
        atomic_store_explicit(&last->next, b, memory_order_release);
    }
    if (b)
        drop_looked_at((uintptr_t)to->real);
    if (locked)
        lock_drop(&bind_lock);
    return b;
}

/* Returns the name stem of the library that a function belongs to. */
static const char *stem_of(const char *symbol)
{
    enum api_domain domain = api_domain_of(symbol);
    return domain < API_DOMAIN_COUNT ? api_libraries[domain].soname : "";
}

bool resolve_is_part(const struct object *o, enum api_domain domain)
{
    for (unsigned i = 0; i < API_DOMAIN_COUNT; i++)
        if (api_libraries[i].within == api_libraries[domain].within &&
            object_is_part(o, api_libraries[i].soname))
            return true;
    return false;
}

/*
 * Returns whether this object's calls of the library's functions are part of the call around them.
 * True for libraries of the same family, for a stub or hook whose function of that name calls on,
 * and for ourselves, after a jump.
 */
static bool calls_own(const struct object *from, enum api_domain domain, const char *symbol)
{
    return is_self(from) || object_symbol(from, symbol) || resolve_is_part(from, domain);
}

/* Returns whether a process has only one of this library, for all callers. */
static bool is_one(unsigned domain)
{
    return api_libraries[domain].bound == API_ONE;
}

bool resolve_is_vendors(const char *symbol, uintptr_t address)
{
    struct object o;
    return object_at(address, &o) && object_is(&o, stem_of(symbol));
}

bool resolve_defines(const char *symbol, uintptr_t caller)
{
    struct object o;
    return object_at(caller, &o) && object_symbol(&o, symbol);
}

/* Returns the digits in the object's soname; 0 if there are none, or if it stands in for the
 * library. */
static uint32_t major_of(const struct object *o, const char *stem)
{
    const char *digits = strstr(object_soname(o), ".so.");
    uint32_t major = 0;
    if (!object_is(o, stem) || !digits)
        return 0;
    for (digits += 4; *digits >= '0' && *digits <= '9' && major < 1000; digits++)
        major = 10 * major + (uint32_t)(*digits - '0');
    return major;
}

static int visit_needs(const struct object *o, void *soname)
{
    return object_needs(o, soname);
}

struct search {
    const char *symbol;
    const char *stem;
    const struct object *caller;
    bool past_self;
    bool past_libc;
    /* another preload's hook: defined before libc in load order, by an object without the stem */
    void *chain;
    void *needed; /* defined by the object with the stem that the caller is linked with */
    void *first;  /* defined by the first object with the stem */
    void *linked; /* defined by another object that the caller is linked with, or by the caller */
    void *any;
    uint32_t needed_major;
    uint32_t first_major;
};

static bool is_linked(const struct search *s, const struct object *o)
{
    return s->caller && object_needs(s->caller, object_soname(o));
}

/*
 * A preload that calls its own hook by name means that hook, as it would without us. A library that
 * others are linked with may be a stub; a caller of ours may be a stub that found us with dlsym;
 * and a hook of ours that seems to call us was left by a jump.
 */
static bool may_chain(const struct search *s, const struct object *o)
{
    if (!s->caller)
        return true;
    return !is_self(s->caller) &&
           !(s->caller->low == o->low && objects_each(visit_needs, (void *)object_soname(o)));
}

static int visit_search(const struct object *o, void *data)
{
    struct search *s = data;
    if (is_self(o)) {
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
    if (!object_is(o, s->stem)) {
        if (!s->chain && !s->past_libc && !s->first && may_chain(s, o))
            s->chain = address;
        if (!s->linked && ((s->caller && s->caller->low == o->low) || is_linked(s, o)))
            s->linked = address;
        if (!s->any)
            s->any = address;
        return 0;
    }
    if (!s->first) {
        s->first = address;
        s->first_major = major_of(o, s->stem);
    }
    if (!s->needed && is_linked(s, o)) {
        s->needed = address;
        s->needed_major = major_of(o, s->stem);
    }
    return 0;
}

static void search(struct search *s, const char *symbol, const struct object *caller)
{
    *s = (struct search){.symbol = symbol, .stem = stem_of(symbol), .caller = caller};
    objects_each(visit_search, s);
}

/* Returns the permanent definition; NULL: there are only stubs. */
static void *lasting(const struct search *s)
{
    return s->chain ? s->chain : s->needed ? s->needed : s->first;
}

static void *passing(const struct search *s)
{
    return s->linked ? s->linked : s->any;
}

void *resolve_definition(const char *symbol, uintptr_t caller)
{
    struct object from;
    struct search s;
    search(&s, symbol, object_at(caller, &from) ? &from : NULL);
    void *real = lasting(&s);
    return real ? real : passing(&s);
}

/* Makes a binding for all callers, or for those in the caller's object, if it is in one. */
static struct binding *bind_for(unsigned slot, bool for_all, const struct object *caller,
                                uintptr_t address, const struct target *to)
{
    if (for_all)
        return resolve_bind(slot, 0, UINTPTR_MAX, to);
    if (caller)
        return resolve_bind(slot, caller->low, caller->high - caller->low, to);
    return resolve_bind(slot, address & ~(uintptr_t)(PAGE_BYTES - 1), PAGE_BYTES, to);
}

struct chain {
    const char *symbol;
    uintptr_t asker;
    bool past_self;
    bool asker_is_before; /* the asker is before us */
    uintptr_t low;        /* start address of the other preload */
    uintptr_t bytes;
    bool is_linked; /* not a preload: others are linked with it */
};

/* Stops where no other preload's hook can follow: 1: found, -1: not. */
static int visit_chain(const struct object *o, void *data)
{
    struct chain *chain = data;
    if (is_self(o))
        chain->past_self = true;
    else if (!chain->past_self)
        chain->asker_is_before |= object_has(o, chain->asker);
    else if (object_is(o, "libc.so") || object_is(o, stem_of(chain->symbol)))
        return -1;
    else if (object_symbol(o, chain->symbol)) {
        chain->low = o->low;
        chain->bytes = o->high - o->low;
        chain->is_linked = objects_each(visit_needs, (void *)object_soname(o));
        return 1;
    }
    return 0;
}

bool resolve_is_stub(const char *symbol, uintptr_t address)
{
    struct chain chain = {.symbol = symbol};
    bool chained = objects_each(visit_chain, &chain) == 1 && !chain.is_linked;
    return !resolve_is_vendors(symbol, address) && !(chained && address - chain.low < chain.bytes);
}

/*
 * Returns the binding if all callers that asked for this slot by a handle got the same function,
 * other than `real`; else NULL. A caller that is not linked with a libcudart has the hook from one
 * of them: ctypes asks in one object and calls from another.
 */
static const struct binding *only_asked(unsigned slot, const void *real)
{
    const struct binding *found = NULL;
    for (const struct binding *b = &bindings[slot]; b; b = atomic_load(&b->next)) {
        if (!atomic_load(&b->bytes) || !atomic_load(&b->is_asked))
            continue;
        if (b->real == real || (found && b->real != found->real))
            return NULL;
        found = b;
    }
    return found;
}

const struct binding *resolve_slow(unsigned slot, enum api_domain domain, const char *symbol,
                                   uintptr_t caller, struct binding *unbound)
{
    int saved = errno;
    struct object from;
    struct search s;
    bool known = object_at(caller, &from);
    if (known && is_self(&from) && this_thread.stand_in) { /* it has jumped to us */
        caller = this_thread.stand_in;
        known = object_at(caller, &from);
    }
    const struct binding *b = resolve_known(slot, caller);
    if (b) {
        errno = saved;
        return b;
    }
    search(&s, symbol, known ? &from : NULL);
    void *real = lasting(&s);
    struct target to = {real, domain, s.needed ? s.needed_major : s.first_major,
                        known && calls_own(&from, domain, symbol)};
    struct chain chain = {.symbol = symbol};
    const struct binding *asked =
        !is_one(domain) && real && real == s.first && !s.needed ? only_asked(slot, real) : NULL;
    if (asked && known && !object_import(&from, symbol)) {
        to.real = real = asked->real;
        to.major = asked->major;
    }
    if (real)
        b = bind_for(slot, is_one(domain) && objects_each(visit_chain, &chain) != 1,
                     known ? &from : NULL, caller, &to);
    if (!b && (real || passing(&s))) {
        *unbound = (struct binding){
            .real = real ? real : passing(&s), .major = to.major, .is_own = to.is_own};
        this_thread.stand_in = real ? this_thread.stand_in : (uintptr_t)unbound->real;
        b = unbound;
    }
    errno = saved;
    return b;
}

bool resolve_asked(const struct hook *hook, uintptr_t caller, void *real)
{
    struct object from, to;
    struct chain chain = {.symbol = hook->symbol, .asker = caller};
    bool known = object_at(caller, &from);
    bool chained = objects_each(visit_chain, &chain) == 1;
    if (resolve_is_stub(hook->symbol, (uintptr_t)real))
        return false;
    /* The caller is the other preload itself, or a stub that it calls: our hook would lead back to
     * it. */
    if (chained && known && !chain.is_linked && !chain.asker_is_before &&
        object_symbol(&from, hook->symbol))
        return false;
    bool for_all = is_one(hook->domain) && !chained;
    if (for_all && atomic_load_explicit(&bindings[hook->slot].bytes, memory_order_acquire))
        return true;
    struct target target = {real, (enum api_domain)hook->domain,
                            object_at((uintptr_t)real, &to) ? major_of(&to, stem_of(hook->symbol))
                                                            : 0,
                            known && calls_own(&from, (enum api_domain)hook->domain, hook->symbol)};
    struct binding *b = bind_for(hook->slot, for_all, known ? &from : NULL, caller, &target);
    /* its calls go elsewhere: another preload's hook calls itself */
    if (!b || (!for_all && b->real != real))
        return false;
    atomic_store(&b->is_asked, true);
    return true;
}

static int visit_count(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(unsigned long long *)data = info->dlpi_subs;
    return 1;
}

/* Returns whether the object for which the binding was made is still at that address. */
static bool caller_is_there(const struct binding *b)
{
    struct object o;
    uintptr_t bytes = atomic_load(&b->bytes);
    if (b->low == 0 || bytes == PAGE_BYTES) /* code outside all objects, such as the driver's */
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
    /* Takes the lock, since resolve_bind() may be giving an unused entry to another object. */
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
