/* SPDX-License-Identifier: Apache-2.0 */
/* What a device has used beyond the ledger: by what the program was told, and by what was read. */
#include "base/array.h"
#include "error.h"
#include "memory/memory_report.h"

#define JUMP_BYTES (1ull << 20)

/* Managed memory may be on the device, or not: it is not taken for a part of what is used. */
static uint64_t beyond(const struct memory_place *p, uint64_t used)
{
    uint64_t own = p->live.bytes - p->kinds[LEDGER_MANAGED].live.bytes;
    return used > own ? used - own : 0;
}

/* A row if there is more than at the answer before. */
static int add_jump(struct memory_report *m, struct memory_jump *jump)
{
    struct key key = {jump->process->index, jump->device, jump->is_drivers};
    struct memory_longest *longest = &m->longest[jump->process->index];
    uint64_t before = key_map_get(&m->last_hidden, key);
    jump->before = before ? before - 1 : 0;
    jump->blamed = longest->function;
    jump->blamed_ns = longest->ns;
    /* There is a place for it, so there is room here. */
    if (key_map_set(&m->last_hidden, key, jump->hidden + (jump->hidden < UINT64_MAX)) < 0)
        return GPUPROF_NO_MEMORY;
    if (!jump->is_drivers)
        *longest = (struct memory_longest){0};
    if (before && (jump->hidden < jump->before || jump->hidden - jump->before < JUMP_BYTES))
        return 0;
    *longest = (struct memory_longest){0}; /* the next row has another one */
    if (m->jumps_all++ >= MEMORY_JUMPS_MAX)
        return 0;
    return ARRAY_PUSH(m->jumps, m->jump_count, jump);
}

int memory_hidden_left(struct memory_report *m, struct memory_place *p, const struct ledger_free *f)
{
    struct key key = {f->process->index, f->device, 0};
    uint64_t used = f->total > f->free ? f->total - f->free : 0;
    struct memory_jump jump = {.process = f->process,
                               .device = f->device,
                               .at_ns = f->at_ns,
                               .used = used,
                               .hidden = beyond(p, used),
                               .others = OTHERS_UNKNOWN};
    p->total = f->total;
    int error = add_jump(m, &jump);
    if (error == 0 && key_map_set(&m->last_free, key, f->free + (f->free < UINT64_MAX)) < 0)
        return GPUPROF_NO_MEMORY;
    return error;
}

/* Of two readings the lower one counts: a call that gets memory may be under way at one of them. A
 * device of which the driver does not say whose the memory is, is left to the program. */
int memory_hidden_read(struct memory_report *m, const struct slice *s)
{
    const struct record *r = s->event.record;
    uint64_t used, own, device = s->source->device;
    struct key place_key = {s->event.process->index, device, MEMORY_OF_DEVICE};
    uint64_t place = key_map_get(&m->places_of, place_key); /* it has none before it has a block */
    if (!place || !device_value(r, DEVICE_USE_USED, &used) ||
        !device_value(r, DEVICE_USE_OWN, &own))
        return 0;
    struct key key = {s->event.process->index, device, 0};
    uint64_t hidden = beyond(&m->places[place - 1], used);
    uint64_t before = key_map_get(&m->last_read, key);
    struct memory_jump jump = {.process = s->event.process,
                               .device = (uint32_t)device,
                               .at_ns = s->event.begin_ns,
                               .used = used,
                               .hidden = hidden,
                               .is_drivers = true};
    if (key_map_set(&m->last_read, key, hidden + (hidden < UINT64_MAX)) < 0)
        return GPUPROF_NO_MEMORY;
    if (!before)
        return 0;
    jump.hidden = hidden < before - 1 ? hidden : before - 1;
    jump.others = used > own ? used - own : 0;
    jump.others = jump.others < jump.hidden ? jump.others : jump.hidden;
    return add_jump(m, &jump);
}
