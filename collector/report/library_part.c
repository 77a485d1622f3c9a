/* SPDX-License-Identifier: Apache-2.0 */
#include "report/library_part.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define ROW_BYTES  44 /* in a part, at least */
#define WAIT_BYTES 6

/* Some of the ranks have come to it, with kernels of one row. */
struct library_wait {
    uint64_t communicator; /* its id */
    uint64_t sequence;
    uint64_t seen;
    uint64_t ns;
    uint32_t ranks;
    uint32_t row;
    const struct kernel_name *text; /* the row's */
};

/* What a row has beside its sums. */
struct carried {
    struct function function;
    struct library_kind kind;
    const char *text;
    uint32_t process; /* of the device, + 1 */
    struct surveyed_device device;
    bool is_known; /* the device */
};

static void carry_byte(struct part *p, uint8_t *byte)
{
    uint32_t wide = *byte;
    part_u32(p, &wide);
    p->has_failed |= wide > UINT8_MAX;
    *byte = (uint8_t)wide;
}

static void carry_shape(struct part *p, struct library_shape *s)
{
    uint64_t *const numbers[] = {&s->m, &s->n, &s->k, &s->batch, &s->mnk, &s->count, &s->bytes};
    uint8_t *const bytes[] = {&s->a_type,  &s->b_type,  &s->c_type, &s->d_type,
                              &s->trans_a, &s->trans_b, &s->side,   &s->count_type};
    uint32_t compute = s->compute;
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    part_u32(p, &s->ranks);
    part_u32(p, &compute);
    for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        carry_byte(p, bytes[i]);
    part_flag(p, &s->has_m);
    part_flag(p, &s->has_n);
    part_flag(p, &s->has_k);
    p->has_failed |= compute > UINT16_MAX;
    s->compute = (uint16_t)compute;
}

static void carry_work(struct part *p, struct library_work *w)
{
    part_flag(p, &w->has_flops);
    part_flag(p, &w->has_bytes);
    carry_byte(p, &w->type);
    part_number(p, &w->flops);
    part_number(p, &w->bytes);
}

static void carry_device(struct part *p, struct carried *c)
{
    const char *name = c->device.name;
    part_number(p, &c->device.limits.device);
    part_flag(p, &c->is_known);
    if (!c->is_known)
        return;
    part_number(p, &c->device.limits.major);
    part_number(p, &c->device.limits.minor);
    part_text(p, &name);
    p->has_failed |= !name || strlen(name) >= sizeof c->device.name;
    if (!p->has_failed && !p->is_written)
        memcpy(c->device.name, name, strlen(name) + 1);
}

static void carry_row(struct part *p, struct library_row *row, struct carried *c)
{
    uint64_t *const numbers[] = {&row->calls, &row->errors,   &row->host_ns,   &row->gpu_ns,
                                 &row->works, &row->executed, &row->bus_calls, &row->bus_ns};
    carry_byte(p, &c->function.domain);
    part_text(p, &c->function.name);
    part_flag(p, &c->kind.is_others);
    part_flag(p, &c->kind.is_group);
    part_text(p, &c->text);
    carry_shape(p, &c->kind.shape);
    carry_work(p, &row->work);
    part_numbers(p, numbers, sizeof numbers / sizeof numbers[0]);
    for (unsigned i = 0; i < TENSOR_USES; i++)
        part_number(p, &row->tensor_ns[i]);
    part_flag(p, &row->is_mixed);
    part_u32(p, &c->process);
    if (c->process)
        carry_device(p, c);
    p->has_failed |= !c->function.name;
}

static void carry_wait(struct part *p, struct library_wait *w)
{
    part_number(p, &w->communicator);
    part_u32(p, &w->ranks);
    part_number(p, &w->sequence);
    part_number(p, &w->seen);
    part_number(p, &w->ns);
    part_u32(p, &w->row);
}

/* ---- into a part ----------------------------------------------------------------------------- */

static void put_row(const struct library_report *l, struct part *p, struct library_row row)
{
    const struct library_kind *kind = library_kind(&l->walk->kinds, row.kind);
    const struct surveyed_device *d =
        row.process ? survey_device(&l->walk->survey, row.process, row.device) : NULL;
    struct carried c = {
        .function = {.domain = kind->function->domain, .name = kind->function->name},
        .kind = *kind,
        .text = row.text ? row.text->raw : NULL,
        .process = row.process ? row.process->index + 1 : 0,
        .is_known = d != NULL};
    if (d)
        c.device = *d;
    c.device.limits.device = row.device;
    carry_row(p, &row, &c);
}

static void put_waits(const struct library_report *l, struct part *p, const struct key_map *rows)
{
    uint32_t count = l->waits.count;
    part_count(p, &count, WAIT_BYTES);
    for (uint32_t i = 0; count && i < l->waits.slot_count; i++) {
        const struct key_slot *slot = &l->waits.slots[i];
        if (!slot->value)
            continue;
        const struct communicator *c = &l->walk->kinds.communicators[slot->key.a - 1];
        uint64_t row = key_map_get(rows, (struct key){slot->key.c, 0, 0});
        struct library_wait wait = {.communicator = c->id,
                                    .ranks = c->ranks,
                                    .sequence = slot->key.b,
                                    .seen = slot->value >> WAIT_NS_BITS,
                                    .ns = slot->value & WAIT_NS_MAX,
                                    .row = (uint32_t)row - 1};
        carry_wait(p, &wait);
    }
}

int library_part_put(const struct library_report *l, struct part *p)
{
    static const struct library_report nothing;
    const struct library_report *from = l ? l : &nothing;
    uint64_t gpu_ns = from->gpu_ns, library_ns = from->gpu_library_ns;
    bool has_more = l && (l->pair_count >= LIBRARY_PAIRS_MAX ||
                          l->walk->kinds.count >= l->walk->kinds.count_max);
    struct key_map rows = {0}; /* text -> the first row of it + 1 */
    uint32_t count = 0;
    int error = 0;
    part_number(p, &gpu_ns);
    part_number(p, &library_ns);
    part_flag(p, &has_more);
    for (uint32_t i = 0; i < from->count; i++)
        count += from->rows[i].is_seen;
    part_count(p, &count, ROW_BYTES);
    count = 0;
    for (uint32_t i = 0; error == 0 && i < from->count; i++) {
        struct key text = {(uintptr_t)from->rows[i].text, 0, 0};
        if (!from->rows[i].is_seen)
            continue;
        put_row(l, p, from->rows[i]);
        count++;
        error = key_map_get(&rows, text) ? 0 : key_map_set(&rows, text, count);
    }
    if (error == 0)
        put_waits(from, p, &rows);
    key_map_release(&rows);
    return error;
}

/* ---- and out of it --------------------------------------------------------------------------- */

static int add_row(struct library_report *l, struct part *p, struct process *const *processes,
                   uint32_t process_count)
{
    struct library_row row = {.is_seen = true};
    struct carried c = {.kind = {.function = &c.function}};
    carry_row(p, &row, &c);
    p->has_failed |= c.process > process_count;
    if (p->has_failed)
        return 0;
    if (c.process) {
        row.process = processes[c.process - 1];
        row.device = c.device.limits.device;
        c.device.process = row.process->index;
    }
    int error = c.is_known ? survey_add_device(&l->walk->survey, &c.device) : 0;
    if (error == 0 && c.text)
        error =
            kernel_name_intern(&l->walk->texts, (const uint8_t *)c.text, strlen(c.text), &row.text);
    c.kind.text = row.text;
    int64_t kind = error == 0 ? library_kinds_add(&l->walk->kinds, &c.kind) : error;
    if (kind < 0)
        return (int)kind;
    struct library_row *rows = array_room(l->rows, l->count, &l->capacity, sizeof *rows, 64);
    if (!rows)
        return GPUPROF_NO_MEMORY;
    l->rows = rows;
    row.kind = (uint32_t)kind;
    rows[l->count++] = row;
    return 0;
}

static int add_wait(const struct library_report *l, struct library_waits *waits, struct part *p,
                    uint32_t first)
{
    struct library_wait wait = {0};
    carry_wait(p, &wait);
    p->has_failed |= wait.row >= l->count - first || wait.seen >= wait.ranks;
    if (p->has_failed)
        return 0;
    struct library_wait *list =
        array_room(waits->list, waits->count, &waits->capacity, sizeof *list, 256);
    if (!list)
        return GPUPROF_NO_MEMORY;
    waits->list = list;
    wait.row += first;
    wait.text = l->rows[wait.row].text;
    list[waits->count++] = wait;
    return 0;
}

int library_part_add(struct library_report *l, struct library_waits *waits, struct part *p,
                     struct process *const *processes, uint32_t process_count, bool *has_more)
{
    uint64_t gpu_ns = 0, library_ns = 0;
    uint32_t count = 0, first = l->count;
    bool more = false;
    int error = 0;
    part_number(p, &gpu_ns);
    part_number(p, &library_ns);
    part_flag(p, &more);
    l->gpu_ns += gpu_ns;
    l->gpu_library_ns += library_ns;
    *has_more |= more;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_row(l, p, processes, process_count);
    part_count(p, &count, WAIT_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_wait(l, waits, p, first);
    return error;
}

static int compare_waits(const void *left, const void *right)
{
    const struct library_wait *a = left, *b = right;
    const uint64_t keys[][2] = {{a->communicator, b->communicator},
                                {a->ranks, b->ranks},
                                {a->sequence, b->sequence},
                                {(uintptr_t)a->text, (uintptr_t)b->text}};
    int order = 0;
    for (unsigned i = 0; !order && i < sizeof keys / sizeof keys[0]; i++)
        order = (keys[i][0] > keys[i][1]) - (keys[i][0] < keys[i][1]);
    return order;
}

void library_part_add_end(struct library_report *l, struct library_waits *waits)
{
    struct library_wait *list = waits->list, *into = NULL;
    if (waits->count)
        qsort(list, waits->count, sizeof *list, compare_waits);
    for (uint32_t i = 0; i < waits->count; i++) {
        if (!into || compare_waits(into, &list[i]) != 0) {
            into = &list[i];
            continue;
        }
        into->seen += list[i].seen;
        into->ns = list[i].ns < into->ns ? list[i].ns : into->ns;
        if (into->seen < into->ranks)
            continue;
        l->rows[into->row].bus_calls++;
        l->rows[into->row].bus_ns += into->ns;
        into = NULL;
    }
    free(list);
    *waits = (struct library_waits){0};
    library_rows_order(l);
}
