/* SPDX-License-Identifier: Apache-2.0 */
#include "range/kept.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "record/state.h"

#define KEPT_MAX 512u /* open ranges in the whole process while nothing is recorded */
/* how often entries of dead threads are searched when the table is full */
#define RECLAIM_NS 100000000u

/* Marks of owners that are not threads; tids are below 2^22. */
#define KEPT_FILLING 0xffffffffu
#define KEPT_SHARED  0xfffffffeu
#define KEPT_STEP    0xfffffffdu

/* Any thread that keeps or takes a range changes these. */
_Atomic uint32_t kept_shared_count;
static _Atomic(struct kept *) step; /* likewise; NULL: none */
static struct kept *_Atomic table;  /* KEPT_MAX entries from mmap, at first use */
static _Atomic uint32_t hint;       /* the entry that became free last */
static _Atomic uint64_t reclaim_ns; /* when entries of dead threads were last searched */

static struct kept *kept_prepare(void)
{
    struct kept *kept = atomic_load(&table);
    if (kept)
        return kept;
    int saved = errno;
    size_t bytes = KEPT_MAX * sizeof *kept;
    void *p = pages_map(bytes);
    if (p && !atomic_compare_exchange_strong(&table, &kept, p))
        munmap(p, bytes); /* another thread was faster */
    errno = saved;
    return atomic_load(&table);
}

static struct kept *kept_take_free(struct kept *kept)
{
    uint32_t first = atomic_load_explicit(&hint, memory_order_relaxed);
    for (uint32_t i = 0; i < KEPT_MAX; i++) {
        struct kept *k = &kept[(first + i) % KEPT_MAX];
        uint32_t free = 0;
        if (atomic_load_explicit(&k->owner, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&k->owner, &free, KEPT_FILLING))
            return k;
    }
    return NULL;
}

/*
 * Returns the entry with this number; NULL at the end. In the child of a fork, the thread's tid
 * differs from the one in its entries: another thread may have taken them for those of a dead
 * thread.
 */
static struct kept *member(const struct kept_list *list, uint32_t number)
{
    struct kept *k = number ? &atomic_load(&table)[number - 1] : NULL;
    return k && atomic_load_explicit(&k->owner, memory_order_relaxed) == list->owner ? k : NULL;
}

/* Frees entries of threads that ended with open ranges. The caller's own have another tid after a
 * fork. */
static void reclaim(struct kept *kept, struct kept_list *own)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), last_ns = atomic_load(&reclaim_ns);
    if (now_ns - last_ns < RECLAIM_NS ||
        !atomic_compare_exchange_strong(&reclaim_ns, &last_ns, now_ns))
        return;
    if (own) {
        uint32_t me = thread_id();
        for (struct kept *k = member(own, own->first), *below; k; k = below) {
            below = member(own, k->below);
            atomic_store(&k->owner, me);
        }
        own->owner = me;
    }
    for (uint32_t i = 0; i < KEPT_MAX; i++) {
        uint32_t owner = atomic_load(&kept[i].owner);
        if (owner && owner < KEPT_STEP && !thread_exists(owner))
            atomic_compare_exchange_strong(&kept[i].owner, &owner, 0);
    }
}

/* Takes a free entry, whose owner the caller sets. NULL: there is no space. */
static struct kept *take_kept(struct kept_list *own, uint8_t type, uint64_t id,
                              const struct range_event *e)
{
    struct kept *kept = kept_prepare();
    struct kept *k = kept ? kept_take_free(kept) : NULL;
    if (kept && !k) {
        reclaim(kept, own);
        k = kept_take_free(kept);
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

bool kept_push(struct kept_list *list, uint8_t type, const struct range_event *e)
{
    struct kept *k = take_kept(list, type, 0, e);
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

struct kept *kept_pop(struct kept_list *list, uint32_t domain)
{
    uint32_t *link = &list->first;
    for (struct kept *k; (k = member(list, *link)); link = &k->below) {
        if (domain == KEPT_ANY_DOMAIN || k->event.domain == domain) {
            *link = k->below;
            return k;
        }
    }
    *link = 0;
    return NULL;
}

void kept_release(struct kept *k)
{
    atomic_store_explicit(&hint, (uint32_t)(k - atomic_load(&table)), memory_order_relaxed);
    atomic_store(&k->owner, 0);
}

uint32_t kept_count(const struct kept_list *list, uint32_t domain)
{
    uint32_t count = 0;
    for (const struct kept *k = member(list, list->first); k; k = member(list, k->below))
        count += k->event.domain == domain;
    return count;
}

void kept_reverse(struct kept_list *list)
{
    uint32_t reversed = 0, next = list->first;
    for (struct kept *k; (k = member(list, next));) {
        uint32_t below = k->below;
        k->below = reversed;
        reversed = next;
        next = below;
    }
    list->first = reversed;
}

/* Afterwards no other thread uses it. */
static bool claim(struct kept *k)
{
    uint32_t owner = KEPT_SHARED;
    if (!atomic_compare_exchange_strong(&k->owner, &owner, KEPT_FILLING))
        return false;
    atomic_fetch_sub(&kept_shared_count, 1);
    return true;
}

void kept_share(uint64_t id, const struct range_event *e)
{
    struct kept *k = take_kept(NULL, RECORD_RANGE_START, id, e);
    if (!k)
        return;
    atomic_fetch_add(&kept_shared_count, 1);
    atomic_store(&k->owner, KEPT_SHARED);
}

struct kept *kept_take_shared(void)
{
    struct kept *kept = kept_is_waiting() ? atomic_load(&table) : NULL;
    for (uint32_t i = 0; kept && i < KEPT_MAX; i++)
        if (atomic_load(&kept[i].owner) == KEPT_SHARED && claim(&kept[i]))
            return &kept[i];
    return NULL;
}

bool kept_drop_shared(uint64_t id)
{
    struct kept *kept = kept_is_waiting() ? atomic_load(&table) : NULL;
    for (uint32_t i = 0; kept && i < KEPT_MAX; i++)
        if (atomic_load(&kept[i].owner) == KEPT_SHARED && kept[i].id == id && claim(&kept[i])) {
            kept_release(&kept[i]);
            return true;
        }
    return false;
}

static void replace_step(struct kept *with)
{
    struct kept *k = atomic_exchange(&step, with);
    if (k)
        kept_release(k);
}

void kept_step(uint64_t number)
{
    static const struct range_event none;
    struct kept *k = take_kept(NULL, RECORD_STEP, number, &none);
    if (k) {
        k->below = thread_id();
        atomic_store(&k->owner, KEPT_STEP);
    }
    replace_step(k);
}

struct kept *kept_take_step(bool whosever)
{
    struct kept *k = atomic_load(&step);
    if (!k || (!whosever && k->below != thread_id() && thread_exists(k->below)))
        return NULL;
    return atomic_compare_exchange_strong(&step, &k, NULL) ? k : NULL;
}

bool kept_has_step(void)
{
    return atomic_load(&step);
}

void kept_drop_step(void)
{
    replace_step(NULL);
}
