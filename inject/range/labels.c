/* SPDX-License-Identifier: Apache-2.0 */
#include "range/labels.h"

#include <errno.h>
#include <string.h>

#include "base/futex.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "record/thread.h"

/* Python's nvtx package registers each text that it uses */
#define LABELS_MAX       (1u << 18)
#define LABEL_SLOTS      (2 * LABELS_MAX) /* open addressing, at most half full */
#define LABEL_TEXT_BYTES (16u << 20)      /* for all labels together */
#define LABELS_LOCK_NS   2000000000u
#define OTHER_DOMAINS    "(other domains)"

struct label {
    uint64_t handle;
    uint64_t begin; /* ticks at which it was defined */
    uint32_t kind;
    uint32_t domain;
    uint32_t text_at;
    uint32_t byte_count;
};

/* From mmap at the first label; pages are touched as needed. */
struct label_table {
    struct label labels[LABELS_MAX];
    uint32_t slots[LABEL_SLOTS]; /* label number of the newest label with that key; 0: free */
    char text[LABEL_TEXT_BYTES];
    uint32_t text_bytes;
    uint32_t domain_count;
};

/* Any thread that defines a label uses this, under the first lock. What is already written: under
 * the second. */
static struct label_table *table;
static struct lock labels_lock;
/* held by the thread that writes labels; others do not wait for it */
static struct lock writing_lock;
static _Atomic uint32_t label_count;
static _Atomic uint32_t written_count;
static _Atomic uint64_t written_epoch; /* the recording that has them */

/* The lock must be held. */
static bool labels_prepare(void)
{
    if (table)
        return true;
    int saved = errno;
    table = pages_map(sizeof *table);
    errno = saved;
    return table;
}

/* Domains and strings are identified by text, everything else by handle. */
static bool is_by_text(uint32_t kind)
{
    return kind == LABEL_OF_DOMAIN || kind == LABEL_OF_STRING;
}

static bool has_text(const struct label *l, const char *text, uint32_t byte_count)
{
    return l->byte_count == byte_count && memcmp(table->text + l->text_at, text, byte_count) == 0;
}

/* Returns the slot of the newest label with that key, or the free slot where it belongs. */
static uint32_t *labels_slot_of(uint32_t kind, uint64_t handle, uint32_t domain, const char *text,
                                uint32_t byte_count)
{
    uint64_t hash = hash_mix(hash_mix(1, kind), domain);
    if (is_by_text(kind))
        for (uint32_t i = 0; i < byte_count; i++)
            hash = hash_mix(hash, (uint8_t)text[i]);
    else
        hash = hash_mix(hash, handle);
    for (uint32_t i = (uint32_t)(hash >> 40) % LABEL_SLOTS;; i = (i + 1) % LABEL_SLOTS) {
        uint32_t number = table->slots[i];
        const struct label *l = &table->labels[number ? number - 1 : 0];
        if (!number || (l->kind == kind && l->domain == domain &&
                        (is_by_text(kind) ? has_text(l, text, byte_count) : l->handle == handle)))
            return &table->slots[i];
    }
}

/* The lock must be held. Returns 0 if there is no space. A string's handle is its number. */
static uint32_t labels_add(uint32_t *slot, struct label *l, const char *text)
{
    uint32_t count = atomic_load_explicit(&label_count, memory_order_relaxed);
    if (count == LABELS_MAX || l->byte_count > LABEL_TEXT_BYTES - table->text_bytes)
        return 0;
    l->text_at = table->text_bytes;
    l->begin = ticks_now();
    if (l->kind == LABEL_OF_STRING)
        l->handle = count + 1;
    memcpy(table->text + table->text_bytes, text, l->byte_count);
    table->text_bytes += l->byte_count;
    table->labels[count] = *l;
    *slot = count + 1;
    atomic_store(&label_count, count + 1);
    return count + 1;
}

/* The lock must be held. All domains beyond the limit share the last number. */
static uint32_t add_domain(uint32_t *slot, const char *text, uint32_t byte_count)
{
    struct label l = {.kind = LABEL_OF_DOMAIN, .byte_count = byte_count};
    l.handle = table->domain_count + 1;
    if (l.handle < LABEL_DOMAIN_MAX - 1 && labels_add(slot, &l, text)) {
        table->domain_count++;
        return (uint32_t)l.handle;
    }
    counter_add(COUNTER_RANGES_DROPPED, 1);
    slot = labels_slot_of(LABEL_OF_DOMAIN, 0, 0, OTHER_DOMAINS, sizeof OTHER_DOMAINS - 1);
    if (!*slot) {
        l.handle = LABEL_DOMAIN_MAX - 1;
        l.byte_count = sizeof OTHER_DOMAINS - 1;
        labels_add(slot, &l, OTHER_DOMAINS);
    }
    return LABEL_DOMAIN_MAX - 1;
}

static bool labels_begin(void)
{
    if (lock_take(&labels_lock, LABELS_LOCK_NS)) {
        if (labels_prepare())
            return true;
        lock_drop(&labels_lock);
    }
    counter_add(COUNTER_RANGES_DROPPED, 1);
    return false;
}

uint32_t label_domain(const char *text, uint32_t byte_count)
{
    if (!labels_begin())
        return LABEL_DOMAIN_MAX - 1;
    uint32_t *slot = labels_slot_of(LABEL_OF_DOMAIN, 0, 0, text, byte_count);
    uint32_t number =
        *slot ? (uint32_t)table->labels[*slot - 1].handle : add_domain(slot, text, byte_count);
    lock_drop(&labels_lock);
    return number;
}

static uint64_t labels_define(uint32_t kind, uint64_t handle, uint32_t domain, const char *text,
                              uint32_t byte_count)
{
    if (!labels_begin())
        return 0;
    uint32_t *slot = labels_slot_of(kind, handle, domain, text, byte_count);
    uint32_t number = *slot;
    struct label l = {.kind = kind, .handle = handle, .domain = domain, .byte_count = byte_count};
    if (!number || !has_text(&table->labels[number - 1], text, byte_count)) {
        number = labels_add(slot, &l, text);
        if (!number)
            counter_add(COUNTER_RANGES_DROPPED, 1);
    }
    lock_drop(&labels_lock);
    return number;
}

uint64_t label_string(uint32_t domain, const char *text, uint32_t byte_count)
{
    return labels_define(LABEL_OF_STRING, 0, domain, text, byte_count);
}

bool label_string_text(uint64_t handle, const char **text, uint32_t *byte_count)
{
    if (!handle || handle > atomic_load(&label_count))
        return false;
    const struct label *l = &table->labels[handle - 1];
    *text = table->text + l->text_at;
    *byte_count = l->byte_count;
    return l->kind == LABEL_OF_STRING;
}

uint64_t label_name(uint32_t kind, uint64_t handle, uint32_t domain, const char *text,
                    uint32_t byte_count)
{
    return labels_define(kind, handle, domain, text, byte_count);
}

bool labels_are_due(void)
{
    uint32_t count = atomic_load_explicit(&label_count, memory_order_relaxed);
    return count && (atomic_load_explicit(&written_count, memory_order_relaxed) != count ||
                     atomic_load_explicit(&written_epoch, memory_order_relaxed) != epoch_now());
}

/*
 * Does not hold the lock under which labels are defined: appending may wait for space, and a thread
 * that gave up waiting for us would return an empty handle to NVTX, which keeps it. Labels that are
 * counted no longer change.
 */
void labels_write(struct thread *t)
{
    if (!labels_are_due() || !lock_take(&writing_lock, 0))
        return; /* or another thread is writing them */
    uint64_t epoch = t->epoch & EPOCH_MASK;
    if (atomic_exchange(&written_epoch, epoch) != epoch)
        atomic_store(&written_count, 0);
    uint32_t at = atomic_load(&written_count);
    for (bool good = true; good && at < atomic_load(&label_count);) {
        const struct label *l = &table->labels[at];
        struct record r = {RECORD_WITH(LABEL, [LABEL_KIND] = l->kind, [LABEL_HANDLE] = l->handle,
                                       [LABEL_DOMAIN] = l->domain),
                           .begin = l->begin, .bytes = (const uint8_t *)table->text + l->text_at,
                           .byte_count = l->byte_count};
        good = thread_append(t, &r);
        if (!good) /* tried again later, so nothing is lost */
            counter_add(COUNTER_DROPPED, (uint64_t)-1);
        else
            atomic_store(&written_count, ++at);
    }
    lock_drop(&writing_lock);
}

void labels_reset(void)
{
    atomic_store(&labels_lock.holder, 0);
    atomic_store(&writing_lock.holder, 0);
}
