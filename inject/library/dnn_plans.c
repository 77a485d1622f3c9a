/* SPDX-License-Identifier: Apache-2.0 */
#include "library/dnn_plans.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/pages.h"
#include "hook/hook_real.h"
#include "library/dnn_json.h"
#include "record/text_table.h"

#define PLANS_MAX       8192u /* number of texts; a power of two */
#define PLAN_TEXT_BYTES (4u << 20)
#define JSON_BYTES_MAX  (64 << 20) /* a plan may contain its kernels */
#define TEXT_BYTES_MAX  RECORD_BYTES_MAX

static struct text_table plans = {
    .record_type = RECORD_LIBRARY_PLAN, .entries_max = PLANS_MAX, .text_max = PLAN_TEXT_BYTES};

/*
 * Numbers by key: the address of an execution plan, or a hash of what descriptors say. One word
 * each, so that it is read and written atomically. Nobody destroys a plan while using it, so a word
 * that is there is right.
 */
#define WAYS        4u
#define SETS        4096u
#define NUMBER_BITS 14
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
/* stored in place of a number: cuDNN was asked, and did not answer */
#define NOT_KNOWN NUMBER_MASK

_Static_assert(PLANS_MAX <= NUMBER_MASK, "numbers below the one that stands for none");

static _Atomic uint64_t known[SETS][WAYS];
static _Atomic bool known_is_used;

/* Never returns 0. */
static uint64_t key_of_plan(const void *plan)
{
    return (uint64_t)(uintptr_t)plan >> 4 << (NUMBER_BITS + 1);
}

static uint64_t key_of_hash(uint64_t hash)
{
    return (hash | 1) << NUMBER_BITS;
}

static _Atomic uint64_t *set_of(uint64_t key)
{
    return known[text_hash_word(0, key) % SETS];
}

static uint32_t dnn_plans_find(uint64_t key)
{
    _Atomic uint64_t *set = set_of(key);
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load_explicit(&set[i], memory_order_relaxed);
        if ((word & ~(uint64_t)NUMBER_MASK) == key)
            return (uint32_t)(word & NUMBER_MASK);
    }
    return 0;
}

/* Replaces another entry if there is no space; that one is queried again later. */
static void dnn_plans_keep(uint64_t key, uint32_t number)
{
    _Atomic uint64_t *set = set_of(key);
    unsigned i = 0;
    while (i < WAYS && atomic_load_explicit(&set[i], memory_order_relaxed))
        i++;
    if (i == WAYS)
        i = (unsigned)(key >> NUMBER_BITS >> 20) % WAYS;
    atomic_store_explicit(&known_is_used, true, memory_order_relaxed);
    atomic_store_explicit(&set[i], key | number, memory_order_relaxed);
}

static void dnn_plans_drop(uint64_t key)
{
    _Atomic uint64_t *set = set_of(key);
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t word = atomic_load_explicit(&set[i], memory_order_relaxed);
        if ((word & ~(uint64_t)NUMBER_MASK) == key)
            atomic_compare_exchange_strong(&set[i], &word, 0);
    }
}

/* A text without space at the moment is tried again; one that can never fit is not. */
static uint32_t number_of_text(struct thread *t, const struct dnn_text *text)
{
    const uint8_t *bytes = (const uint8_t *)text->text;
    uint32_t number = text_table_add(&plans, t, bytes, text->bytes, text_hash(bytes, text->bytes));
    return number || !text_table_is_full(&plans, text->bytes) ? number : NOT_KNOWN;
}

struct work {
    struct dnn_tensor tensors[DNN_TENSORS_MAX];
    char text[TEXT_BYTES_MAX];
    char json[];
};

static uint32_t number_of_json(struct thread *t, const struct dnn_getters *ask, const void *plan,
                               int64_t bytes)
{
    const size_t map_bytes = sizeof(struct work) + (size_t)bytes;
    struct work *w = pages_map(map_bytes);
    struct dnn_text text;
    uint32_t number = NOT_KNOWN;
    if (!w)
        return 0;
    dnn_text_init(&text, w->text, sizeof w->text);
    if (dnn_ask_json(ask, plan, &bytes, w->json) &&
        dnn_json_text(w->json, (size_t)bytes, w->tensors, &text))
        number = number_of_text(t, &text);
    munmap(w, map_bytes);
    return number;
}

static uint32_t ask_plan(struct thread *t, const struct dnn_call *c)
{
    const struct dnn_getters *ask = dnn_getters_of(c->plan.real);
    int64_t bytes = 0;
    if (!ask || !dnn_ask_json(ask, c->execution_plan, &bytes, NULL) || bytes <= 0 ||
        bytes > JSON_BYTES_MAX)
        return NOT_KNOWN;
    return number_of_json(t, ask, c->execution_plan, bytes);
}

static uint32_t number_of_plan(struct thread *t, const struct dnn_call *c)
{
    uint64_t key = key_of_plan(c->execution_plan);
    uint32_t number = c->execution_plan ? dnn_plans_find(key) : NOT_KNOWN;
    if (!number) {
        number = ask_plan(t, c);
        if (number)
            dnn_plans_keep(key, number);
    }
    return number;
}

static uint32_t number_of_operation(struct thread *t, const struct dnn_call *c)
{
    char buffer[DNN_READ_TEXT_MAX];
    struct dnn_read read[DNN_ITEMS_MAX];
    struct dnn_text text;
    const struct dnn_getters *ask = dnn_getters_of(c->plan.real);
    uint64_t hash = text_hash((const uint8_t *)c->name, (uint32_t)strlen(c->name));
    if (!ask || !dnn_read(ask, c->items, read))
        return NOT_KNOWN;
    hash = text_hash_word(hash, text_hash((const uint8_t *)read, sizeof read));
    uint32_t number = dnn_plans_find(key_of_hash(hash));
    if (!number) {
        dnn_text_init(&text, buffer, sizeof buffer);
        dnn_read_text(c->name, c->items, read, &text);
        number = number_of_text(t, &text);
        if (number)
            dnn_plans_keep(key_of_hash(hash), number);
    }
    return number;
}

uint64_t dnn_plan_number(const struct library_plan *plan, struct thread *t)
{
    const struct dnn_call *c = (const struct dnn_call *)(const void *)plan;
    int saved = errno;
    uint32_t number = c->name ? number_of_operation(t, c) : number_of_plan(t, c);
    errno = saved;
    return number == NOT_KNOWN ? 0 : number;
}

/* Called before it is destroyed, since its address may be reused at once. */
EXPORT int cudnnBackendDestroyDescriptor(void *descriptor);
EXPORT int cudnnBackendDestroyDescriptor(void *descriptor)
{
    __typeof__(&cudnnBackendDestroyDescriptor) real = HOOK_REAL(cudnnBackendDestroyDescriptor);
    if (descriptor && atomic_load_explicit(&known_is_used, memory_order_relaxed))
        dnn_plans_drop(key_of_plan(descriptor));
    return real ? real(descriptor) : 1001; /* CUDNN_STATUS_NOT_INITIALIZED */
}

void dnn_reset(void)
{
    text_table_reset(&plans);
    if (atomic_exchange(&known_is_used, false))
        memset((void *)known, 0, sizeof known);
}
