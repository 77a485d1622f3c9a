/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/current_device.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/hash.h"

/* contexts per thread; if there are more, the thread's device is not known */
#define STACK_MAX 4
#define SLOTS     256 /* power of two: contexts per process */
/* slots searched for one context; if all are taken, one of the others is dropped */
#define SLOTS_LOOKED 8
/* the context's address is above these bits; CUDA's addresses have at most 56 */
#define DEVICE_BITS   8
#define DEVICE_NUMBER ((1u << DEVICE_BITS) - 1) /* the low bits hold the device number plus 1 */

/* Shared by all threads: context << DEVICE_BITS | device + 1; 0: free. */
static _Atomic uint64_t contexts[SLOTS];

__thread int32_t device_current;

static __thread struct {
    const void *contexts[STACK_MAX];
    int16_t reported; /* the device given to cudaSetDevice */
    uint16_t depth;
} stack;

static _Atomic uint64_t *current_device_slot_of(uint64_t context, unsigned i)
{
    return &contexts[((hash_mix(0, context) >> 32) + i) & (SLOTS - 1)];
}

/* Returns the word for the context, and in `slot` where it is or could be stored. */
static uint64_t current_device_find(const void *context, _Atomic uint64_t **slot)
{
    uint64_t key = (uint64_t)(uintptr_t)context;
    *slot = current_device_slot_of(key, 0);
    for (unsigned i = SLOTS_LOOKED; i-- > 0;) {
        _Atomic uint64_t *at = current_device_slot_of(key, i);
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
    uint64_t word = current_device_find(context, &slot);
    uint64_t number = device >= 0 && (uint32_t)device < DEVICE_NUMBER ? (uint32_t)device + 1 : 0;
    uint64_t noted = (uint64_t)(uintptr_t)context << DEVICE_BITS | number;
    /* Two threads may have raced for one slot; then one of the contexts is not known. */
    if (context && word != noted)
        atomic_store_explicit(slot, number ? noted : 0, memory_order_relaxed);
}

int32_t device_of(const void *context)
{
    _Atomic uint64_t *slot;
    return (int32_t)(current_device_find(context, &slot) & DEVICE_NUMBER) - 1;
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

/* The stack has changed: computes the current device. */
static void current_device_follow(void)
{
    device_current = !stack.depth               ? stack.reported
                     : stack.depth <= STACK_MAX ? device_of(stack.contexts[stack.depth - 1])
                                                : DEVICE_UNKNOWN;
}

void device_set(int32_t device)
{
    stack.reported = (int16_t)device;
    /* the runtime has made the device's context current, or will before its first use */
    device_current = device;
}

void device_push(const void *context)
{
    if (stack.depth < STACK_MAX)
        stack.contexts[stack.depth] = context;
    stack.depth += stack.depth < UINT16_MAX;
    current_device_follow();
}

void device_pop(void)
{
    stack.depth -= stack.depth > 0;
    current_device_follow();
}

void device_replace(const void *context)
{
    stack.depth -= stack.depth > 0;
    if (context)
        device_push(context);
    else
        current_device_follow();
}

void device_drop(const void *context)
{
    if (stack.depth && stack.depth <= STACK_MAX && stack.contexts[stack.depth - 1] == context)
        device_pop();
}
