/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/ledger.h"

#include <stdlib.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"

#define OUT_OF_MEMORY 2 /* of the runtime and the driver */

/* An effect that takes place when its call returns. */
struct ledger_late {
    struct ledger_block block; /* it begins then */
    uint64_t handle;
    uint8_t memory; /* enum api_memory */
    bool has_failed;
};

void ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user)
{
    *l = (struct ledger){.walk = walk, .user = *user};
    l->places.count_max = LEDGER_BLOCKS_MAX;
    l->totals.places.count_max = TOTALS_PLACES_MAX;
    l->has_calls = memory_new(walk->rec->count, sizeof *l->has_calls);
    l->mappings = memory_new(walk->rec->count, sizeof *l->mappings);
    l->late = memory_new(LEDGER_LATE_MAX, sizeof *l->late);
}

void ledger_release(struct ledger *l)
{
    for (uint32_t i = 0; l->mappings && i < l->walk->rec->count; i++)
        free(l->mappings[i].list);
    free(l->mappings);
    key_map_release(&l->places);
    key_map_release(&l->totals.places);
    key_map_release(&l->totals.pools);
    free(l->totals.list);
    free(l->blocks);
    free(l->late);
    free(l->has_calls);
    *l = (struct ledger){0};
}

/* ---- effects of returning calls -------------------------------------------------------------- */

static bool is_later(const void *one, const void *other)
{
    const struct ledger_late *a = one, *b = other;
    return a->block.begin_ns >= b->block.begin_ns;
}

static void ledger_settle(struct ledger *l, const struct ledger_late *late)
{
    struct ledger_block block = late->block;
    uint64_t at_ns = block.begin_ns;
    if (late->has_failed || late->memory == API_MEMORY_INFO)
        l->user.change(l->user.context, late->has_failed ? LEDGER_FAILED : LEDGER_ASKED, &block,
                       at_ns);
    else if (late->memory == API_MEMORY_MAP)
        books_map(l, &block, late->handle, at_ns);
    else if (late->memory == API_MEMORY_RETAIN)
        books_retain(l, block.process, block.address);
    else
        books_put_in(l, &block);
}

/* Applies all effects up to then. */
static void catch_up(struct ledger *l, uint64_t now_ns)
{
    while (l->late_count && l->late[l->late_count - 1].block.begin_ns <= now_ns)
        ledger_settle(l, &l->late[--l->late_count]);
}

/* Stores an effect for later. Too many open calls exist only in a forged file; then it applies at
 * once. */
static void do_later(struct ledger *l, const struct ledger_late *late)
{
    if (l->late_count == LEDGER_LATE_MAX)
        ledger_settle(l, late);
    else
        ARRAY_KEEP(l->late, l->late_count, LEDGER_LATE_MAX, late, is_later);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t argument(const struct event *e, const char *label)
{
    return function_arg(e->function, e->record, label, 0);
}

static uint32_t device_reported(uint64_t device)
{
    return device < LEDGER_NO_DEVICE ? (uint32_t)device : LEDGER_NO_DEVICE;
}

static uint32_t ledger_device_of(const struct event *e)
{
    return device_reported(function_arg(e->function, e->record, "device", UINT64_MAX));
}

static void set_kind(struct ledger_block *b, unsigned kind)
{
    b->kind = (uint8_t)kind;
    b->is_host = kind == LEDGER_PINNED || kind == LEDGER_REGISTERED;
}

/* The kind of block that a call allocates, + 1; 0: none. */
static const uint8_t got_kinds[API_MEMORY_COUNT] = {
    [API_MEMORY_GET_DEVICE] = LEDGER_LINEAR + 1,
    [API_MEMORY_GET_MANAGED] = LEDGER_MANAGED + 1,
    [API_MEMORY_GET_POOLED] = LEDGER_POOLED + 1,
    [API_MEMORY_GET_PHYSICAL] = LEDGER_PHYSICAL + 1,
    [API_MEMORY_GET_ARRAY] = LEDGER_ARRAY + 1,
    [API_MEMORY_GET_HOST] = LEDGER_PINNED + 1,
    [API_MEMORY_REGISTER_HOST] = LEDGER_REGISTERED + 1,
};

/* The owner is known at the call's begin; the time and the device at its end. */
static void ask_owner(const struct ledger *l, const struct slice *s, struct ledger_block *b)
{
    if (l->user.owner)
        b->owner = l->user.owner(l->user.context, s, b->kind);
}

/* Takes an allocation or a query, which has its result when the call returns. */
static void take_get(struct ledger *l, const struct slice *s, unsigned memory)
{
    const struct event *e = &s->event;
    struct ledger_late late = {.block = {.process = e->process, .begin_ns = e->end_ns},
                               .memory = (uint8_t)memory,
                               .handle = argument(e, "handle"),
                               .has_failed = e->record->result != 0};
    struct ledger_block *b = &late.block;
    bool gets = got_kinds[memory], asks = memory == API_MEMORY_INFO;
    bool is_physical = memory == API_MEMORY_GET_PHYSICAL;
    if (gets)
        set_kind(b, got_kinds[memory] - 1u);
    b->bytes = argument(e, asks ? "free" : "bytes");
    b->reserved = asks ? argument(e, "total") : 0;
    b->address = argument(e, is_physical ? "handle" : "ptr");
    b->device = ledger_device_of(e);
    b->is_driver = e->function->domain == API_DRIVER;
    if (is_physical && function_arg_place(e->function, "device") != UINT32_MAX &&
        b->device == LEDGER_NO_DEVICE)
        b->is_host = true; /* its properties contain the place */
    /* An empty request, or memory that another call maps. */
    if (gets && !late.has_failed && (!b->address || !b->bytes))
        return;
    l->has_calls[e->process->index] |= gets;
    if (gets)
        ask_owner(l, s, b);
    do_later(l, &late);
}

/* Takes a release, which counts from the call's begin on. */
static void take_release(struct ledger *l, const struct event *e, unsigned memory)
{
    static const uint8_t spaces[API_MEMORY_COUNT] = {
        [API_MEMORY_FREE] = SPACE_ADDRESS + 1,
        [API_MEMORY_FREE_HOST] = SPACE_HOST + 1,
        [API_MEMORY_FREE_ARRAY] = SPACE_ARRAY + 1,
        [API_MEMORY_UNREGISTER_HOST] = SPACE_REGISTERED + 1,
    };
    const struct process *p = e->process;
    uint64_t ptr = argument(e, "ptr"), at_ns = e->begin_ns;
    if (spaces[memory])
        books_release(l, p, spaces[memory] - 1u, ptr, at_ns);
    else if (memory == API_MEMORY_RELEASE_PHYSICAL)
        books_release_physical(l, p, argument(e, "handle"), at_ns);
    else if (memory == API_MEMORY_UNMAP)
        books_unmap(l, p, ptr, argument(e, "bytes"), at_ns);
    else if (memory == API_MEMORY_RESET)
        books_reset(l, p, ledger_device_of(e),
                    function_arg_place(e->function, "handle") != UINT32_MAX, at_ns);
}

static void ledger_take_call(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned memory = e->function->memory;
    bool has_failed = r->result != 0, is_captured = r->flags & RECORD_CAPTURED;
    if (memory == API_MEMORY_NONE || r->flags & (RECORD_NESTED | RECORD_OPEN | RECORD_STALE))
        return;
    if (has_failed && !(api_gets_memory(memory) && r->result == OUT_OF_MEMORY))
        return;
    l->doubts.sampled += r->weight > 1;
    if (is_captured && (memory == API_MEMORY_GET_POOLED || memory == API_MEMORY_FREE))
        memory = memory == API_MEMORY_FREE ? API_MEMORY_NODE_FREE : API_MEMORY_NODE_GET;
    l->doubts.in_graphs += memory == API_MEMORY_NODE_GET;
    if (got_kinds[memory] || memory == API_MEMORY_RETAIN || memory == API_MEMORY_MAP ||
        memory == API_MEMORY_INFO)
        take_get(l, s, memory);
    else
        take_release(l, e, memory);
}

/* ---- CUPTI's records ------------------------------------------------------------------------- */

static void take_pool(struct ledger *l, const struct event *e)
{
    const struct record *r = e->record;
    bool is_gone = record_arg(r, POOL_OPERATION) == POOL_DESTROYED;
    if (record_arg(r, POOL_KIND) == POOL_LOCAL)
        books_pool(l, e->process, device_reported(record_arg(r, POOL_DEVICE)),
                   record_arg(r, POOL_POOL), is_gone ? 0 : record_arg(r, POOL_BYTES));
}

/* Describes the record's memory; false if it is not the program's own. */
static bool describe_reported(const struct record *r, struct ledger_block *b)
{
    static const uint8_t kinds[] = {
        /* by CUPTI's number; two are for variables of modules */
        [2] = LEDGER_PINNED + 1,  [3] = LEDGER_LINEAR + 1, [4] = LEDGER_ARRAY + 1,
        [5] = LEDGER_MANAGED + 1, [6] = LEDGER_STATIC + 1, [7] = LEDGER_STATIC + 1};
    uint64_t kind = record_arg(r, MEMORY_KIND);
    if (kind >= sizeof kinds || !kinds[kind])
        return false;
    set_kind(b, kinds[kind] - 1u);
    if (b->kind == LEDGER_LINEAR && record_arg(r, MEMORY_POOL))
        b->kind = LEDGER_POOLED;
    b->address = record_arg(r, MEMORY_ADDRESS);
    b->bytes = record_arg(r, MEMORY_BYTES);
    b->device = device_reported(record_arg(r, MEMORY_DEVICE));
    b->is_pooled = record_arg(r, MEMORY_POOL) && record_arg(r, MEMORY_POOL_BYTES);
    return true;
}

/* Sets the device of a block that an open call allocates: CUPTI knows better. */
static void correct_device(struct ledger *l, const struct ledger_block *reported)
{
    for (uint32_t i = 0; i < l->late_count; i++) {
        struct ledger_block *b = &l->late[i].block;
        if (b->process == reported->process &&
            ledger_space_of(b->kind) == ledger_space_of(reported->kind) &&
            b->address == reported->address && reported->device != LEDGER_NO_DEVICE) {
            b->device = reported->device;
            b->is_pooled = reported->is_pooled;
        }
    }
}

/* Only CUPTI's record shows variables of modules, and all blocks if allocating calls are not
 * recorded. */
static void take_memory(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool comes = record_arg(r, MEMORY_OPERATION) == MEMORY_ALLOCATE;
    struct ledger_block block = {.process = e->process, .begin_ns = e->begin_ns};
    if (!describe_reported(r, &block))
        return;
    if (block.is_pooled)
        books_pool(l, e->process, block.device, record_arg(r, MEMORY_POOL),
                   record_arg(r, MEMORY_POOL_BYTES) - 1);
    if (l->has_calls[e->process->index] && block.kind != LEDGER_STATIC) {
        correct_device(l, &block);
    } else if (comes) {
        ask_owner(l, s, &block);
        books_put_in(l, &block);
    } else {
        books_release(l, e->process, ledger_space_of(block.kind), block.address, e->begin_ns);
    }
}

/* ---- PyTorch's allocator --------------------------------------------------------------------- */

static void ledger_take_tensor(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool has_failed = r->type == RECORD_TENSOR_OOM;
    struct ledger_block block = {
        .process = e->process,
        .begin_ns = e->begin_ns,
        .address = has_failed ? 0 : record_arg(r, TENSOR_ADDRESS),
        .bytes = record_arg(r, has_failed ? TENSOR_OOM_BYTES : TENSOR_BYTES),
        .reserved = record_arg(r, has_failed ? TENSOR_OOM_RESERVED : TENSOR_RESERVED),
        .device = device_reported(record_arg(r, has_failed ? TENSOR_OOM_DEVICE : TENSOR_DEVICE))};
    set_kind(&block, LEDGER_TENSOR);
    if (!has_failed && record_arg(r, TENSOR_OPERATION) != MEMORY_ALLOCATE) {
        books_release(l, e->process, SPACE_TENSOR, block.address, e->begin_ns);
        return;
    }
    ask_owner(l, s, &block);
    if (has_failed)
        l->user.change(l->user.context, LEDGER_FAILED, &block, e->begin_ns);
    else
        books_put_in(l, &block);
}

static __attribute__((noinline)) int take_any(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    bool is_left = s->change == SPAN_LEFT; /* no event: all events are past */
    uint64_t end_ns = l->until_ns ? l->until_ns : UINT64_MAX;
    bool is_past = is_left || e->begin_ns > end_ns;
    catch_up(l, is_past ? end_ns : e->begin_ns);
    if (is_past && l->until_ns)
        return WALK_STOP;
    switch (e->record->type) {
    case RECORD_CALL: ledger_take_call(l, s); break;
    case RECORD_MEMORY: take_memory(l, s); break;
    case RECORD_POOL: take_pool(l, e); break;
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: ledger_take_tensor(l, s); break;
    default: break;
    }
    return 0;
}

/* Most slices are work, or calls unrelated to memory. */
static int ledger_take(void *context, const struct slice *s)
{
    struct ledger *l = context;
    const struct event *e = &s->event;
    uint8_t type = e->record->type;
    bool is_plain =
        type == RECORD_CALL ? e->function->memory == API_MEMORY_NONE : is_stream_work(type);
    return is_plain && !l->late_count ? 0 : take_any(l, s);
}

static int ledger_end(void *context)
{
    struct ledger *l = context;
    catch_up(l, l->until_ns ? l->until_ns : UINT64_MAX);
    return 0;
}

struct consumer ledger_consumer(struct ledger *l)
{
    return (struct consumer){.context = l,
                             .skips = WALK_SKIPS_WORK,
                             .sees_filtered = true,
                             .take = ledger_take,
                             .end = ledger_end};
}
