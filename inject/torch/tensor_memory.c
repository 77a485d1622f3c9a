/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/tensor_memory.h"

#include <errno.h>

#include "base/objects.h"
#include "base/ticks.h"
#include "hook/call.h"
#include "record/thread.h"
#include "stack/stack.h"

#define CALLERS_MAX 8 /* libraries that report blocks: libc10_cuda, libc10, plugins */
#define DEVICE_CPU  0 /* c10::DeviceType */

/* c10::Device. */
struct device {
    int8_t type;
    int8_t index; /* -1: the current device, if there is only one */
};

typedef void (*usage_fn)(void *, int64_t, uint64_t, uint64_t, struct device);
typedef void (*failure_fn)(int64_t, uint64_t, uint64_t, struct device);

/* Up to 2.0 the totals were signed: same registers, other symbol name. */
enum name { USAGE, USAGE_SIGNED, FAILURE, FAILURE_SIGNED, NAME_COUNT };

static const char *const names[NAME_COUNT] = {
    [USAGE] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
    [USAGE_SIGNED] = "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    [FAILURE] = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
    [FAILURE_SIGNED] = "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
};

/* ---- Whom it was meant for ------------------------------------------------------------------- */

/* Filled by the first call from an object, on any thread. `bytes` is set last, and reset to 0 when
 * an object is unloaded. */
struct caller {
    _Atomic uint32_t is_taken;
    _Atomic uintptr_t low;
    _Atomic uintptr_t bytes;
    _Atomic(void *) real[NAME_COUNT];
};

static struct caller callers[CALLERS_MAX];

struct search {
    const char *name;
    const struct object *caller; /* NULL: the address is in no object */
    /* the function in the caller itself, or in a library it is linked with */
    void *own;
    void *first;
};

static int tensor_memory_visit(const struct object *o, void *data)
{
    struct search *s = data;
    void *address = object_is_ours(o) ? NULL : object_symbol(o, s->name);
    if (!address)
        return 0;
    if (!s->first)
        s->first = address;
    if (!s->own && s->caller &&
        (s->caller->low == o->low || object_needs(s->caller, object_soname(o))))
        s->own = address;
    return s->own != NULL;
}

static void *tensor_memory_find(const struct object *from, enum name name)
{
    struct search s = {.name = names[name], .caller = from};
    objects_each(tensor_memory_visit, &s);
    return s.own ? s.own : s.first;
}

/* First call from an object: searches the loaded objects, as throwing an exception does. */
static __attribute__((noinline)) void *tensor_memory_look(uintptr_t address, enum name name)
{
    int saved = errno;
    struct object o;
    bool is_in_one = object_at(address, &o);
    void *real = tensor_memory_find(is_in_one ? &o : NULL, name);
    for (unsigned i = 0; is_in_one && i < CALLERS_MAX; i++) {
        struct caller *c = &callers[i];
        uint32_t is_free = 0;
        if (!atomic_compare_exchange_strong(&c->is_taken, &is_free, 1))
            continue;
        for (unsigned k = 0; k < NAME_COUNT; k++)
            atomic_store(&c->real[k], k == name ? real : tensor_memory_find(&o, (enum name)k));
        atomic_store(&c->low, o.low);
        atomic_store_explicit(&c->bytes, o.high - o.low, memory_order_release);
        break;
    }
    errno = saved;
    return real;
}

/* Returns libc10's function of this name, or NULL. */
static void *real_of(uintptr_t address, enum name name)
{
    for (unsigned i = 0; i < CALLERS_MAX; i++) {
        const struct caller *c = &callers[i];
        uintptr_t bytes = atomic_load_explicit(&c->bytes, memory_order_acquire);
        if (address - atomic_load_explicit(&c->low, memory_order_relaxed) < bytes)
            return atomic_load_explicit(&c->real[name], memory_order_relaxed);
    }
    return tensor_memory_look(address, name);
}

void tensor_memory_unloaded(void)
{
    for (unsigned i = 0; i < CALLERS_MAX; i++)
        if (atomic_exchange(&callers[i].bytes, 0))
            atomic_store(&callers[i].is_taken, 0);
}

/* ---- Records --------------------------------------------------------------------------------- */

enum { BLOCK_GOT = 1, BLOCK_FREED = 2 }; /* CUpti_ActivityMemoryOperationType */

/* State of one call, from its begin to its end. */
struct reported {
    struct call call;
    bool was_hurried;
    uint64_t begin; /* in ticks, if the call is timed; without the time for its stack */
};

/*
 * Returns false if the call is not to be recorded; otherwise reported_end must follow. The host
 * allocator reports only while a profiler runs, so its blocks are left out. So are blocks while the
 * process ends: each record would be stored at once, and there are many.
 */
static bool reported_begin(struct thread *t, struct reported *reported, struct device device)
{
    if (device.type == DEVICE_CPU || !gp.settings.numbers[SETTING_MEMORY] ||
        epoch_now() == EPOCH_NONE || attention_now() >= ATTENTION_LATE ||
        !call_enter_own(t, &reported->call))
        return false;
    reported->was_hurried = thread_hurry(t, true);
    reported->begin = unlikely(t->burst) ? ticks_now() : 0;
    if (thread_takes_part(t) || thread_attach(t))
        return true;
    thread_hurry(t, reported->was_hurried);
    call_leave(t);
    return false;
}

static void reported_end(struct thread *t, const struct reported *reported)
{
    if (unlikely(reported->begin))
        thread_cost_time(t->cost, COST_TENSOR, ticks_now() - reported->begin);
    thread_hurry(t, reported->was_hurried);
    call_leave(t);
}

/* Records Python's frames only, if there are any: they identify the caller, and cost less. */
static uint32_t tensor_memory_take_stack(struct thread *t, struct reported *reported)
{
    uint64_t begin = ticks_now();
    uint32_t stack = stack_take_python(t);
    if (!stack)
        stack = stack_take(t);
    uint64_t ticks = ticks_now() - begin;
    thread_cost_time(t->cost, COST_STACK, ticks);
    reported->begin += reported->begin ? ticks : 0;
    return stack;
}

static void tensor_memory_append(struct thread *t, const struct record *r)
{
    if (thread_append(t, r))
        return;
    counter_add(COUNTER_DROPPED, (uint64_t)-1); /* has its own counter instead */
    counter_add(COUNTER_TENSORS_DROPPED, 1);
}

static uint64_t index_of(struct device device)
{
    return device.index < 0 ? 0 : (uint64_t)device.index;
}

static void report_block(const void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                         struct device device)
{
    struct thread *t = &this_thread;
    struct reported reported;
    bool is_got = bytes >= 0;
    uint64_t size = is_got ? (uint64_t)bytes : 0 - (uint64_t)bytes, now = ticks_now();
    if (!reported_begin(t, &reported, device))
        return;
    uint32_t stack =
        is_got && stack_of_memory(t, size) ? tensor_memory_take_stack(t, &reported) : 0;
    struct record r = {
        RECORD_WITH(
            TENSOR, [TENSOR_OPERATION] = is_got ? BLOCK_GOT : BLOCK_FREED,
            [TENSOR_ADDRESS] = (uintptr_t)address, [TENSOR_BYTES] = size,
            [TENSOR_ALLOCATED] = allocated, [TENSOR_RESERVED] = reserved,
            [TENSOR_DEVICE] = index_of(device), [TENSOR_DEVICE_KIND] = (uint64_t)device.type,
            [TENSOR_STANDS_FOR] = stack ? stack_of_memory_bytes(size) : 0),
        .begin = now, .stack_id = stack};
    r.arg_count -= !stack; /* a trailing argument of 0 is left out */
    tensor_memory_append(t, &r);
    reported_end(t, &reported);
}

static void report_failure(int64_t bytes, uint64_t allocated, uint64_t reserved,
                           struct device device)
{
    struct thread *t = &this_thread;
    struct reported reported;
    uint64_t now = ticks_now();
    if (!reported_begin(t, &reported, device))
        return;
    struct record r = {
        RECORD_WITH(
            TENSOR_OOM, [TENSOR_OOM_BYTES] = (uint64_t)bytes, [TENSOR_OOM_ALLOCATED] = allocated,
            [TENSOR_OOM_RESERVED] = reserved, [TENSOR_OOM_DEVICE] = index_of(device),
            [TENSOR_OOM_DEVICE_KIND] = (uint64_t)device.type),
        .begin = now,
        .stack_id = stack_of_failure(API_ALLOC) ? tensor_memory_take_stack(t, &reported) : 0};
    tensor_memory_append(t, &r);
    reported_end(t, &reported);
}

/* ---- As libc10 and its users call them ------------------------------------------------------- */

#define USAGE_AS(symbol, name)                                                                     \
    EXPORT void symbol(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,        \
                       struct device device);                                                      \
    EXPORT void symbol(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,        \
                       struct device device)                                                       \
    {                                                                                              \
        usage_fn real = (usage_fn)real_of((uintptr_t)__builtin_return_address(0), name);           \
        report_block(address, bytes, allocated, reserved, device);                                 \
        if (real)                                                                                  \
            real(address, bytes, allocated, reserved, device);                                     \
    }
#define FAILURE_AS(symbol, name)                                                                   \
    EXPORT void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved,                       \
                       struct device device);                                                      \
    EXPORT void symbol(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device) \
    {                                                                                              \
        failure_fn real = (failure_fn)real_of((uintptr_t)__builtin_return_address(0), name);       \
        report_failure(bytes, allocated, reserved, device);                                        \
        if (real)                                                                                  \
            real(bytes, allocated, reserved, device);                                              \
    }

USAGE_AS(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, USAGE)
USAGE_AS(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, USAGE_SIGNED)
FAILURE_AS(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, FAILURE)
FAILURE_AS(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, FAILURE_SIGNED)
