/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/library_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

/* Beside a kind: the first captured call of its call. */
#define KIND_IS_FIRST (1u << 31)

static const struct sums_info pairs_info = {.keys = {KEY_NUMBER, KEY_PROCESS, KEY_NUMBER},
                                            .values = {JOIN_ADD},
                                            .rows_max = LIBRARY_PAIRS_MAX};

static int analysis_begin(struct report *r)
{
    struct library_report *l = r->libraries;
    *l = (struct library_report){.walk = &r->walk,
                                 .sums = &r->sums[ANALYSIS_library_waits_sums],
                                 .is_part = r->wish.is_part,
                                 .is_refused = r->wish.refused & PART_LIBRARIES};
    sums_init(&l->pairs, &pairs_info, l->walk, NULL);
    l->sums[1].owner = l;
    graph_origins_init(&l->graphs, l->walk);
    return 0;
}

bool library_report_has_more(const struct library_report *l)
{
    const struct library_kinds *kinds = &l->walk->kinds;
    return l->pairs.count >= l->pairs.rows_max || kinds->count >= kinds->count_max;
}

static void analysis_release(struct report *r)
{
    struct library_report *l = r->libraries;
    free(l->rows);
    sums_release(&l->pairs);
    key_map_release(&l->makers);
    key_map_release(&l->waits);
    graph_origins_release(&l->graphs);
}

/* The row of that kind; NULL: no memory. */
static struct library_row *row_of(struct library_report *l, uint32_t kind)
{
    while (l->count < kind) {
        if (!ARRAY_ROOM(l->rows, l->count, l->capacity, 64))
            return NULL;
        l->rows[l->count++] = (struct library_row){0};
    }
    l->rows[kind - 1].is_seen = true;
    return &l->rows[kind - 1];
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int take_library(struct library_report *l, const struct slice *s)
{
    const struct library_call *call = s->library;
    if (s->library_change == LIBRARY_OPENED || s->is_hidden)
        return 0;
    struct library_row *row = row_of(l, call->kind);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->values[LIBRARY_CALLS]++;
    row->values[LIBRARY_HOST] += call->end_ns - call->begin_ns;
    row->values[LIBRARY_ERRORS] +=
        s->library_change == LIBRARY_CLOSED && api_has_failed(call->function->domain, call->result);
    return 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Of several devices a row has the numbers of the first one, by process, if all have the same
 * name. */
static void see_device(const struct library_report *l, struct library_row *row,
                       const struct process *process, uint64_t device)
{
    if (row->process == process && row->device == device)
        return;
    if (row->process) {
        const struct surveyed_device *a =
            survey_device(&l->walk->survey, row->process, row->device);
        const struct surveyed_device *b = survey_device(&l->walk->survey, process, device);
        row->is_mixed |= !a || !b || strcmp(a->name, b->name) != 0;
        if (row->process->index < process->index ||
            (row->process == process && row->device < device))
            return;
    }
    row->process = process;
    row->device = device;
}

static int credit(struct library_report *l, uint32_t kind, const struct process *process,
                  uint64_t device, uint64_t ns, uint64_t works, uint64_t executed)
{
    struct library_row *row = row_of(l, kind);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->values[LIBRARY_GPU] += ns;
    row->values[LIBRARY_WORKS] += works;
    row->values[LIBRARY_EXECUTED] += executed;
    see_device(l, row, process, device);
    return 0;
}

/* Of a part it waits for what other parts have, and none must be forgotten. */
static int keep_wait(struct library_report *l, struct key key, uint64_t value)
{
    if (!l->is_part)
        return key_map_set_anew(&l->waits, key, value, LIBRARY_WAITS_MAX);
    int error = key_map_set(&l->waits, key, value);
    l->has_forgotten |= error == GPUPROF_LIMIT;
    return error == GPUPROF_LIMIT && !l->is_refused ? 0 : error;
}

/* A call brings its rank, with its first kernel; what has another one is not counted again. All
 * ranks are to call the same. */
static int meet(struct library_report *l, struct library_node *node, uint64_t ns)
{
    const struct library_message *m = &node->message;
    uint32_t ranks = m->communicator ? l->walk->kinds.communicators[m->communicator - 1].ranks : 0;
    int error = 0;
    if (library_kind(&l->walk->kinds, node->kind)->function->does != API_DOES_COLLECTIVE)
        return 0; /* messages are counted apart */
    if (ranks < 2 || ranks >= 1u << (64 - WAIT_NS_BITS) || !m->sequence || node->has_come)
        return 0;
    node->has_come = true;
    const struct kernel_name *text = library_kind_text(&l->walk->kinds, node->kind, &error);
    if (error < 0)
        return error;
    struct key key = {m->communicator, m->sequence, (uintptr_t)text};
    uint64_t value = key_map_get(&l->waits, key);
    uint64_t seen = (value >> WAIT_NS_BITS) + 1;
    if (value && (value & WAIT_NS_MAX) < ns)
        ns = value & WAIT_NS_MAX;
    if (seen < ranks)
        return keep_wait(l, key, library_wait_value(seen, ns));
    key_map_remove(&l->waits, key);
    struct library_row *row = row_of(l, node->kind);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->values[LIBRARY_BUS_CALLS]++;
    row->values[LIBRARY_BUS_NS] += ns;
    return 0;
}

/* To the innermost call and all around it. */
static __attribute__((noinline)) int credit_calls(struct library_report *l, const struct slice *s)
{
    const struct event *e = &s->event;
    uint64_t ns = e->end_ns - e->begin_ns, device = record_arg(e->record, KERNEL_DEVICE);
    int error = 0;
    for (uint32_t number = s->call.library; error == 0 && number;) {
        struct library_node *node = survey_library(&l->walk->survey, number, &error);
        if (!node)
            return error;
        bool is_first = !node->has_work;
        node->has_work = true;
        if (number == s->call.library && e->record->type == RECORD_KERNEL &&
            (error = meet(l, node, ns)) < 0)
            return error;
        number = node->parent;
        error = credit(l, node->kind, e->process, device, ns, 1, is_first);
    }
    return error;
}

/* A kernel of that name was of a call of that kind; 0: of none. */
static int add_pair(struct library_report *l, uint32_t kind, const struct process *process,
                    uint64_t kernel, uint64_t ns)
{
    struct sums_row *row = sums_row(&l->pairs, kind, process->index, kernel);
    if (row)
        row->values[0] += ns;
    return row ? 0 : GPUPROF_NO_MEMORY;
}

static int tied(void *context, const struct slice *s)
{
    struct library_report *l = context;
    const struct event *e = &s->event;
    uint64_t ns = e->end_ns - e->begin_ns;
    uint32_t kind = 0;
    int error = 0;
    if (!is_stream_work(e->record->type) || s->is_hidden)
        return 0;
    l->all_ns += ns;
    if (s->is_called && s->call.library) {
        const struct library_node *node = survey_library(&l->walk->survey, s->call.library, &error);
        kind = node ? node->kind : 0;
        l->own_ns += ns;
        error = node ? credit_calls(l, s) : error;
    } else {
        error = graph_origins_work(&l->graphs, s);
        if (error > 0) /* whose it is, is known at the end */
            return 0;
    }
    if (error < 0 || e->record->type != RECORD_KERNEL)
        return error;
    return add_pair(l, kind, e->process, record_arg(e->record, KERNEL_NAME_INDEX), ns);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A call is captured: the kind of the library's call that it is in, which 0 stands for none of. */
static int keep_captured(struct library_report *l, const struct slice *s)
{
    struct library_call *call = library_innermost(&l->walk->libraries, s->event.thread);
    struct library_message message;
    int64_t kind = call ? library_call_kind(&l->walk->libraries, call, &message) : 0;
    if (kind < 0)
        return (int)kind;
    uint32_t first = call && !call->row ? KIND_IS_FIRST : 0;
    if (call)
        call->row = 1;
    return graph_origins_capture(&l->graphs, s, (uint32_t)kind | first);
}

static int tell_node(void *context, const struct graph_node *node, enum graph_origin origin,
                     uint32_t user)
{
    struct library_report *l = context;
    uint32_t kind = origin == GRAPH_KNOWN ? user & ~KIND_IS_FIRST : 0;
    int error = kind ? credit(l, kind, node->process, node->device, node->ns, node->count,
                              user & KIND_IS_FIRST ? node->count : 0)
                     : 0;
    l->own_ns += kind ? node->ns : 0;
    return error < 0 || !node->kernel ? error
                                      : add_pair(l, kind, node->process, node->kernel, node->ns);
}

/* ---- as a consumer --------------------------------------------------------------------------- */

static int take_slice(void *context, const struct slice *s)
{
    struct library_report *l = context;
    if (s->library_change != LIBRARY_SAME)
        return take_library(l, s);
    if (s->event.record->type != RECORD_CALL)
        return 0;
    int error = graph_origins_wants(s) ? keep_captured(l, s) : 0;
    return error < 0 ? error : graph_origins_take(&l->graphs, s);
}

static int end(void *context)
{
    struct library_report *l = context;
    int error = graph_origins_tell(&l->graphs, tell_node, l);
    error = error < 0 ? error : library_report_complete(l);
    for (unsigned i = 0; error == 0 && i < 2; i++)
        error = sums_finish(&l->sums[i]);
    return error;
}

static unsigned consumers(struct report *r, struct consumer *list)
{
    bool has_work = recording_expects_gpu(r->rec);
    *list = (struct consumer){.context = r->libraries,
                              .needs = WALK_LIBRARIES | (has_work ? (unsigned)WALK_WORK : 0),
                              .skips = WALK_SKIPS_PLAIN_CALLS | WALK_SKIPS_WORK,
                              .sees_hidden = true, /* captures, of which graphs were made */
                              .take = take_slice,
                              .tied = tied,
                              .end = end};
    return 1;
}

const struct analysis libraries_analysis = {ANALYSIS_STATE(libraries), .uses = USE_EXPORT,
                                            .parts = REPORT_LIBRARIES, .begin = analysis_begin,
                                            .consumers = consumers,    .release = analysis_release};
