/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/library_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/device_peak.h"
#include "analyse/gpu_report.h"
#include "analyse/report_make.h"
#include "api/api.h"
#include "record/gpu_record.h"

/* Packed state of a collective that only some ranks have reached: their count, and the shortest of
 * their kernels. */
#define WAIT_NS_BITS 44
#define WAIT_NS_MAX  ((1ull << WAIT_NS_BITS) - 1)

enum { PAIR_KIND, PAIR_PROCESS, PAIR_KERNEL };

static const struct sums_info pairs_info = {.keys = {KEY_NUMBER, KEY_PROCESS, KEY_NUMBER},
                                            .values = {JOIN_ADD},
                                            .rows_max = LIBRARY_PAIRS_MAX};

static void library_report_analysis_release(struct report *r)
{
    struct library_report *l = r->libraries;
    sums_release(&l->pairs);
    key_map_release(&l->waits);
    graph_origins_release(&l->graphs);
}

/* The row for the calls of a kind, without device work. */
static struct sums_row *library_report_row_of(struct library_report *l, uint32_t kind)
{
    return sums_row(&l->sums[1], kind, 0, 0);
}

/* ---- work ------------------------------------------------------------------------------------ */

static void library_report_credit(struct library_report *l, uint32_t kind,
                                  const struct process *process, uint64_t device, uint64_t ns,
                                  uint64_t works, uint64_t executed)
{
    uint64_t *v = sums_row(&l->sums[1], kind, process->index, device + 1)->values;
    v[LIBRARY_GPU] += ns;
    v[LIBRARY_WORKS] += works;
    v[LIBRARY_EXECUTED] += executed;
}

/* Stores a collective that waits for ranks. A part must not forget one, since other parts complete
 * it. Returns 0 or GPUPROF_LIMIT. */
static int keep_wait(struct library_report *l, struct key key, uint64_t value)
{
    if (!l->is_part) {
        key_map_set_anew(&l->waits, key, value, LIBRARY_WAITS_MAX);
        return 0;
    }
    int error = key_map_set(&l->waits, key, value);
    l->has_forgotten |= error != 0;
    return l->is_refused ? error : 0;
}

/* Counts a rank of a collective once, at the first kernel of its call. All ranks should make the
 * same call. */
static int library_report_meet(struct library_report *l, struct span_node *node, uint64_t ns)
{
    struct library_kinds *kinds = &l->walk->kinds;
    const struct library_message *m = &node->message;
    uint32_t ranks = m->communicator ? kinds->communicators[m->communicator - 1].ranks : 0;
    if (library_kind(kinds, node->kind)->function->does != API_DOES_COLLECTIVE)
        return 0; /* messages are counted elsewhere */
    if (ranks < 2 || ranks >= 1u << (64 - WAIT_NS_BITS) || !m->sequence || node->has_come)
        return 0;
    node->has_come = true;
    struct key key = {m->communicator, m->sequence,
                      (uintptr_t)library_kind_text(kinds, node->kind)};
    uint64_t value = key_map_get(&l->waits, key);
    uint64_t seen = (value >> WAIT_NS_BITS) + 1;
    if (value && (value & WAIT_NS_MAX) < ns)
        ns = value & WAIT_NS_MAX;
    if (seen < ranks)
        return keep_wait(l, key, seen << WAIT_NS_BITS | min_of(ns, WAIT_NS_MAX));
    key_map_remove(&l->waits, key);
    uint64_t *v = library_report_row_of(l, node->kind)->values;
    v[LIBRARY_BUS_CALLS]++;
    v[LIBRARY_BUS_NS] += ns;
    return 0;
}

/* Credits work to the innermost call and all around it. *innermost is its kind; 0: no call. */
static __attribute__((noinline)) int credit_calls(struct library_report *l, const struct slice *s,
                                                  uint32_t *innermost)
{
    const struct event *e = &s->event;
    uint64_t ns = e->end_ns - e->begin_ns, device = record_arg(e->record, KERNEL_DEVICE);
    int error = 0;
    uint32_t number = s->call.span;
    struct span_node *node;
    while (
        (node = survey_span(&l->walk->survey, &s->call, SPANS_OF(SPAN_LIBRARY), &number, true))) {
        bool is_first = !node->has_work;
        node->has_work = true;
        if (!*innermost && e->record->type == RECORD_KERNEL)
            error = library_report_meet(l, node, ns);
        *innermost = *innermost ? *innermost : node->kind;
        library_report_credit(l, node->kind, e->process, device, ns, 1, is_first);
    }
    return error;
}

/* Adds a kernel by name to the kind of its call; 0: no call. */
static void add_pair(struct library_report *l, uint32_t kind, const struct process *process,
                     uint64_t kernel, uint64_t ns)
{
    sums_row(&l->pairs, kind, process->index, kernel)->values[0] += ns;
}

static int library_report_take_work(void *context, const struct slice *s)
{
    struct library_report *l = context;
    const struct event *e = &s->event;
    uint64_t ns = e->end_ns - e->begin_ns;
    uint32_t kind = 0;
    if (s->is_filtered)
        return 0;
    l->all_ns += ns;
    int error = s->is_called && s->call.span ? credit_calls(l, s, &kind) : 0;
    if (kind)
        l->own_ns += ns;
    else if (graph_origins_work(&l->graphs, s))
        return 0; /* its owner is known at the end */
    if (e->record->type == RECORD_KERNEL)
        add_pair(l, kind, e->process, record_arg(e->record, KERNEL_NAME_INDEX), ns);
    return error;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static int report_node(void *context, const struct graph_node *node, enum graph_origin origin,
                       const struct captured_call *call)
{
    struct library_report *l = context;
    const struct span_node *around =
        call ? survey_innermost(&l->walk->survey, &call->call, SPAN_LIBRARY) : NULL;
    uint32_t kind = around ? around->kind : 0;
    (void)origin;
    if (around)
        library_report_credit(l, kind, node->process, node->device, node->ns, node->count,
                              captured_is_first(call, around->begin_ns) ? node->count : 0);
    l->own_ns += kind ? node->ns : 0;
    if (node->kernel)
        add_pair(l, kind, node->process, node->kernel, node->ns);
    return 0;
}

/* ---- as a consumer --------------------------------------------------------------------------- */

static int library_report_take_slice(void *context, const struct slice *s)
{
    struct library_report *l = context;
    enum span_change change = slice_change(s, SPAN_LIBRARY);
    if (change && change != SPAN_OPENED && !s->is_filtered) {
        const struct host_span *call = s->span;
        uint64_t *v = library_report_row_of(l, call->kind)->values;
        v[LIBRARY_CALLS]++;
        v[LIBRARY_HOST] += call->end_ns - call->begin_ns;
        v[LIBRARY_ERRORS] +=
            change == SPAN_CLOSED && api_has_failed(call->function->domain, call->result);
    } else if (!change && s->event.record->type == RECORD_CALL) {
        graph_origins_take(&l->graphs, s);
    }
    return 0;
}

/* ---- after the walk -------------------------------------------------------------------------- */

/* Tensor cores do not speed up vectors. */
static bool is_vector(const uint64_t *shape)
{
    for (unsigned i = SHAPE_M; i <= SHAPE_K; i++)
        if (shape_has(shape, i) && shape[i] == 1)
            return true;
    return false;
}

_Static_assert(LIBRARY_BATCH - LIBRARY_M == SHAPE_BATCH - SHAPE_M &&
                   LIBRARY_COMPUTE - LIBRARY_MESSAGE == SHAPE_COMPUTE - SHAPE_BYTES,
               "numbers in the same order");

/* Describes what a kind computes, and on which device; `device` is its number + 1, 0: none. */
static void library_report_describe(struct library_report *l, const struct library_kind *kind,
                                    const struct library_work *work, const struct process *process,
                                    uint64_t device, uint64_t *v)
{
    const uint64_t *shape = kind->shape;
    const struct surveyed_device *d =
        device ? survey_device(&l->walk->survey, process, device - 1) : NULL;
    v[LIBRARY_SEEN] = 1;
    v[LIBRARY_FLOPS_NS] = work->has_flops ? v[LIBRARY_GPU] : 0;
    v[LIBRARY_DEVICE] = device ? device_peaks_number(d ? d->name : "") : 0;
    v[LIBRARY_LEAST_DEVICE] = device ? v[LIBRARY_DEVICE] : UINT64_MAX;
    /* GA100, GH100 and GB100 multiply f64 on tensor cores. */
    v[LIBRARY_DOUBLE] = d && d->limits.minor == 0 && d->limits.major >= 8 && d->limits.major <= 10;
    v[LIBRARY_DOMAIN] = kind->function->domain;
    memcpy(&v[LIBRARY_M], &shape[SHAPE_M], (LIBRARY_BATCH - LIBRARY_M + 1) * sizeof *v);
    memcpy(&v[LIBRARY_MESSAGE], &shape[SHAPE_BYTES],
           (LIBRARY_COMPUTE - LIBRARY_MESSAGE + 1) * sizeof *v);
    v[LIBRARY_TYPE] = shape[SHAPE_COUNT] ? shape[SHAPE_TYPE] : work->type;
    v[LIBRARY_FACTOR] = work->type;
    v[LIBRARY_IS_PRODUCT] = work->has_flops;
    v[LIBRARY_IS_VECTOR] = is_vector(shape);
    v[LIBRARY_HAS_BYTES] = work->has_bytes;
    v[LIBRARY_BYTES] = work->bytes;
}

/* Turns a row by kind and device into one by name. */
static void library_report_name_row(struct sums *s, struct sums_row *row, void *context)
{
    struct library_report *l = context;
    struct library_kinds *kinds = &l->walk->kinds;
    uint32_t kind = (uint32_t)row->keys[0];
    const struct kernel_name *text = library_kind_text(kinds, kind);
    uint64_t function = sums_text(s, library_kind(kinds, kind)->function->name);
    struct library_work work = library_kind_work(kinds, kind);
    library_report_describe(l, library_kind(kinds, kind), &work,
                            l->walk->rec->processes[row->keys[1]], row->keys[2], row->values);
    struct key key = {sums_name_key(text), work.flops, function};
    sums_row_add(s, key, row->values);
}

/* Determines the use of tensor cores from kernel names. */
static void find_tensor_use(struct library_report *l)
{
    for (uint32_t i = 0; i < l->pairs.count; i++) {
        const struct sums_row *pair = &l->pairs.rows[i];
        if (sums_is_others(pair) || !pair->keys[PAIR_KIND])
            continue;
        const struct process *process = l->walk->rec->processes[pair->keys[PAIR_PROCESS]];
        const struct kernel_name *name = walk_kernel(l->walk, process, pair->keys[PAIR_KERNEL]);
        enum tensor_use use = name ? tensor_use_of(name->shown) : TENSOR_UNKNOWN;
        library_report_row_of(l, (uint32_t)pair->keys[PAIR_KIND])->values[LIBRARY_TENSOR + use] +=
            pair->values[0];
    }
}

/* Stores the collectives that ranks of other parts may still reach. */
static void report_waits(struct library_report *l)
{
    for (uint32_t i = 0; l->is_part && i < l->waits.slot_count; i++) {
        const struct key_slot *slot = &l->waits.slots[i];
        if (!slot->value)
            continue;
        const struct communicator *c = &l->walk->kinds.communicators[slot->key.a - 1];
        const uint64_t values[] = {slot->value >> WAIT_NS_BITS, c->ranks,
                                   slot->value & WAIT_NS_MAX};
        sums_row_add(&l->sums[0], (struct key){c->id, slot->key.b, slot->key.c}, values);
    }
}

static int library_report_end(void *context)
{
    struct library_report *l = context;
    const struct library_kinds *kinds = &l->walk->kinds;
    graph_origins_report(&l->graphs, report_node, l);
    const uint64_t all[LIBRARY_VALUES] = {[LIBRARY_ALL_NS] = l->all_ns,
                                          [LIBRARY_OWN_NS] = l->own_ns,
                                          [LIBRARY_LEAST_DEVICE] = UINT64_MAX};
    l->has_more = l->pairs.count >= l->pairs.rows_max || kinds->count >= kinds->count_max ||
                  l->sums[1].count >= l->sums[1].rows_max;
    find_tensor_use(l);
    sums_remake(&l->sums[1], library_report_name_row, l);
    report_waits(l);
    sums_row_add(&l->sums[1], (struct key){0}, all);
    sums_finish(&l->sums[0]);
    sums_finish(&l->sums[1]);
    return 0;
}

static void library_report_analysis_begin(struct report *r)
{
    struct library_report *l = r->libraries;
    bool has_work = recording_any(r->rec, process_expects_gpu);
    *l = (struct library_report){.walk = &r->walk,
                                 .sums = &r->sums[ANALYSIS_library_waits_sums],
                                 .is_part = r->request.is_part,
                                 .is_refused = r->request.refused & PART_LIBRARIES};
    sums_init(&l->pairs, &pairs_info, l->walk, NULL);
    l->sums[1].owner = l;
    graph_origins_init(&l->graphs, l->walk);
    report_hear(r, (struct consumer){.context = l,
                                     .needs = WALK_SPANS | (has_work ? (unsigned)WALK_WORK : 0),
                                     .skips = WALK_SKIPS_PLAIN_CALLS |
                                              (has_work ? 0 : (unsigned)WALK_SKIPS_WORK),
                                     .sees_filtered = true, /* graphs come from captures */
                                     .take = library_report_take_slice,
                                     .take_work = library_report_take_work,
                                     .end = library_report_end});
}

/* Adds to the table of kernels which library calls launched the kernels of each name. */
static void library_report_analysis_end(struct report *r)
{
    static const struct sums_info info = {.keys = {KEY_TEXT},
                                          .values = {[0 ... KERNEL_VALUES - 1] = JOIN_OWN},
                                          .join = gpu_join_makers};
    const struct library_report *l = r->libraries;
    struct sums *kernels = &r->sums[ANALYSIS_kernels_sums], makers;
    sums_init(&makers, &info, l->walk, NULL);
    for (uint32_t i = 0; kernels->info && i < l->pairs.count; i++) {
        const struct sums_row *pair = &l->pairs.rows[i];
        uint32_t kind = l->pairs.count < l->pairs.rows_max ? (uint32_t)pair->keys[PAIR_KIND] : 0;
        const struct library_kind *maker = kind ? library_kind(&l->walk->kinds, kind) : NULL;
        uint64_t values[KERNEL_VALUES] = {[KERNEL_MAKER] = maker ? MAKER_KNOWN : MAKER_NONE};
        if (sums_is_others(pair))
            continue;
        const struct process *p = r->rec->processes[pair->keys[PAIR_PROCESS]];
        const struct kernel_name *kernel =
            resolver_kernel(&r->resolver, p, pair->keys[PAIR_KERNEL]);
        if (maker) {
            values[KERNEL_MAKER_FUNCTION] = sums_function(kernels, maker->function);
            values[KERNEL_MAKER_TEXT] = sums_name_key(maker->text);
        }
        sums_row_add(&makers, (struct key){sums_name_key(kernel), 0, 0}, values);
    }
    for (uint32_t i = 0; i < kernels->count; i++) {
        const struct sums_row *made =
            sums_find(&makers, (struct key){kernels->rows[i].keys[0], 0, 0});
        if (made)
            gpu_join_makers(kernels->rows[i].values, made->values);
    }
    sums_release(&makers);
}

const struct analysis libraries_analysis = {
    ANALYSIS_STATE(libraries),          .uses = USE_EXPORT,
    .parts = REPORT_LIBRARIES,          .begin = library_report_analysis_begin,
    .end = library_report_analysis_end, .release = library_report_analysis_release};
