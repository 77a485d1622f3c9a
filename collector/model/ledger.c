/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

#define OUT_OF_MEMORY 2            /* of the runtime and of the driver alike */
#define NOT_OWN       LEDGER_KINDS /* a block that nobody is told of: its bytes are others' */

/* CUPTI's kinds of memory: variables of modules. */
#define KIND_STATIC         6
#define KIND_MANAGED_STATIC 7

/* What addresses and handles are looked up among: those of one kind do not tell of another. */
enum space {
    SPACE_ADDRESS,
    SPACE_HOST,
    SPACE_REGISTERED,
    SPACE_ARRAY,
    SPACE_HANDLE,
    SPACE_STATIC,
    SPACE_TENSOR
};

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

const char *ledger_kind_name(unsigned kind)
{
    static const char *const names[LEDGER_KINDS] = {
        [LEDGER_LINEAR] = "linear", [LEDGER_MANAGED] = "managed",
        [LEDGER_POOLED] = "pooled", [LEDGER_PHYSICAL] = "physical",
        [LEDGER_ARRAY] = "array",   [LEDGER_STATIC] = "static",
        [LEDGER_PINNED] = "pinned", [LEDGER_REGISTERED] = "registered",
        [LEDGER_TENSOR] = "tensor",
    };
    return kind < LEDGER_KINDS ? names[kind] : "?";
}

int ledger_init(struct ledger *l, struct walk *walk, const struct ledger_user *user)
{
    *l = (struct ledger){.walk = walk, .user = *user, .blocks_max = LEDGER_BLOCKS_MAX};
    l->places.count_max = LEDGER_BLOCKS_MAX;
    l->aliases.count_max = l->pools.count_max = l->told.count_max = LEDGER_POOLS_MAX;
    l->chains.count_max = LEDGER_POOLS_MAX;
    l->form_count = walk->rec->reader.functions.count;
    l->forms = calloc(l->form_count + 1u, sizeof *l->forms);
    l->mappings = calloc(walk->rec->count + 1u, sizeof *l->mappings);
    return l->forms && l->mappings ? 0 : GPUPROF_NO_MEMORY;
}

void ledger_release(struct ledger *l)
{
    for (uint32_t i = 0; l->mappings && i < l->walk->rec->count; i++)
        mappings_release(&l->mappings[i]);
    free(l->mappings);
    key_map_release(&l->places);
    key_map_release(&l->aliases);
    key_map_release(&l->chains);
    key_map_release(&l->pools);
    key_map_release(&l->told);
    free(l->blocks);
    free(l->late);
    free(l->forms);
    *l = (struct ledger){0};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct key key_of(const struct process *p, unsigned space, uint64_t address)
{
    return (struct key){(uint64_t)space << 32 | p->index, address, 0};
}

static struct key chain_of(const struct ledger_block *b)
{
    return (struct key){(uint64_t)b->is_driver << 32 | b->process->index, b->device, 0};
}

/* A context takes with it what was got in it; physical memory is in none. */
static bool is_chained(const struct ledger_block *b)
{
    return b->device != LEDGER_NO_DEVICE && b->space != SPACE_HANDLE && b->space < SPACE_STATIC &&
           b->kind != NOT_OWN;
}

static int chain(struct ledger *l, uint32_t place)
{
    struct ledger_block *b = &l->blocks[place];
    b->before = b->next = 0;
    if (!is_chained(b))
        return 0;
    uint64_t first = key_map_get(&l->chains, chain_of(b));
    int error = key_map_set(&l->chains, chain_of(b), place);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    b->next = (uint32_t)first;
    if (first)
        l->blocks[first].before = place;
    return 0;
}

static int unchain(struct ledger *l, uint32_t place)
{
    struct ledger_block *b = &l->blocks[place];
    int error = 0;
    if (b->next)
        l->blocks[b->next].before = b->before;
    if (b->before)
        l->blocks[b->before].next = b->next;
    else if (b->next)
        error = key_map_set(&l->chains, chain_of(b), b->next);
    else if (is_chained(b) && key_map_get(&l->chains, chain_of(b)) == place)
        key_map_remove(&l->chains, chain_of(b));
    b->before = b->next = 0;
    return error;
}

/* Its address does not lead to it any more. */
static void unname(struct ledger *l, uint32_t place)
{
    struct ledger_block *b = &l->blocks[place];
    if (b->is_named)
        key_map_remove(&l->places, key_of(b->process, b->space, b->address));
    b->is_named = false;
}

static int take_out(struct ledger *l, uint32_t place, uint64_t at_ns)
{
    struct ledger_block *b = &l->blocks[place];
    unname(l, place);
    int error = unchain(l, place);
    if (error == 0 && b->kind != NOT_OWN)
        error = l->user.gone(l->user.context, b, at_ns);
    *b = (struct ledger_block){.next = l->unused};
    l->unused = place;
    l->live--;
    return error;
}

/* Nobody has seen what is at this address go. Physical memory that is mapped stays without it. */
static int replace(struct ledger *l, uint32_t place, uint64_t at_ns)
{
    struct ledger_block *b = &l->blocks[place];
    l->doubts.replaced += b->kind != NOT_OWN;
    b->refs = 0;
    unname(l, place);
    return b->maps ? 0 : take_out(l, place, at_ns);
}

/* Room for one more; 0: there is none, or no memory, by *error. */
static uint32_t new_place(struct ledger *l, int *error)
{
    uint32_t place = l->unused;
    if (place) {
        l->unused = l->blocks[place].next;
        return place;
    }
    if (l->count >= l->blocks_max)
        return 0;
    struct ledger_block *blocks =
        array_room(l->blocks, l->count + 1, &l->capacity, sizeof *blocks, 256);
    if (!blocks) {
        *error = GPUPROF_NO_MEMORY;
        return 0;
    }
    l->blocks = blocks;
    return ++l->count;
}

/* From now on it is there. */
static int put_in(struct ledger *l, const struct ledger_block *wanted, uint64_t at_ns)
{
    struct key key = key_of(wanted->process, wanted->space, wanted->address);
    uint32_t there = (uint32_t)key_map_get(&l->places, key);
    int error = there ? replace(l, there, at_ns) : 0;
    uint32_t place = error < 0 ? 0 : new_place(l, &error);
    if (!place && error == 0) {
        l->doubts.beyond += wanted->kind != NOT_OWN;
        l->doubts.beyond_bytes += wanted->kind != NOT_OWN ? wanted->bytes : 0;
    }
    if (!place)
        return error;
    struct ledger_block *b = &l->blocks[place];
    *b = *wanted;
    b->begin_ns = at_ns;
    b->bytes = b->bytes < LEDGER_BYTES_MAX ? b->bytes : LEDGER_BYTES_MAX;
    b->refs = 1;
    b->is_named = b->is_live = true;
    l->live++;
    error = key_map_set(&l->places, key, place);
    if (error == 0)
        error = chain(l, place);
    return error == 0 && b->kind != NOT_OWN ? l->user.got(l->user.context, b, at_ns) : error;
}

/* It is on another device than was thought. */
static int move(struct ledger *l, uint32_t place, uint32_t device, uint64_t at_ns)
{
    struct ledger_block *b = &l->blocks[place];
    b->is_moved = true;
    int error = unchain(l, place);
    if (error == 0)
        error = l->user.gone(l->user.context, b, at_ns);
    b->device = device;
    if (error == 0)
        error = chain(l, place);
    if (error == 0)
        error = l->user.got(l->user.context, b, at_ns);
    b->is_moved = false;
    return error;
}

static uint32_t find(const struct ledger *l, const struct process *p, unsigned space,
                     uint64_t address)
{
    uint32_t place = (uint32_t)key_map_get(&l->places, key_of(p, space, address));
    if (place || space != SPACE_HANDLE)
        return place;
    /* A further handle may outlive its memory, in a file that was made for it. */
    place = (uint32_t)key_map_get(&l->aliases, (struct key){p->index, address, 0});
    const struct ledger_block *b = &l->blocks[place];
    return place && b->is_live && b->space == SPACE_HANDLE && b->process == p ? place : 0;
}

/* Whatever lives there goes. Of nothing nothing goes, and nobody wonders. */
static int release(struct ledger *l, const struct process *p, unsigned space, uint64_t address,
                   uint64_t at_ns)
{
    uint32_t place = find(l, p, space, address);
    l->doubts.strays += !place && address;
    return place ? take_out(l, place, at_ns) : 0;
}

/* All that the process has on the device, or, with the context that is destroyed, what the driver's
 * functions have got there: the runtime's is in the primary one. */
static int reset(struct ledger *l, const struct process *p, uint32_t device, bool is_context,
                 uint64_t at_ns)
{
    int error = 0;
    for (uint64_t driver = is_context; driver < 2; driver++) {
        struct key key = {driver << 32 | p->index, device, 0};
        uint64_t place;
        while (error == 0 && (place = key_map_get(&l->chains, key)))
            error = take_out(l, (uint32_t)place, at_ns);
    }
    return error;
}

/* ---- physical memory ------------------------------------------------------------------------- */

/* Neither a reference nor a mapping is left? */
static int drop_physical(struct ledger *l, uint32_t place, uint64_t at_ns)
{
    struct ledger_block *b = &l->blocks[place];
    if (b->refs == 0)
        unname(l, place);
    return b->refs || b->maps ? 0 : take_out(l, place, at_ns);
}

static int release_physical(struct ledger *l, const struct process *p, uint64_t handle,
                            uint64_t at_ns)
{
    uint32_t place = find(l, p, SPACE_HANDLE, handle);
    if (!place)
        return 0; /* of others: imported */
    struct ledger_block *b = &l->blocks[place];
    if (b->address != handle)
        key_map_remove(&l->aliases, (struct key){p->index, handle, 0});
    b->refs -= b->refs > 0;
    return drop_physical(l, place, at_ns);
}

static int unmap(struct ledger *l, const struct process *p, uint64_t address, uint64_t bytes,
                 uint64_t at_ns)
{
    struct mappings *mappings = &l->mappings[p->index];
    const struct mapping *found;
    int error = 0;
    while (error == 0 && (found = mappings_find(mappings, address, bytes))) {
        uint32_t place = found->to;
        mappings_remove(mappings, found);
        l->mapping_count--;
        if (!place)
            continue;
        l->blocks[place].maps--;
        error = drop_physical(l, place, at_ns);
    }
    return error;
}

/* The program's memory may be at several addresses; others' at some, too. */
static int map(struct ledger *l, const struct ledger_late *late)
{
    const struct ledger_block *b = &late->block;
    struct mapping mapping = {.address = b->address, .bytes = b->bytes};
    int error = unmap(l, b->process, b->address, b->bytes, late->at_ns);
    mapping.to = find(l, b->process, SPACE_HANDLE, late->handle);
    if (error < 0 || l->mapping_count >= LEDGER_MAPPINGS_MAX)
        return error;
    error = mappings_add(&l->mappings[b->process->index], &mapping);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    l->mapping_count++;
    if (mapping.to)
        l->blocks[mapping.to].maps++;
    return 0;
}

static int retain(struct ledger *l, const struct ledger_late *late)
{
    const struct ledger_block *b = &late->block;
    const struct mapping *found = mappings_find(&l->mappings[b->process->index], b->address, 1);
    if (!found || !found->to)
        return 0;
    struct ledger_block *physical = &l->blocks[found->to];
    if (physical->is_named && physical->address == late->handle) {
        physical->refs++;
        return 0;
    }
    int error =
        key_map_set(&l->aliases, (struct key){b->process->index, late->handle, 0}, found->to);
    physical->refs += error == 0;
    return error == GPUPROF_LIMIT ? 0 : error;
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
        return map(l, late);
    if (late->memory == API_MEMORY_RETAIN)
        return retain(l, late);
    if (late->memory == API_MEMORY_INFO) {
        struct ledger_free left = {block.process, late->at_ns, block.bytes, block.address,
                                   block.device};
        return l->user.left ? l->user.left(l->user.context, &left) : 0;
    }
    struct key key = {block.process->index, block.address, 0};
    uint64_t told = block.space == SPACE_ADDRESS ? key_map_get(&l->told, key) : 0;
    if (told) {
        block.device = (uint32_t)(told - 1);
        key_map_remove(&l->told, key);
    }
    return put_in(l, &block, late->at_ns);
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
        [API_MEMORY_OPEN_FOREIGN] = {true, NOT_OWN, SPACE_ADDRESS, false},
        [API_MEMORY_NODE_GET] = {true, NOT_OWN, SPACE_ADDRESS, false},
    };
    b->kind = ways[memory].kind;
    b->space = ways[memory].space;
    b->is_host = ways[memory].is_host;
    if (b->kind == NOT_OWN && form->is_array)
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
    if (gets && !late.has_failed && (!b->address || !b->bytes) && b->kind != NOT_OWN)
        return 0; /* nothing was wanted */
    if (gets && !late.has_failed && !b->address)
        return 0; /* it is opened, and mapped by another call */
    int error = gets && b->kind != NOT_OWN && l->user.owner
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
    case API_MEMORY_FREE: return release(l, p, SPACE_ADDRESS, ptr, at_ns);
    case API_MEMORY_FREE_HOST: return release(l, p, SPACE_HOST, ptr, at_ns);
    case API_MEMORY_FREE_ARRAY: return release(l, p, SPACE_ARRAY, ptr, at_ns);
    case API_MEMORY_UNREGISTER_HOST: return release(l, p, SPACE_REGISTERED, ptr, at_ns);
    case API_MEMORY_RELEASE_PHYSICAL:
        return release_physical(l, p, argument(r, form->handle), at_ns);
    case API_MEMORY_UNMAP: return unmap(l, p, ptr, argument(r, form->bytes), at_ns);
    case API_MEMORY_CLOSE_FOREIGN:
        place = find(l, p, SPACE_ADDRESS, ptr);
        return place && l->blocks[place].kind == NOT_OWN ? take_out(l, place, at_ns) : 0;
    case API_MEMORY_RESET: return reset(l, p, device_of(r, form), form->handle != 0, at_ns);
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
    l->doubts.sampled += r->weight > 1;
    if (is_captured && (memory == API_MEMORY_GET_POOLED || memory == API_MEMORY_FREE))
        memory = memory == API_MEMORY_FREE ? API_MEMORY_NODE_FREE : API_MEMORY_NODE_GET;
    l->doubts.in_graphs += memory == API_MEMORY_NODE_GET;
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

/* Variables of modules are known from it alone; of other memory, on which device it is. */
static int take_memory(struct ledger *l, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    uint64_t kind = record_arg(r, MEMORY_KIND), address = record_arg(r, MEMORY_ADDRESS);
    bool is_static = kind == KIND_STATIC || kind == KIND_MANAGED_STATIC;
    bool comes = record_arg(r, MEMORY_OPERATION) == MEMORY_ALLOCATE;
    struct key key = {e->process->index, address, 0};
    struct ledger_block block = {.process = e->process,
                                 .kind = LEDGER_STATIC,
                                 .space = SPACE_STATIC,
                                 .address = address,
                                 .bytes = record_arg(r, MEMORY_BYTES),
                                 .device = LEDGER_NO_DEVICE};
    if (record_arg(r, MEMORY_DEVICE) < LEDGER_NO_DEVICE)
        block.device = (uint32_t)record_arg(r, MEMORY_DEVICE);
    if (is_static && !comes)
        return release(l, e->process, SPACE_STATIC, address, e->begin_ns);
    if (is_static) {
        int error = l->user.owner ? l->user.owner(l->user.context, s, block.kind, &block.owner) : 0;
        return error < 0 ? error : put_in(l, &block, e->begin_ns);
    }
    if (!memory_is_device(kind) || block.device == LEDGER_NO_DEVICE)
        return 0;
    if (!comes) {
        key_map_remove(&l->told, key);
        return 0;
    }
    uint32_t place = find(l, e->process, SPACE_ADDRESS, address);
    if (place && l->blocks[place].kind != NOT_OWN)
        return l->blocks[place].device == block.device ? 0
                                                       : move(l, place, block.device, e->begin_ns);
    int error = key_map_set(&l->told, key, block.device + 1ull);
    return error == GPUPROF_LIMIT ? 0 : error;
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
        return release(l, e->process, SPACE_TENSOR, block.address, e->begin_ns);
    int error = l->user.owner ? l->user.owner(l->user.context, s, block.kind, &block.owner) : 0;
    if (error < 0 || !has_failed)
        return error < 0 ? error : put_in(l, &block, e->begin_ns);
    return l->user.failed ? l->user.failed(l->user.context, &block) : 0;
}

static int take(void *context, const struct slice *s)
{
    struct ledger *l = context;
    const struct event *e = &s->event;
    int error = catch_up(l, e->begin_ns);
    if (error < 0)
        return error;
    switch (e->record->type) {
    case RECORD_CALL: return take_call(l, s);
    case RECORD_MEMORY: return take_memory(l, s);
    case RECORD_TENSOR:
    case RECORD_TENSOR_OOM: return take_tensor(l, s);
    default: return 0;
    }
}

static int end(void *context)
{
    return catch_up(context, UINT64_MAX);
}

struct consumer ledger_consumer(struct ledger *l)
{
    return (struct consumer){
        .context = l, .skips = WALK_SKIPS_WORK | WALK_SKIPS_TIED, .take = take, .end = end};
}
