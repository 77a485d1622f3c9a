/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/current_device.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/hash.h"

#define STACK_MAX     4   /* contexts of a thread; above more of them, its device is not known */
#define SLOTS         256 /* a power of two: contexts of the process */
#define SLOTS_LOOKED  8 /* at, for one; beyond it takes the place of another, which is forgotten */
#define DEVICE_BITS   8 /* above them the address, of which CUDA's have 56 bits at most */
#define DEVICE_NUMBER ((1u << DEVICE_BITS) - 1) /* one more than the number */

/* By any thread: context << DEVICE_BITS | device + 1; 0: free. */
static _Atomic uint64_t contexts[SLOTS];

__thread int32_t device_current;

static __thread struct {
    const void *contexts[STACK_MAX];
    int16_t told; /* to the runtime */
    uint16_t depth;
} stack;

static _Atomic uint64_t *slot_of(uint64_t context, unsigned i)
{
    return &contexts[((hash_mix(0, context) >> 32) + i) & (SLOTS - 1)];
}

/* What its slot has of it, and in `slot` where that is, or where it could be. */
static uint64_t find(const void *context, _Atomic uint64_t **slot)
{
    uint64_t key = (uint64_t)(uintptr_t)context;
    *slot = slot_of(key, 0);
    for (unsigned i = SLOTS_LOOKED; i-- > 0;) {
        _Atomic uint64_t *at = slot_of(key, i);
        uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
        if (!word || word >> DEVICE_BITS == key)
            *slot = at;
        if (word && word >> DEVICE_BITS == key)
            return word;
    }
    return 0;
}

void device_note(const void *context, int32_t device)
{
    _Atomic uint64_t *slot;
    uint64_t word = find(context, &slot);
    uint64_t number = device >= 0 && (uint32_t)device < DEVICE_NUMBER ? (uint32_t)device + 1 : 0;
    uint64_t noted = (uint64_t)(uintptr_t)context << DEVICE_BITS | number;
    /* Two threads that meet in one slot: one of the contexts is not known. */
    if (context && word != noted)
        atomic_store_explicit(slot, number ? noted : 0, memory_order_relaxed);
}

int32_t device_of(const void *context)
{
    _Atomic uint64_t *slot;
    return (int32_t)(find(context, &slot) & DEVICE_NUMBER) - 1;
}

bool device_has_context(int32_t device)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t word = atomic_load_explicit(&contexts[i], memory_order_relaxed);
        if (word && (int32_t)(word & DEVICE_NUMBER) - 1 == device)
            return true;
    }
    return false;
}

/* The stack has changed. */
static void follow(void)
{
    device_current = !stack.depth               ? stack.told
                     : stack.depth <= STACK_MAX ? device_of(stack.contexts[stack.depth - 1])
                                                : DEVICE_UNKNOWN;
}

void device_set(int32_t device)
{
    stack.told = (int16_t)device;
    device_current = device; /* it has made its context current, or will before it is used */
}

void device_push(const void *context)
{
    if (stack.depth < STACK_MAX)
        stack.contexts[stack.depth] = context;
    stack.depth += stack.depth < UINT16_MAX;
    follow();
}

void device_pop(void)
{
    stack.depth -= stack.depth > 0;
    follow();
}

void device_replace(const void *context)
{
    stack.depth -= stack.depth > 0;
    if (context)
        device_push(context);
    else
        follow();
}

void device_drop(const void *context)
{
    if (stack.depth && stack.depth <= STACK_MAX && stack.contexts[stack.depth - 1] == context)
        device_pop();
}
