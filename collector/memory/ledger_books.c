/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/array.h"
#include "memory/ledger.h"

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

enum ledger_space ledger_space_of(unsigned kind)
{
    static const uint8_t spaces[LEDGER_KINDS + 1] = {
        [LEDGER_PHYSICAL] = SPACE_HANDLE, [LEDGER_ARRAY] = SPACE_ARRAY,
        [LEDGER_STATIC] = SPACE_STATIC,   [LEDGER_PINNED] = SPACE_HOST,
        [LEDGER_TENSOR] = SPACE_TENSOR,   [LEDGER_REGISTERED] = SPACE_REGISTERED};
    return spaces[kind];
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* The last address of a range; false: it has none. */
static bool last_of(uint64_t address, uint64_t bytes, uint64_t *last)
{
    return bytes && !__builtin_add_overflow(address, bytes - 1, last);
}

bool mappings_add(struct mappings *m, const struct mapping *added)
{
    uint64_t last;
    if (!last_of(added->address, added->bytes, &last) ||
        mappings_find(m, added->address, added->bytes))
        return false;
    uint32_t at = ARRAY_UP_TO(m->list, m->count, address, last);
    ARRAY_PUSH(m->list, m->count, NULL);
    memmove(&m->list[at + 1], &m->list[at], (m->count - 1 - at) * sizeof *m->list);
    m->list[at] = *added;
    return true;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes)
{
    uint64_t last;
    uint32_t behind =
        last_of(address, bytes, &last) ? ARRAY_UP_TO(m->list, m->count, address, last) : 0;
    const struct mapping *found = behind ? &m->list[behind - 1] : NULL;
    return found && found->address + (found->bytes - 1) >= address ? found : NULL;
}

void mappings_remove(struct mappings *m, const struct mapping *found)
{
    uint32_t at = (uint32_t)(found - m->list);
    memmove(&m->list[at], &m->list[at + 1], (m->count - 1 - at) * sizeof *m->list);
    m->count--;
}

/* ---- totals ---------------------------------------------------------------------------------- */

#define POOL_BYTES_MAX (1ull << 61) /* keeps sums in range for any file */

/* The number of the place, from 1 on; 0 beyond the maximum. */
static uint32_t totals_place(struct ledger *l, const struct process *process, uint32_t device,
                             bool is_host)
{
    uint32_t shown = is_host ? LEDGER_NO_DEVICE : device;
    struct key key = {process->index, shown, is_host};
    const struct place_totals new = {.process = process, .device = shown, .is_host = is_host};
    return KEY_MAP_ITEM(&l->totals.places, key, l->totals.list, l->totals.count, TOTALS_PLACES_MAX,
                        &new);
}

static void books_change(uint64_t *total, uint64_t bytes, bool comes)
{
    *total = comes ? *total + bytes : *total - min_of(bytes, *total);
}

void books_pool(struct ledger *l, const struct process *process, uint32_t device, uint64_t number,
                uint64_t bytes)
{
    struct key key = {process->index, device, number};
    uint32_t place = totals_place(l, process, device, false);
    uint64_t before = key_map_get(&l->totals.pools, key);
    bytes = min_of(bytes, POOL_BYTES_MAX);
    if (!place || (bytes && key_map_set(&l->totals.pools, key, bytes + 1) < 0))
        return;
    if (!bytes)
        key_map_remove(&l->totals.pools, key);
    struct place_totals *t = &l->totals.list[place - 1];
    books_change(&t->pooled, before ? before - 1 : 0, false);
    t->pooled = min_of(t->pooled + bytes, POOL_BYTES_MAX);
    t->has_pool = true;
}

/* Adds the block to the totals, or takes it out, and tells the user. */
static void tell(struct ledger *l, struct ledger_block *b, bool comes, uint64_t at_ns)
{
    b->totals = totals_place(l, b->process, b->device, b->is_host);
    struct place_totals *place = b->totals ? &l->totals.list[b->totals - 1] : NULL;
    if (place && b->kind == LEDGER_TENSOR) {
        place->has_tensors = true;
        place->tensors_reserved = comes ? b->reserved : place->tensors_reserved;
        books_change(&place->tensors, b->bytes, comes);
    } else if (place) {
        books_change(&place->allocated, b->bytes, comes);
        books_change(&place->outside, b->is_pooled ? 0 : b->bytes, comes);
    }
    l->user.change(l->user.context, comes ? LEDGER_GOT : LEDGER_GONE, b, at_ns);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static struct key ledger_books_key_of(const struct process *p, enum ledger_space space,
                                      uint64_t address)
{
    return (struct key){(uint64_t)space << 32 | p->index, address, 0};
}

/* The place of a block; 0 if there is none. */
static uint32_t books_find(const struct ledger *l, const struct process *p, enum ledger_space space,
                           uint64_t address)
{
    return (uint32_t)key_map_get(&l->places, ledger_books_key_of(p, space, address));
}

static void unname(struct ledger *l, uint32_t place)
{
    const struct ledger_block *b = &l->blocks[place];
    struct key key = ledger_books_key_of(b->process, ledger_space_of(b->kind), b->address);
    if (key_map_get(&l->places, key) == place)
        key_map_remove(&l->places, key);
}

static void books_take_out(struct ledger *l, uint32_t place, uint64_t at_ns)
{
    struct ledger_block *b = &l->blocks[place];
    unname(l, place);
    if (b->kind != LEDGER_NOT_OWN)
        tell(l, b, false, at_ns);
    *b = (struct ledger_block){.refs = l->unused};
    l->unused = place;
}

/* Removes a block without references; mapped physical memory stays, without its handle. */
static void drop_unused(struct ledger *l, uint32_t place, uint64_t at_ns)
{
    const struct ledger_block *b = &l->blocks[place];
    if (!b->refs)
        unname(l, place);
    if (!b->refs && !b->maps)
        books_take_out(l, place, at_ns);
}

/* The place for a new block; 0 if there is none. */
static uint32_t new_place(struct ledger *l)
{
    uint32_t place = l->unused;
    if (place)
        l->unused = l->blocks[place].refs;
    if (place || l->count == LEDGER_BLOCKS_MAX)
        return place;
    ARRAY_ROOM(l->blocks, l->count + 1, l->capacity, 256);
    return ++l->count;
}

void books_put_in(struct ledger *l, const struct ledger_block *wanted)
{
    struct key key =
        ledger_books_key_of(wanted->process, ledger_space_of(wanted->kind), wanted->address);
    uint32_t there = (uint32_t)key_map_get(&l->places, key);
    if (there) { /* its release was not recorded */
        l->doubts.replaced += l->blocks[there].kind != LEDGER_NOT_OWN;
        l->blocks[there].refs = 0;
        drop_unused(l, there, wanted->begin_ns);
    }
    uint32_t place = new_place(l);
    l->doubts.beyond += !place;
    if (!place)
        return;
    struct ledger_block *b = &l->blocks[place];
    *b = *wanted;
    b->bytes = min_of(b->bytes, LEDGER_BYTES_MAX);
    b->refs = 1;
    key_map_set(&l->places, key, place);
    tell(l, b, true, b->begin_ns);
}

/* A destroyed context takes only memory from driver functions: the runtime's is in the primary
 * context. Physical memory belongs to no context. */
void books_reset(struct ledger *l, const struct process *p, uint32_t device, bool is_context,
                 uint64_t at_ns)
{
    for (uint32_t place = 1; place <= l->count; place++) {
        const struct ledger_block *b = &l->blocks[place];
        if (b->process == p && b->device == device && device != LEDGER_NO_DEVICE &&
            (b->is_driver || !is_context) && b->kind != LEDGER_NOT_OWN &&
            ledger_space_of(b->kind) < SPACE_HANDLE)
            books_take_out(l, place, at_ns);
    }
}

/* ---- physical memory ------------------------------------------------------------------------- */

void books_release_physical(struct ledger *l, const struct process *p, uint64_t handle,
                            uint64_t at_ns)
{
    uint32_t place = books_find(l, p, SPACE_HANDLE, handle);
    if (!place)
        return; /* imported from another process */
    l->blocks[place].refs -= l->blocks[place].refs > 0;
    drop_unused(l, place, at_ns);
}

static void report_mapped(const struct ledger *l, const struct mapping *where,
                          enum ledger_change change, uint64_t at_ns)
{
    struct ledger_block b = l->blocks[where->to];
    b.address = where->address;
    b.bytes = where->bytes;
    l->user.change(l->user.context, change, &b, at_ns);
}

/* Removes the mappings there; with `releases` also a reference to the memory of each. */
static void unmap(struct ledger *l, const struct process *p, uint64_t address, uint64_t bytes,
                  uint64_t at_ns, bool releases)
{
    struct mappings *mappings = &l->mappings[p->index];
    const struct mapping *found;
    while ((found = mappings_find(mappings, address, bytes))) {
        struct mapping was = *found;
        struct ledger_block *b = &l->blocks[was.to];
        mappings_remove(mappings, found);
        l->mapping_count--;
        if (!was.to)
            continue;
        b->maps--;
        b->refs -= releases && b->refs > 0;
        report_mapped(l, &was, LEDGER_UNMAPPED, at_ns);
        drop_unused(l, was.to, at_ns);
    }
}

/*
 * If a call allocated this address, and other calls map and unmap there, a library manages
 * addresses of its own, in unrecorded calls. From now on the block's bytes are those mapped at its
 * addresses, until these are released.
 */
void books_unmap(struct ledger *l, const struct process *p, uint64_t address, uint64_t bytes,
                 uint64_t at_ns)
{
    uint32_t place = books_find(l, p, SPACE_ADDRESS, address);
    if (place && l->blocks[place].kind != LEDGER_NOT_OWN) {
        tell(l, &l->blocks[place], false, at_ns);
        l->blocks[place].kind = LEDGER_NOT_OWN;
    }
    unmap(l, p, address, bytes, at_ns, false);
}

/* Removes the block at the address; from a hollow one also the memory that is mapped there. A
 * release of NULL is not counted as a stray. */
void books_release(struct ledger *l, const struct process *p, enum ledger_space space,
                   uint64_t address, uint64_t at_ns)
{
    uint32_t place = books_find(l, p, space, address);
    l->doubts.strays += !place && address;
    if (place && l->blocks[place].kind == LEDGER_NOT_OWN)
        unmap(l, p, address, l->blocks[place].bytes, at_ns, true);
    if (place)
        books_take_out(l, place, at_ns);
}

/* Maps memory, which may have several addresses; memory of other processes can be mapped, too. */
void books_map(struct ledger *l, const struct ledger_block *wanted, uint64_t handle, uint64_t at_ns)
{
    const struct process *p = wanted->process;
    struct mapping mapping = {.address = wanted->address, .bytes = wanted->bytes};
    books_unmap(l, p, mapping.address, mapping.bytes, at_ns);
    mapping.to = books_find(l, p, SPACE_HANDLE, handle);
    if (l->mapping_count >= LEDGER_MAPPINGS_MAX || !mappings_add(&l->mappings[p->index], &mapping))
        return;
    l->mapping_count++;
    if (!mapping.to)
        return;
    l->blocks[mapping.to].maps++;
    report_mapped(l, &mapping, LEDGER_MAPPED, at_ns);
}

/* The handle is the one that the memory was made with, even if it was released since. */
void books_retain(struct ledger *l, const struct process *p, uint64_t address)
{
    const struct mapping *found = mappings_find(&l->mappings[p->index], address, 1);
    if (!found || !found->to)
        return;
    struct ledger_block *b = &l->blocks[found->to];
    struct key key = ledger_books_key_of(p, SPACE_HANDLE, b->address);
    if (!key_map_get(&l->places, key))
        key_map_set(&l->places, key, found->to);
    b->refs += key_map_get(&l->places, key) == found->to;
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* A segment comes before the blocks at its begin. */
static int by_address(const void *left, const void *right)
{
    const struct layout_range *a = left, *b = right;
    return ORDER(a->address, b->address) ?: a->is_tensor - b->is_tensor;
}

/* Adds mapped memory, which comes in the order of addresses, to the last segment or a new one. */
static void add_mapped(struct ledger_layout *layout, const struct mapping *found,
                       const struct ledger_block *b)
{
    struct layout_range *last = layout->count ? &layout->list[layout->count - 1] : NULL;
    const struct layout_range new = {.address = found->address,
                                     .bytes = found->bytes,
                                     .device = b->device,
                                     .place = found->to,
                                     .is_mapped = true};
    if (!found->to || b->is_host)
        return;
    if (!last || last->device != b->device || last->address + last->bytes != found->address)
        ARRAY_PUSH(layout->list, layout->count, &new);
    else
        last->bytes += found->bytes;
}

static void add_block(struct ledger_layout *layout, const struct ledger_block *b, uint32_t place)
{
    const struct layout_range new = {.address = b->address,
                                     .bytes = b->bytes,
                                     .device = b->device,
                                     .place = place,
                                     .is_tensor = b->kind == LEDGER_TENSOR};
    bool has_address = new.is_tensor || b->kind == LEDGER_STATIC ||
                       (b->kind != LEDGER_NOT_OWN && ledger_space_of(b->kind) == SPACE_ADDRESS);
    if (has_address && !b->is_host && b->address <= UINT64_MAX - b->bytes)
        ARRAY_PUSH(layout->list, layout->count, &new);
}

void ledger_layout_make(struct ledger_layout *layout, const struct ledger *l,
                        const struct process *process)
{
    const struct mappings *mappings = &l->mappings[process->index];
    *layout = (struct ledger_layout){0};
    for (uint32_t i = 0; i < mappings->count; i++)
        add_mapped(layout, &mappings->list[i], &l->blocks[mappings->list[i].to]);
    for (uint32_t i = 1; i <= l->count; i++)
        if (l->blocks[i].process == process)
            add_block(layout, &l->blocks[i], i);
    ARRAY_SORT(layout->list, layout->count, by_address);
}

struct ledger_holes ledger_holes(const struct ledger *l, const struct process *process,
                                 uint32_t device)
{
    struct ledger_layout layout;
    struct ledger_holes holes = {0};
    ledger_layout_make(&layout, l, process);
    for (uint32_t i = 0; i < layout.count; i++) {
        const struct layout_range *s = &layout.list[i], *tensor;
        uint64_t at = s->address, end = s->address + s->bytes;
        if (s->is_tensor || s->device != device || !layout_tensor(&layout, s, i + 1))
            continue;
        for (uint32_t t = i + 1; at < end; t++) {
            tensor = layout_tensor(&layout, s, t);
            uint64_t next = tensor ? tensor->address : end, hole = next > at ? next - at : 0;
            holes.free += hole;
            holes.largest = max_of(holes.largest, hole);
            at = max_of(at, tensor ? next + tensor->bytes : end);
        }
    }
    free(layout.list);
    return holes;
}
