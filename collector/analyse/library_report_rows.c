/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of calls of libraries only behind the walk: names, FLOPs, tensor cores
 * (library_report.h). */
#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/library_report.h"
#include "api/api.h"
#include "base/array.h"
#include "error.h"

/* Beside the kinds in `makers`. */
#define MADE_BY_NONE    UINT64_MAX       /* some or all were launched in no call */
#define MADE_BY_SEVERAL (UINT64_MAX - 1) /* functions */
#define OF_SEVERAL      (1ull << 32)     /* shapes of the kind's function */

/* ---- kernels --------------------------------------------------------------------------------- */

/* The function of a kind may have another description in another process. */
static bool is_same_function(const struct library_kinds *k, uint32_t a, uint32_t b)
{
    const struct function *x = library_kind(k, a)->function, *y = library_kind(k, b)->function;
    return x == y || (x->domain == y->domain && strcmp(x->name, y->name) == 0);
}

static uint64_t made_by(const struct library_report *l, uint64_t before, uint32_t kind)
{
    const struct library_kinds *k = &l->walk->kinds;
    if (!kind || before == MADE_BY_NONE)
        return MADE_BY_NONE;
    if (!before)
        return kind;
    if (before == MADE_BY_SEVERAL || !is_same_function(k, (uint32_t)before, kind))
        return MADE_BY_SEVERAL;
    if (library_kind(k, (uint32_t)before)->text == library_kind(k, kind)->text)
        return before;
    return before | OF_SEVERAL;
}

static int find_makers(struct library_report *l)
{
    for (uint32_t i = 0; i < l->pairs.count; i++) {
        const struct sums_row *pair = &l->pairs.rows[i];
        uint32_t kind = (uint32_t)pair->keys[PAIR_KIND];
        if (pair->keys[PAIR_PROCESS] == SUMS_OTHERS)
            continue;
        const struct process *process = l->walk->rec->processes[pair->keys[PAIR_PROCESS]];
        const struct kernel_name *name = walk_kernel(l->walk, process, pair->keys[PAIR_KERNEL]);
        enum tensor_use use = name ? tensor_use_of(name->shown) : TENSOR_UNKNOWN;
        if (kind)
            l->rows[kind - 1].values[LIBRARY_TENSOR + use] += pair->values[0];
        if (!name)
            continue;
        struct key key = {(uintptr_t)name, 0, 0};
        uint64_t maker = made_by(l, key_map_get(&l->makers, key), kind);
        if (key_map_set(&l->makers, key, maker) < 0)
            return GPUPROF_NO_MEMORY; /* there are fewer than a map has room for */
    }
    return 0;
}

struct kernel_made library_report_made(const struct library_report *l,
                                       const struct kernel_name *kernel)
{
    uint64_t maker = kernel ? key_map_get(&l->makers, (struct key){(uintptr_t)kernel, 0, 0}) : 0;
    if (!maker || maker == MADE_BY_NONE || maker == MADE_BY_SEVERAL)
        return (struct kernel_made){.maker = !maker                  ? MAKER_UNKNOWN
                                             : maker == MADE_BY_NONE ? MAKER_NONE
                                                                     : MAKER_SEVERAL};
    if (l->pairs.count >= l->pairs.rows_max)
        return (struct kernel_made){.maker = MAKER_NONE};
    return (struct kernel_made){.maker = maker & OF_SEVERAL ? MAKER_FUNCTION : MAKER_KIND,
                                .kind = library_kind(&l->walk->kinds, (uint32_t)maker)};
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* f64 is multiplied on tensor cores by GA100, GH100 and GB100. */
static bool has_double_cores(const struct surveyed_device *d)
{
    return d && d->limits.minor == 0 && d->limits.major >= 8 && d->limits.major <= 10;
}

/* Vectors gain nothing by tensor cores. */
static bool is_vector(const struct library_shape *shape)
{
    return (shape->has_m && shape->m == 1) || (shape->has_n && shape->n == 1) ||
           (shape->has_k && shape->k == 1);
}

/* What a kind computes, and the device that did. */
static void describe(const struct library_report *l, const struct library_row *row,
                     const struct library_kind *kind, const struct library_work *work, uint64_t *v)
{
    const struct library_shape *shape = &kind->shape;
    const struct surveyed_device *d =
        row->process ? survey_device(&l->walk->survey, row->process, row->device) : NULL;
    v[LIBRARY_SEEN] = 1;
    v[LIBRARY_FLOPS_NS] = work->has_flops ? v[LIBRARY_GPU] : 0;
    v[LIBRARY_DEVICE] = row->process ? device_peaks_number(d ? d->name : "") : 0;
    v[LIBRARY_LEAST_DEVICE] = row->is_mixed ? 0 : row->process ? v[LIBRARY_DEVICE] : UINT64_MAX;
    v[LIBRARY_DOUBLE] = has_double_cores(d);
    v[LIBRARY_DOMAIN] = kind->function->domain;
    v[LIBRARY_M] = shape->m;
    v[LIBRARY_N] = shape->n;
    v[LIBRARY_K] = shape->k;
    v[LIBRARY_BATCH] = shape->batch;
    v[LIBRARY_MESSAGE] = shape->bytes;
    v[LIBRARY_RANKS] = shape->ranks;
    v[LIBRARY_COMPUTE] = shape->compute;
    v[LIBRARY_TYPE] = shape->count ? shape->count_type : work->type;
    v[LIBRARY_FACTOR] = work->type;
    v[LIBRARY_IS_PRODUCT] = work->has_flops;
    v[LIBRARY_IS_VECTOR] = is_vector(shape);
    v[LIBRARY_HAS_BYTES] = work->has_bytes;
    v[LIBRARY_BYTES] = work->bytes;
}

static int tell_kind(struct library_report *l, uint32_t kind)
{
    struct library_row *row = &l->rows[kind - 1];
    int error = 0;
    if (!row->is_seen)
        return 0;
    const struct kernel_name *text = library_kind_text(&l->walk->kinds, kind, &error);
    uint64_t function = sums_text(&l->sums[1], library_kind(&l->walk->kinds, kind)->function->name);
    struct library_work work = library_kind_work(&l->walk->kinds, kind);
    describe(l, row, library_kind(&l->walk->kinds, kind), &work, row->values);
    return error < 0
               ? error
               : sums_row_add(&l->sums[1], (struct key){sums_name_key(text), work.flops, function},
                              row->values);
}

/* What ranks of other parts are still to come to. */
static int tell_waits(struct library_report *l)
{
    for (uint32_t i = 0; l->is_part && i < l->waits.slot_count; i++) {
        const struct key_slot *slot = &l->waits.slots[i];
        if (!slot->value)
            continue;
        const struct communicator *c = &l->walk->kinds.communicators[slot->key.a - 1];
        const uint64_t values[] = {slot->value >> WAIT_NS_BITS, c->ranks,
                                   slot->value & WAIT_NS_MAX};
        int error =
            sums_row_add(&l->sums[0], (struct key){c->id, slot->key.b, slot->key.c}, values);
        if (error < 0)
            return error;
    }
    return 0;
}

int library_report_complete(struct library_report *l)
{
    const uint64_t all[LIBRARY_VALUES] = {[LIBRARY_ALL_NS] = l->all_ns,
                                          [LIBRARY_OWN_NS] = l->own_ns,
                                          [LIBRARY_LEAST_DEVICE] = UINT64_MAX};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < l->count; i++)
        if (l->rows[i].is_seen)
            library_kind_text(&l->walk->kinds, i + 1, &error); /* makers are told by it, too */
    if (error == 0)
        error = find_makers(l);
    for (uint32_t i = 0; error == 0 && i < l->count; i++)
        error = tell_kind(l, i + 1);
    if (error == 0)
        error = tell_waits(l);
    return error < 0 ? error : sums_row_add(&l->sums[1], (struct key){0}, all);
}
