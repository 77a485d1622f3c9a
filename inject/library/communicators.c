/* SPDX-License-Identifier: Apache-2.0 */
#include "library/communicators.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/pages.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "cuda/current_device.h"
#include "hook/resolve.h"
#include "record/thread.h"

#define PROBES_MAX  256u
#define HANDLE_BITS 48u
#define TABLE_BYTES (COMMUNICATORS_MAX * sizeof(struct communicator))

enum { KEY_FREE, KEY_GONE, KEY_MADE }; /* no key is this small */

/* What a key refers to: a communicator's address, or a pair of its ranks in the bits above. */
struct communicator {
    _Atomic uint64_t key;
    _Atomic uint64_t count;
    uint64_t id;
    _Atomic uint64_t reported; /* epoch of the recording that describes it; EPOCH_NONE: none */
    uint32_t rank, ranks;      /* 0 ranks: not known yet */
    int32_t device;
    uint32_t children;
};

/* Used by the threads that create and use communicators. The creating thread writes plain members
 * before the key; users write them one after another. */
/* from mmap, with the first communicator; NULL: there is none */
static _Atomic(struct communicator *) table;

_Static_assert((COMMUNICATORS_MAX & (COMMUNICATORS_MAX - 1)) == 0, "a mask");

/* Called by the thread that creates the first one. Returns NULL if there is no memory. */
static struct communicator *communicators_make_table(void)
{
    struct communicator *all = atomic_load(&table), *nobody = NULL;
    int saved = errno;
    if (!all && (all = pages_map(TABLE_BYTES)) &&
        !atomic_compare_exchange_strong(&table, &nobody, all)) {
        munmap(all, TABLE_BYTES);
        all = nobody;
    }
    errno = saved;
    return all;
}

static struct communicator *communicators_place(struct communicator *all, uint64_t key,
                                                uint32_t probe)
{
    return &all[((hash_mix(0, key) >> 32) + probe) & (COMMUNICATORS_MAX - 1)];
}

static struct communicator *communicators_find(uint64_t key)
{
    struct communicator *all = atomic_load(&table);
    for (uint32_t i = 0; all && key > KEY_MADE && i < PROBES_MAX; i++) {
        struct communicator *c = communicators_place(all, key, i);
        uint64_t has = atomic_load_explicit(&c->key, memory_order_acquire);
        if (has == key)
            return c;
        if (has == KEY_FREE)
            return NULL;
    }
    return NULL;
}

/* Stores `what` under that key; NULL: there is no space. */
static struct communicator *communicators_add(uint64_t key, const struct communicator *what)
{
    struct communicator *all = communicators_make_table();
    for (uint32_t i = 0; all && key > KEY_MADE && i < PROBES_MAX; i++) {
        struct communicator *c = communicators_place(all, key, i);
        uint64_t has = atomic_load_explicit(&c->key, memory_order_relaxed);
        if (has > KEY_GONE || !atomic_compare_exchange_strong(&c->key, &has, KEY_MADE))
            continue;
        atomic_store_explicit(&c->count, 0, memory_order_relaxed);
        atomic_store_explicit(&c->reported, EPOCH_NONE, memory_order_relaxed);
        c->id = what->id;
        c->rank = what->rank;
        c->ranks = what->ranks;
        c->device = what->device;
        c->children = 0;
        atomic_store_explicit(&c->key, key, memory_order_release);
        return c;
    }
    return NULL;
}

/* A reader compares only this number, so it depends on the bytes alone, and on nothing in this
 * process. */
static uint64_t mix_bytes(uint64_t hash, const void *data, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 1099511628211u;
    return hash ? hash : 1;
}

uint64_t communicator_id(const void *unique_id)
{
    return mix_bytes(14695981039346656037u, unique_id, 128);
}

void communicator_ends(uint64_t handle)
{
    const uint64_t mask = ((uint64_t)1 << HANDLE_BITS) - 1;
    struct communicator *all = atomic_load(&table);
    for (uint32_t i = 0; all && handle && i < COMMUNICATORS_MAX; i++) {
        uint64_t key = atomic_load_explicit(&all[i].key, memory_order_relaxed);
        if (key > KEY_MADE && (key & mask) == handle)
            atomic_compare_exchange_strong(&all[i].key, &key, KEY_GONE);
    }
}

void communicator_made(uint64_t handle, uint64_t id, uint32_t rank, uint32_t ranks)
{
    communicator_ends(handle); /* replaces one that was destroyed without our hook */
    communicators_add(
        handle,
        &(struct communicator){.id = id, .rank = rank, .ranks = ranks, .device = device_current});
}

void communicators_made(const uint64_t *handles, uint32_t ranks, const int *devices)
{
    uint64_t id = mix_bytes(ticks_now(), handles, sizeof *handles);
    for (uint32_t i = 0; i < ranks && i < COMMUNICATORS_MAX; i++) {
        communicator_ends(handles[i]);
        communicators_add(
            handles[i],
            &(struct communicator){
                .id = id, .rank = i, .ranks = ranks, .device = devices ? devices[i] : (int32_t)i});
    }
}

void communicator_split(uint64_t parent, uint64_t handle, uint64_t choice)
{
    struct communicator *of = communicators_find(parent);
    if (!of)
        return;
    uint64_t words[] = {of->children++, choice};
    struct communicator child = {.id = mix_bytes(of->id, words, sizeof words),
                                 .device = of->device};
    communicator_ends(handle);
    communicators_add(handle, &child);
}

uint64_t communicator_splits(uint64_t parent)
{
    const struct communicator *of = communicators_find(parent);
    return of ? of->children : 0;
}

uint64_t communicator_next(uint64_t key)
{
    const uint64_t handle = key & (((uint64_t)1 << HANDLE_BITS) - 1);
    struct communicator *c = communicators_find(key);
    if (!c && key != handle && communicators_find(handle))
        c = communicators_add(key, &(struct communicator){0});
    return c ? atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed) + 1 : 0;
}

/*
 * Asks the library for a child communicator's ranks, which only it knows. It also marks its answer
 * with NVTX ranges, which are nobody's. Like its next call, it would complain about a communicator
 * that is not ready; so we ask only when the program uses it.
 */
static void communicators_ask(struct thread *t, struct communicator *c, uint64_t handle,
                              uintptr_t caller)
{
    typedef int ask_fn(void *comm, int *answer);
    void *comm = (void *)(uintptr_t)handle;
    int saved = errno, rank = 0, ranks = 0;
    ask_fn *count = (ask_fn *)resolve_definition("ncclCommCount", caller);
    ask_fn *user_rank = (ask_fn *)resolve_definition("ncclCommUserRank", caller);
    struct call *where = t->inside;
    uint64_t mask = block_signals(); /* a handler that jumps would leave us here */
    t->inside = CALL_FOR_GOOD;
    if (count && user_rank && count(comm, &ranks) == 0 && user_rank(comm, &rank) == 0 &&
        ranks > 0) {
        c->rank = (uint32_t)rank;
        c->ranks = (uint32_t)ranks;
    }
    t->inside = where;
    restore_signals(mask);
    errno = saved;
}

void communicator_reported(struct thread *t, uint64_t handle, uintptr_t caller)
{
    struct communicator *c = communicators_find(handle);
    uint64_t epoch = epoch_now();
    if (!c || atomic_load_explicit(&c->reported, memory_order_relaxed) == epoch)
        return;
    if (!c->ranks && caller) {
        communicators_ask(t, c, handle, caller);
        if (!c->ranks)
            return;
    }
    if (c->ranks && atomic_exchange(&c->reported, epoch) == epoch)
        return;
    struct record r = {
        RECORD_WITH(COMMUNICATOR, [COMMUNICATOR_HANDLE] = handle, [COMMUNICATOR_ID] = c->id,
                    [COMMUNICATOR_RANK] = c->rank, [COMMUNICATOR_RANKS] = c->ranks,
                    [COMMUNICATOR_DEVICE] = (uint64_t)((int64_t)c->device + 1)),
        .begin = ticks_now()};
    thread_append(t, &r);
}
