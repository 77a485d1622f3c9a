/* SPDX-License-Identifier: Apache-2.0 */
#include "range/deferred_ranges.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "record/state.h"

#define DEFERRED_MAX 512u /* open ranges in the whole process while nothing is recorded */
/* how often entries of dead threads are searched when the table is full */
#define RECLAIM_NS 100000000u

/* Marks of owners that are not threads; tids are below 2^22. */
#define DEFERRED_FILLING 0xffffffffu
#define DEFERRED_SHARED  0xfffffffeu
#define DEFERRED_STEP    0xfffffffdu

/* Any thread that keeps or takes a range changes these. */
_Atomic uint32_t deferred_shared_count;
static _Atomic(struct deferred *) step; /* likewise; NULL: none */
static struct deferred *_Atomic table;  /* DEFERRED_MAX entries from mmap, at first use */
static _Atomic uint32_t hint;           /* the entry that became free last */
static _Atomic uint64_t reclaim_ns;     /* when entries of dead threads were last searched */

static struct deferred *kept_prepare(void)
{
    struct deferred *deferred = atomic_load(&table);
    if (deferred)
        return deferred;
    int saved = errno;
    size_t bytes = DEFERRED_MAX * sizeof *deferred;
    void *p = pages_map(bytes);
    if (p && !atomic_compare_exchange_strong(&table, &deferred, p))
        munmap(p, bytes); /* another thread was faster */
    errno = saved;
    return atomic_load(&table);
}

static struct deferred *kept_take_free(struct deferred *deferred)
{
    uint32_t first = atomic_load_explicit(&hint, memory_order_relaxed);
    for (uint32_t i = 0; i < DEFERRED_MAX; i++) {
        struct deferred *k = &deferred[(first + i) % DEFERRED_MAX];
        uint32_t free = 0;
        if (atomic_load_explicit(&k->owner, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&k->owner, &free, DEFERRED_FILLING))
            return k;
    }
    return NULL;
}

/*
 * Returns the entry with this number; NULL at the end. In the child of a fork, the thread's tid
 * differs from the one in its entries: another thread may have taken them for those of a dead
 * thread.
 */
static struct deferred *member(const struct deferred_list *list, uint32_t number)
{
    struct deferred *k = number ? &atomic_load(&table)[number - 1] : NULL;
    return k && atomic_load_explicit(&k->owner, memory_order_relaxed) == list->owner ? k : NULL;
}

/* Frees entries of threads that ended with open ranges. The caller's own have another tid after a
 * fork. */
static void reclaim(struct deferred *deferred, struct deferred_list *own)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), last_ns = atomic_load(&reclaim_ns);
    if (now_ns - last_ns < RECLAIM_NS ||
        !atomic_compare_exchange_strong(&reclaim_ns, &last_ns, now_ns))
        return;
    if (own) {
        uint32_t me = thread_id();
        for (struct deferred *k = member(own, own->first), *below; k; k = below) {
            below = member(own, k->below);
            atomic_store(&k->owner, me);
        }
        own->owner = me;
    }
    for (uint32_t i = 0; i < DEFERRED_MAX; i++) {
        uint32_t owner = atomic_load(&deferred[i].owner);
        if (owner && owner < DEFERRED_STEP && !thread_exists(owner))
            atomic_compare_exchange_strong(&deferred[i].owner, &owner, 0);
    }
}

/* Takes a free entry, whose owner the caller sets. NULL: there is no space. */
static struct deferred *take_deferred(struct deferred_list *own, uint8_t type, uint64_t id,
                                      const struct range_event *e)
{
    struct deferred *deferred = kept_prepare();
    struct deferred *k = deferred ? kept_take_free(deferred) : NULL;
    if (deferred && !k) {
        reclaim(deferred, own);
        k = kept_take_free(deferred);
    }
    if (!k) {
        counter_add(COUNTER_RANGES_DROPPED, 1);
        return NULL;
    }
    k->type = type;
    k->begin = ticks_now();
    k->id = id;
    k->event = *e;
    if (e->data)
        k->data = *e->data;
    memcpy(k->text, e->text ? e->text : "", e->byte_count);
    return k;
}

bool deferred_push(struct deferred_list *list, uint8_t type, const struct range_event *e)
{
    struct deferred *k = take_deferred(list, type, 0, e);
    if (!k)
        return false;
    /* once, although a fork changes it: a system call costs more than all the rest */
    if (!list->owner)
        list->owner = thread_id();
    if (!member(list, list->first))
        list->first = 0;
    k->below = list->first;
    list->first = (uint32_t)(k - atomic_load(&table)) + 1;
    atomic_store(&k->owner, list->owner);
    return true;
}

struct deferred *deferred_pop(struct deferred_list *list, uint32_t domain)
{
    uint32_t *link = &list->first;
    for (struct deferred *k; (k = member(list, *link)); link = &k->below) {
        if (domain == DEFERRED_ANY_DOMAIN || k->event.domain == domain) {
            *link = k->below;
            return k;
        }
    }
    *link = 0;
    return NULL;
}

void deferred_release(struct deferred *k)
{
    atomic_store_explicit(&hint, (uint32_t)(k - atomic_load(&table)), memory_order_relaxed);
    atomic_store(&k->owner, 0);
}

uint32_t deferred_count(const struct deferred_list *list, uint32_t domain)
{
    uint32_t count = 0;
    for (const struct deferred *k = member(list, list->first); k; k = member(list, k->below))
        count += k->event.domain == domain;
    return count;
}

void deferred_reverse(struct deferred_list *list)
{
    uint32_t reversed = 0, next = list->first;
    for (struct deferred *k; (k = member(list, next));) {
        uint32_t below = k->below;
        k->below = reversed;
        reversed = next;
        next = below;
    }
    list->first = reversed;
}

/* Afterwards no other thread uses it. */
static bool claim(struct deferred *k)
{
    uint32_t owner = DEFERRED_SHARED;
    if (!atomic_compare_exchange_strong(&k->owner, &owner, DEFERRED_FILLING))
        return false;
    atomic_fetch_sub(&deferred_shared_count, 1);
    return true;
}

void deferred_share(uint64_t id, const struct range_event *e)
{
    struct deferred *k = take_deferred(NULL, RECORD_RANGE_START, id, e);
    if (!k)
        return;
    atomic_fetch_add(&deferred_shared_count, 1);
    atomic_store(&k->owner, DEFERRED_SHARED);
}

struct deferred *deferred_take_shared(void)
{
    struct deferred *deferred = deferred_is_waiting() ? atomic_load(&table) : NULL;
    for (uint32_t i = 0; deferred && i < DEFERRED_MAX; i++)
        if (atomic_load(&deferred[i].owner) == DEFERRED_SHARED && claim(&deferred[i]))
            return &deferred[i];
    return NULL;
}

bool deferred_drop_shared(uint64_t id)
{
    struct deferred *deferred = deferred_is_waiting() ? atomic_load(&table) : NULL;
    for (uint32_t i = 0; deferred && i < DEFERRED_MAX; i++)
        if (atomic_load(&deferred[i].owner) == DEFERRED_SHARED && deferred[i].id == id &&
            claim(&deferred[i])) {
            deferred_release(&deferred[i]);
            return true;
        }
    return false;
}

static void replace_step(struct deferred *with)
{
    struct deferred *k = atomic_exchange(&step, with);
    if (k)
        deferred_release(k);
}

void deferred_step(uint64_t number)
{
    static const struct range_event none;
    struct deferred *k = take_deferred(NULL, RECORD_STEP, number, &none);
    if (k) {
        k->below = thread_id();
        atomic_store(&k->owner, DEFERRED_STEP);
    }
    replace_step(k);
}

struct deferred *deferred_take_step(bool whosever)
{
    struct deferred *k = atomic_load(&step);
    if (!k || (!whosever && k->below != thread_id() && thread_exists(k->below)))
        return NULL;
    return atomic_compare_exchange_strong(&step, &k, NULL) ? k : NULL;
}

bool deferred_has_step(void)
{
    return atomic_load(&step);
}

void deferred_drop_step(void)
{
    replace_step(NULL);
}
