/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/announced.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/timeline.h"

#define GRAPHS_MAX  (1u << 16)
#define NEAR_NS     1000000000u /* twice the default of --gpu-flush */
#define PARTIAL_MAX 16

/* Captured calls can be assigned only while one capture at a time is open. */
struct announced_capture {
    uint32_t open;
    uint32_t calls;
    bool is_mixed;
};

enum sort { GRAPH, EXEC }; /* kind of handle in a key */

static struct key announced_key_of(const struct process *p, enum sort sort, uint64_t handle)
{
    return (struct key){(uint64_t)p->index << 1 | sort, handle, 0};
}

int announced_init(struct announced *a, uint32_t process_count)
{
    *a = (struct announced){.keys.count_max = 2 * GRAPHS_MAX};
    a->captures = calloc(process_count + 1u, sizeof *a->captures);
    a->worked_ns = calloc(process_count + 1u, sizeof *a->worked_ns);
    return a->captures && a->worked_ns ? 0 : GPUPROF_NO_MEMORY;
}

void announced_forget(struct announced *a, const struct process *only, uint32_t process_count)
{
    uint32_t first = only ? only->index : 0, count = only ? 1 : process_count;
    memset(&a->captures[first], 0, count * sizeof *a->captures);
    memset(&a->worked_ns[first], 0, count * sizeof *a->worked_ns);
    key_map_release(&a->keys);
    a->keys.count_max = 2 * GRAPHS_MAX;
    free(a->graphs);
    a->graphs = NULL;
    a->graph_count = 0;
}

void announced_release(struct announced *a)
{
    key_map_release(&a->keys);
    free(a->graphs);
    free(a->captures);
    free(a->worked_ns);
}

/* The argument with that label, or of that kind if `label` is NULL; `missing` if there is none. */
static uint64_t announced_word_of(const struct event *e, const char *label, unsigned kind,
                                  uint64_t missing)
{
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == kind &&
            (!label || strcmp(e->function->args[i].label, label) == 0))
            return e->record->args[i];
    return missing;
}

static uint64_t handle_of(const struct event *e, const char *label)
{
    return announced_word_of(e, label, ARG_HANDLE, 0);
}

/* Whether it is a copy or fill on the device. */
static bool moves(const struct event *e)
{
    enum { HOST_TO_HOST = 0, NOT_SAID = 4 };
    unsigned does = e->function->does;
    return (api_is_copy(does) || does == API_DOES_SET) &&
           announced_word_of(e, NULL, ARG_BYTES, 1) &&
           announced_word_of(e, NULL, ARG_KIND, NOT_SAID) != HOST_TO_HOST;
}

/* A value of 0, and what does not fit, is not known. */
static int announced_set(struct announced *a, struct key key, uint64_t value)
{
    if (!value)
        key_map_remove(&a->keys, key); /* the handle may have been reused */
    int error = value ? key_map_set(&a->keys, key, value) : 0;
    return error == GPUPROF_NO_MEMORY ? error : 0;
}

/* Adds a graph that can be launched, with `captured` calls + 1; 0: not known. */
static int make_graph(struct announced *a, struct key exec, uint64_t captured)
{
    key_map_remove(&a->keys, exec); /* its handle may have been reused */
    if (a->graph_count == GRAPHS_MAX)
        return 0;
    struct announced_graph made = {.captured = (uint32_t)captured - 1};
    int error = ARRAY_PUSH(a->graphs, a->graph_count, &made);
    return error < 0 ? error : announced_set(a, exec, a->graph_count);
}

static int end_capture(struct announced *a, const struct event *e)
{
    struct announced_capture *c = &a->captures[e->process->index];
    uint64_t graph = handle_of(e, "graph");
    uint64_t value = c->open == 1 && !c->is_mixed ? c->calls + 1ull : 0;
    c->open -= c->open > 0;
    if (!c->open)
        *c = (struct announced_capture){0};
    return graph ? announced_set(a, announced_key_of(e->process, GRAPH, graph), value) : 0;
}

static int launch(struct announced *a, const struct event *e, uint32_t *graph)
{
    struct key exec = announced_key_of(e->process, EXEC, handle_of(e, "exec"));
    uint64_t index = key_map_get(&a->keys, exec);
    int error = index ? 0 : make_graph(a, exec, 0); /* made before the recording */
    *graph = (uint32_t)(index ? index : key_map_get(&a->keys, exec));
    return error < 0 ? error : CORRELATION_GRAPH;
}

int announced_take(struct announced *a, const struct event *e, uint32_t *graph)
{
    const struct record *r = e->record;
    struct announced_capture *c = &a->captures[e->process->index];
    unsigned does = e->function->does;
    if (r->flags & (RECORD_NESTED | RECORD_OPEN | RECORD_STALE))
        return 0;
    if (does == API_DOES_CAPTURE_END)
        return end_capture(a, e);
    if (r->result != 0)
        return 0;
    if (r->flags & RECORD_CAPTURED) {
        c->calls += does == API_DOES_LAUNCH || moves(e);
        return 0;
    }
    switch (does) {
    case API_DOES_CAPTURE_BEGIN: c->is_mixed |= c->open++ > 0; return 0;
    case API_DOES_GRAPH_INSTANTIATE:
        return make_graph(
            a, announced_key_of(e->process, EXEC, handle_of(e, "exec")),
            key_map_get(&a->keys, announced_key_of(e->process, GRAPH, handle_of(e, "graph"))));
    case API_DOES_GRAPH_LAUNCH: return launch(a, e, graph);
    default: return moves(e) ? CORRELATION_MOVES : 0;
    }
}

struct counting {
    struct announced *a;
    const struct correlation_gap *gaps;
    const struct correlation_hangs *hangs;
    uint32_t gap_count;
    uint64_t worked_ns; /* as in struct announced */
    uint64_t missing;
    bool has_moves;      /* records of copies and fills were requested */
    bool knows_captured; /* graph nodes have records, like the captured calls */
};

static void count_nodes(struct announced_graph *g, uint32_t work)
{
    if (work > g->work) {
        g->work = work;
        g->partial = g->some;
    } else {
        g->partial += work < g->work;
    }
    g->some++;
    g->sum += work;
}

/* Few launches with less work than the others lack some. If many have less, as with conditional
 * nodes, nothing is known to be missing. */
static uint64_t missing_of(const struct announced_graph *g, bool knows_captured)
{
    bool is_known = knows_captured && g->captured != UINT32_MAX;
    uint64_t each = g->work;
    uint32_t partial = g->partial;
    if (is_known && g->captured > g->work && g->some <= PARTIAL_MAX) {
        each = g->captured;
        partial = g->some;
    }
    uint64_t lacking = partial <= PARTIAL_MAX ? each * g->some - g->sum : 0;
    return lacking + g->none * (each || is_known ? each : 1);
}

static void announced_count(const struct correlated_call *e, void *data)
{
    struct counting *n = data;
    struct announced_graph *g =
        e->flags & CORRELATION_GRAPH && e->graph ? &n->a->graphs[e->graph - 1] : NULL;
    bool waits =
        n->hangs && n->hangs->is_hung[e->thread] && e->begin_ns >= n->hangs->last_ns[e->thread];
    if (g && e->work)
        count_nodes(g, e->work);
    if (e->flags & CORRELATION_MATCHED || waits || e->begin_ns + NEAR_NS < n->worked_ns ||
        (e->flags & CORRELATION_MOVES && !n->has_moves) ||
        correlation_meets_gap(e, n->gaps, n->gap_count))
        return;
    if (g)
        g->none++;
    else
        n->missing++;
}

/* Whether records that CUPTI had not delivered may be missing. */
static bool may_lack(const struct process *p)
{
    return !p->end_reason || p->end_reason == END_KILLED ||
           p->losses.counters[COUNTER_GPU_UNFLUSHED];
}

int announced_missing(struct announced *a, struct correlation *c, const struct process *p,
                      const struct correlation_gap *gaps, uint32_t gap_count,
                      const struct correlation_hangs *hangs, uint64_t *missing)
{
    const unsigned kinds = CORRELATION_MOVES | CORRELATION_GRAPH;
    struct counting n = {a,
                         gaps,
                         hangs,
                         gap_count,
                         .worked_ns = a->worked_ns[p->index],
                         .has_moves = process_wants_moves(p)};
    n.knows_captured = n.has_moves && !process_meta(p, "gpu_graphs");
    if (!may_lack(p))
        return 0;
    for (uint32_t i = 0; i < a->graph_count; i++)
        a->graphs[i] = (struct announced_graph){.captured = a->graphs[i].captured};
    int error = correlation_each(c, p->index, kinds, announced_count, &n);
    for (uint32_t i = 0; i < a->graph_count; i++)
        n.missing += missing_of(&a->graphs[i], n.knows_captured);
    *missing += n.missing;
    return error;
}
