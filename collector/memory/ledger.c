/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/ledger.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

#define POOLED        (1ull << 32) /* in `told` */
#define OUT_OF_MEMORY 2            /* of the runtime and of the driver alike */

/* CUPTI's kinds of memory: variables of modules. */
#define KIND_STATIC         6
#define KIND_MANAGED_STATIC 7

/* Where a function's arguments are, from 1 on; 0: it has none such. */
struct ledger_form {
    bool is_known;
    bool is_array; /* `ptr` is a handle */
    uint8_t ptr, bytes, device, handle, pool, free, total;
};

/* What comes to pass when a call returns. */
struct ledger_late {
    uint64_t at_ns;
    uint64_t order;
    struct ledger_block block;
    uint64_t handle;
    uint8_t memory; /* enum api_memory */
    bool has_failed;
};

int ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user)
{
    const struct ledger_told told = {user->context, user->got, user->gone, user->mapped};
    *l = (struct ledger){.walk = walk, .user = *user};
    l->pools.count_max = l->told.count_max = LEDGER_POOLS_MAX;
    l->form_count = walk->rec->reader.functions.count;
    l->forms = calloc(l->form_count + 1u, sizeof *l->forms);
    l->has_calls = calloc(walk->rec->count + 1u, sizeof *l->has_calls);
    int error = books_init(&l->books, walk->rec->count, &told);
    return l->forms && l->has_calls ? error : GPUPROF_NO_MEMORY;
}

void ledger_release(struct ledger *l)
{
    books_release_all(&l->books);
    key_map_release(&l->pools);
    key_map_release(&l->told);
    free(l->late);
    free(l->forms);
    free(l->has_calls);
    *l = (struct ledger){0};
}

/* ---- what comes to pass when a call returns -------------------------------------------------- */

static bool is_earlier(const struct ledger_late *a, const struct ledger_late *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static int settle(struct ledger *l, const struct ledger_late *late)
{
    struct ledger_block block = late->block;
    if (late->has_failed) {
        block.begin_ns = late->at_ns;
        return l->user.failed ? l->user.failed(l->user.context, &block) : 0;
    }
    if (late->memory == API_MEMORY_MAP)
        return books_map(&l->books, &block, late->handle, late->at_ns);
    if (late->memory == API_MEMORY_RETAIN)
        return books_retain(&l->books, block.process, block.address, late->handle);
    if (late->memory == API_MEMORY_INFO) {
        struct ledger_free left = {block.process, late->at_ns, block.bytes, block.address,
                                   block.device};
        return l->user.left ? l->user.left(l->user.context, &left) : 0;
    }
    struct key key = {block.process->index, block.address, 0};
    uint64_t told = block.space == SPACE_ADDRESS ? key_map_get(&l->told, key) : 0;
    if (told) {
        block.device = (uint32_t)((told & (POOLED - 1)) - 1);
        block.is_pooled = told & POOLED;
        key_map_remove(&l->told, key);
    }
    return books_put_in(&l->books, &block, late->at_ns);
}

/* All that has come to pass by then. */
static int catch_up(struct ledger *l, uint64_t now_ns)
{
    int error = 0;
    while (error == 0 && l->late_count && l->late[0].at_ns <= now_ns) {
        struct ledger_late first = l->late[0], last = l->late[--l->late_count];
        uint32_t at = 0;
        for (uint32_t below = 1; below < l->late_count; below = 2 * at + 1) {
            below += below + 1 < l->late_count && is_earlier(&l->late[below + 1], &l->late[below]);
            if (!is_earlier(&l->late[below], &last))
                break;
            l->late[at] = l->late[below];
            at = below;
        }
        l->late[at] = last;
        error = settle(l, &first);
    }
    return error;
}

/* More than can be under way: a file made for it. It is taken for done. */
static int do_later(struct ledger *l, struct ledger_late *late)
{
    late->order = l->late_order++;
    if (l->late_count >= LEDGER_LATE_MAX)
        return settle(l, late);
    struct ledger_late *heap =
        array_room(l->late, l->late_count, &l->late_capacity, sizeof *heap, 16);
    if (!heap)
        return GPUPROF_NO_MEMORY;
    l->late = heap;
    uint32_t at = l->late_count++;
    for (; at && is_earlier(late, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = *late;
    return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct ledger_form *form_of(struct ledger *l, const struct function *f)
{
    static const struct ledger_form none;
    static const struct {
        const char *label;
        size_t at;
    } arguments[] = {{"ptr", offsetof(struct ledger_form, ptr)},
                     {"bytes", offsetof(struct ledger_form, bytes)},
                     {"device", offsetof(struct ledger_form, device)},
                     {"handle", offsetof(struct ledger_form, handle)},
                     {"pool", offsetof(struct ledger_form, pool)},
                     {"free", offsetof(struct ledger_form, free)},
                     {"total", offsetof(struct ledger_form, total)}};
    if (f->index >= l->form_count)
        return &none;
    struct ledger_form *form = &l->forms[f->index];
    for (unsigned i = 0; !form->is_known && i < f->arg_count; i++)
        for (unsigned k = 0; k < sizeof arguments / sizeof arguments[0]; k++)
            if (strcmp(f->args[i].label, arguments[k].label) == 0)
                ((uint8_t *)form)[arguments[k].at] = (uint8_t)(i + 1);
    form->is_array = form->ptr && f->args[form->ptr - 1].kind == ARG_HANDLE;
    form->is_known = true;
    return form;
}

static uint64_t argument(const struct record *r, uint8_t place)
{
    return place && place <= r->arg_count ? r->args[place - 1] : 0;
}

static uint32_t device_of(const struct record *r, const struct ledger_form *form)
{
    uint64_t device = argument(r, form->device);
    bool is_there = form->device && form->device <= r->arg_count;
    return is_there && device < LEDGER_NO_DEVICE ? (uint32_t)device : LEDGER_NO_DEVICE;
}

/* What kind of block a call gets, and where its address is one. False: it gets none. */
static bool describe(unsigned memory, const struct ledger_form *form, struct ledger_block *b)
{
    static const struct {
        bool gets;
        uint8_t kind;
        uint8_t space;
        bool is_host;
    } ways[API_MEMORY_COUNT] = {
        [API_MEMORY_GET_DEVICE] = {true, LEDGER_LINEAR, SPACE_ADDRESS, false},
        [API_MEMORY_GET_MANAGED] = {true, LEDGER_MANAGED, SPACE_ADDRESS, false},
        [API_MEMORY_GET_POOLED] = {true, LEDGER_POOLED, SPACE_ADDRESS, false},
        [API_MEMORY_GET_PHYSICAL] = {true, LEDGER_PHYSICAL, SPACE_HANDLE, false},
        [API_MEMORY_GET_ARRAY] = {true, LEDGER_ARRAY, SPACE_ARRAY, false},
        [API_MEMORY_GET_HOST] = {true, LEDGER_PINNED, SPACE_HOST, true},
        [API_MEMORY_REGISTER_HOST] = {true, LEDGER_REGISTERED, SPACE_REGISTERED, true},
        [API_MEMORY_OPEN_FOREIGN] = {true, LEDGER_NOT_OWN, SPACE_ADDRESS, false},
        [API_MEMORY_NODE_GET] = {true, LEDGER_NOT_OWN, SPACE_ADDRESS, false},
    };
    b->kind = ways[memory].kind;
    b->space = ways[memory].space;
    b->is_host = ways[memory].is_host;
    if (b->kind == LEDGER_NOT_OWN && form->is_array)
        b->space = SPACE_ARRAY;
    return ways[memory].gets;
}

/* A call that gets something, or asks, and has its answer when it returns. */
static int take_get(struct ledger *l, const struct slice *s, const struct ledger_form *form,
                    unsigned memory)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct ledger_late late = {.at_ns = e->end_ns, .memory = (uint8_t)memory};
    struct ledger_block *b = &late.block;
    bool gets = describe(memory, form, b);
    b->process = e->process;
    b->bytes = argument(r, memory == API_MEMORY_INFO ? form->free : form->bytes);
    b->address = argument(r, memory == API_MEMORY_INFO           ? form->total
                             : memory == API_MEMORY_GET_PHYSICAL ? form->handle
                                                                 : form->ptr);
    b->device = device_of(r, form);
    b->is_driver = e->function->domain == API_DRIVER;
    late.handle = argument(r, form->handle);
    late.has_failed = r->result != 0;
    if (memory == API_MEMORY_GET_PHYSICAL && form->device && b->device == LEDGER_NO_DEVICE)
        b->is_host = true; /* its properties say where it is */
    uint64_t pool =
        key_map_get(&l->pools, (struct key){e->process->index, argument(r, form->pool), 0});
    if (form->pool && pool)
        b->device = (uint32_t)(pool - 1);
    if (gets && !late.has_failed && (!b->address || !b->bytes) && b->kind != LEDGER_NOT_OWN)
        return 0; /* nothing was wanted */
    if (gets && !late.has_failed && !b->address)
        return 0; /* it is opened, and mapped by another call */
    l->has_calls[e->process->index] |= gets;
    int error = gets && b->kind != LEDGER_NOT_OWN && l->user.owner
                    ? l->user.owner(l->user.context, s, b->kind, &b->owner)
                    : 0;
    return error < 0 ? error : do_later(l, &late);
}

/* A call that releases something: it counts from its begin on. */
static int take_release(struct ledger *l, const struct event *e, const struct ledger_form *form,
                        unsigned memory)
{
    const struct record *r = e->record;
    const struct process *p = e->process;
    uint64_t ptr = argument(r, form->ptr), at_ns = e->begin_ns;
    uint32_t place;
    switch (memory) {
    case API_MEMORY_FREE: return books_release(&l->books, p, SPACE_ADDRESS, ptr, at_ns);
    case API_MEMORY_FREE_HOST: return books_release(&l->books, p, SPACE_HOST, ptr, at_ns);
    case API_MEMORY_FREE_ARRAY: return books_release(&l->books, p, SPACE_ARRAY, ptr, at_ns);
    case API_MEMORY_UNREGISTER_HOST:
        return books_release(&l->books, p, SPACE_REGISTERED, ptr, at_ns);
    case API_MEMORY_RELEASE_PHYSICAL:
        return books_release_physical(&l->books, p, argument(r, form->handle), at_ns);
    case API_MEMORY_UNMAP: return books_unmap(&l->books, p, ptr, argument(r, form->bytes), at_ns);
    case API_MEMORY_CLOSE_FOREIGN:
        place = books_find(&l->books, p, SPACE_ADDRESS, ptr);
        return place && l->books.blocks[place].kind == LEDGER_NOT_OWN
                   ? books_take_out(&l->books, place, at_ns)
                   : 0;
    case API_MEMORY_RESET:
        return books_reset(&l->books, p, device_of(r, form), form->handle != 0, at_ns);
    default: return 0;
    }
}

static int take_call(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned memory = e->function->memory;
    bool has_failed = r->result != 0, is_captured = r->flags & RECORD_CAPTURED;
    if (memory == API_MEMORY_NONE || r->flags & (RECORD_NESTED | RECORD_OPEN | RECORD_STALE))
        return 0;
    if (has_failed && !(api_gets_memory(memory) && r->result == OUT_OF_MEMORY))
        return 0;
    const struct ledger_form *form = form_of(l, e->function);
    l->books.doubts.sampled += r->weight > 1;
    if (is_captured && (memory == API_MEMORY_GET_POOLED || memory == API_MEMORY_FREE))
        memory = memory == API_MEMORY_FREE ? API_MEMORY_NODE_FREE : API_MEMORY_NODE_GET;
    l->books.doubts.in_graphs += memory == API_MEMORY_NODE_GET;
    if (memory == API_MEMORY_POOL) {
        uint32_t device = device_of(r, form);
        struct key key = {e->process->index, argument(r, form->pool), 0};
        int error = device == LEDGER_NO_DEVICE ? 0 : key_map_set(&l->pools, key, device + 1ull);
        return error == GPUPROF_LIMIT ? 0 : error;
    }
    if (api_gets_memory(memory) || memory == API_MEMORY_REGISTER_HOST ||
        memory == API_MEMORY_OPEN_FOREIGN || memory == API_MEMORY_RETAIN ||
        memory == API_MEMORY_MAP || memory == API_MEMORY_NODE_GET || memory == API_MEMORY_INFO)
        return take_get(l, s, form, memory);
    return take_release(l, e, form, memory);
}

/* ---- CUPTI's records ------------------------------------------------------------------------- */

static int tell_pool(const struct ledger *l, const struct event *e, struct ledger_pool pool)
{
    pool.process = e->process;
    return l->user.pooled ? l->user.pooled(l->user.context, &pool, e->begin_ns) : 0;
}

static uint32_t device_told(uint64_t device)
{
    return device < LEDGER_NO_DEVICE ? (uint32_t)device : LEDGER_NO_DEVICE;
}

static int take_pool(const struct ledger *l, const struct event *e)
{
    const struct record *r = e->record;
    bool is_gone = record_arg(r, POOL_OPERATION) == POOL_DESTROYED;
    struct ledger_pool pool = {.number = record_arg(r, POOL_POOL),
                               .bytes = is_gone ? 0 : record_arg(r, POOL_BYTES),
                               .device = device_told(record_arg(r, POOL_DEVICE))};
    return record_arg(r, POOL_KIND) == POOL_LOCAL ? tell_pool(l, e, pool) : 0;
}

/* What the record says of its memory; false: it is none of a program's own. */
static bool describe_told(const struct record *r, struct ledger_block *b)
{
    static const struct {
        bool is_there;
        uint8_t kind;
        uint8_t space;
        bool is_host;
    } kinds[] = {[2] = {true, LEDGER_PINNED, SPACE_HOST, true},
                 [3] = {true, LEDGER_LINEAR, SPACE_ADDRESS, false},
                 [4] = {true, LEDGER_ARRAY, SPACE_ARRAY, false},
                 [5] = {true, LEDGER_MANAGED, SPACE_ADDRESS, false},
                 [KIND_STATIC] = {true, LEDGER_STATIC, SPACE_STATIC, false},
                 [KIND_MANAGED_STATIC] = {true, LEDGER_STATIC, SPACE_STATIC, false}};
    uint64_t kind = record_arg(r, MEMORY_KIND);
    if (kind >= sizeof kinds / sizeof kinds[0] || !kinds[kind].is_there)
        return false;
    b->kind = kinds[kind].kind;
    b->space = kinds[kind].space;
    b->is_host = kinds[kind].is_host;
    if (b->kind == LEDGER_LINEAR && record_arg(r, MEMORY_POOL))
        b->kind = LEDGER_POOLED;
    b->address = record_arg(r, MEMORY_ADDRESS);
    b->bytes = record_arg(r, MEMORY_BYTES);
    b->device = device_told(record_arg(r, MEMORY_DEVICE));
    b->is_pooled = record_arg(r, MEMORY_POOL) && record_arg(r, MEMORY_POOL_BYTES);
    return true;
}

/* Of a block that a call gets, on which device it is. */
static int take_device(struct ledger *l, const struct event *e, const struct ledger_block *told,
                       bool comes)
{
    struct key key = {e->process->index, told->address, 0};
    if (told->space != SPACE_ADDRESS || told->device == LEDGER_NO_DEVICE)
        return 0;
    if (!comes) {
        key_map_remove(&l->told, key);
        return 0;
    }
    uint32_t place = books_find(&l->books, e->process, SPACE_ADDRESS, told->address);
    const struct ledger_block *b = place ? &l->books.blocks[place] : NULL;
    if (b && b->kind != LEDGER_NOT_OWN)
        return b->device == told->device && b->is_pooled == told->is_pooled
                   ? 0
                   : books_move(&l->books, place, told->device, told->is_pooled, e->begin_ns);
    int error = key_map_set(&l->told, key, (told->device + 1ull) | (told->is_pooled ? POOLED : 0));
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* Variables of modules are known from it alone, and all that is got by nobody knows what. */
static int take_memory(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool comes = record_arg(r, MEMORY_OPERATION) == MEMORY_ALLOCATE;
    struct ledger_block block = {.process = e->process};
    if (!describe_told(r, &block))
        return 0;
    struct ledger_pool pool = {.number = record_arg(r, MEMORY_POOL),
                               .bytes = record_arg(r, MEMORY_POOL_BYTES) - 1,
                               .device = block.device};
    int error = block.is_pooled ? tell_pool(l, e, pool) : 0;
    if (error < 0)
        return error;
    if (l->has_calls[e->process->index] && block.kind != LEDGER_STATIC)
        return take_device(l, e, &block, comes);
    if (!comes)
        return books_release(&l->books, e->process, block.space, block.address, e->begin_ns);
    error = l->user.owner ? l->user.owner(l->user.context, s, block.kind, &block.owner) : 0;
    return error < 0 ? error : books_put_in(&l->books, &block, e->begin_ns);
}

/* ---- PyTorch's allocator --------------------------------------------------------------------- */

static int take_tensor(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool has_failed = r->type == RECORD_TENSOR_OOM;
    uint64_t device = record_arg(r, has_failed ? TENSOR_OOM_DEVICE : TENSOR_DEVICE);
    struct ledger_block block = {
        .process = e->process,
        .kind = LEDGER_TENSOR,
        .space = SPACE_TENSOR,
        .begin_ns = e->begin_ns,
        .address = has_failed ? 0 : record_arg(r, TENSOR_ADDRESS),
        .bytes = record_arg(r, has_failed ? TENSOR_OOM_BYTES : TENSOR_BYTES),
        .reserved = record_arg(r, has_failed ? TENSOR_OOM_RESERVED : TENSOR_RESERVED),
        .device = device < LEDGER_NO_DEVICE ? (uint32_t)device : LEDGER_NO_DEVICE};
    if (!has_failed && record_arg(r, TENSOR_OPERATION) != MEMORY_ALLOCATE)
        return books_release(&l->books, e->process, SPACE_TENSOR, block.address, e->begin_ns);
    int error = l->user.owner ? l->user.owner(l->user.context, s, block.kind, &block.owner) : 0;
    if (error < 0 || !has_failed)
        return error < 0 ? error : books_put_in(&l->books, &block, e->begin_ns);
    return l->user.failed ? l->user.failed(l->user.context, &block) : 0;
}

static __attribute__((noinline)) int take_any(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    bool is_left = s->change == RANGE_LEFT || s->op_change == OP_LEFT ||
                   s->library_change == LIBRARY_OPEN; /* no event: all of them are past */
    uint64_t end_ns = l->until_ns ? l->until_ns : UINT64_MAX;
    bool is_past = is_left || e->begin_ns > end_ns;
    int error = catch_up(l, is_past ? end_ns : e->begin_ns);
    if (error < 0)
        return error;
    if (is_past && l->until_ns)
        return WALK_STOP;
    switch (e->record->type) {
    case RECORD_CALL: return take_call(l, s);
    case RECORD_MEMORY: return take_memory(l, s);
    case RECORD_POOL: return take_pool(l, e);
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return take_tensor(l, s);
    default: return 0;
    }
}

/* Most are work, or calls that have nothing to do with memory. */
static int take(void *context, const struct slice *s)
{
    struct ledger *l = context;
    const struct event *e = &s->event;
    uint8_t type = e->record->type;
    bool is_plain =
        type == RECORD_CALL ? e->function->memory == API_MEMORY_NONE : is_stream_work(type);
    return is_plain && !l->late_count ? 0 : take_any(l, s);
}

static int end(void *context)
{
    struct ledger *l = context;
    return catch_up(l, l->until_ns ? l->until_ns : UINT64_MAX);
}

struct consumer ledger_consumer(struct ledger *l)
{
    return (struct consumer){.context = l,
                             .skips = WALK_SKIPS_WORK | WALK_SKIPS_TIED,
                             .sees_hidden = true,
                             .take = take,
                             .end = end};
}
