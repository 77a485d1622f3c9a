/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/graph_origins.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "record/gpu_record.h"

/* A few launches suffice to find the graph of a number. */
#define LAUNCHES_KEPT 16

struct capture {
    struct captured_call *calls; /* owned */
    uint32_t count;
    uint32_t launches; /* number of stored launches */
    bool is_bad;       /* its calls are not certain */
};

/* Kinds of keys. Values: a capture's index + 1; for NODE the index + 1. What does not fit is not
 * known, and reported so. */
enum sort { OPEN, GRAPH, EXEC, LAUNCH, ID, NODE };

static struct key graph_origins_key_of(const struct process *p, enum sort sort, uint64_t number)
{
    return (struct key){(uint64_t)p->index << 3 | sort, number, 0};
}

void graph_origins_init(struct graph_origins *g, struct walk *walk)
{
    *g = (struct graph_origins){.walk = walk, .keys.count_max = 2 * GRAPH_ORIGINS_MAX};
}

void graph_origins_release(struct graph_origins *g)
{
    for (uint32_t i = 0; i < g->capture_count; i++)
        free(g->captures[i].calls);
    free(g->captures);
    free(g->nodes);
    key_map_release(&g->keys);
}

/* ---- captures -------------------------------------------------------------------------------- */

/* The key of the handle in the argument with that label; 0: none. */
static struct key key_of_argument(const struct event *e, enum sort sort, const char *label)
{
    return graph_origins_key_of(e->process, sort, function_arg(e->function, e->record, label, 0));
}

static uint8_t work_of(const struct event *e)
{
    return e->function->does == API_DOES_LAUNCH ? RECORD_KERNEL
           : api_is_copy(e->function->does)     ? RECORD_COPY
           : e->function->does == API_DOES_SET  ? RECORD_SET
                                                : 0;
}

/* Returns the call that it adds to the open capture; NULL: none. */
static const struct captured_call *add_captured(struct graph_origins *g, const struct slice *s)
{
    uint64_t open = key_map_get(&g->keys, graph_origins_key_of(s->event.process, OPEN, 0));
    struct capture *c = open ? &g->captures[open - 1] : NULL;
    if (!c || c->is_bad)
        return NULL;
    if (g->call_count == GRAPH_ORIGINS_MAX) {
        c->is_bad = true;
        return NULL;
    }
    struct captured_call call = {.call.begin_ns = s->event.begin_ns,
                                 .before_ns = c->count ? c->calls[c->count - 1].call.begin_ns : 0,
                                 .kernel = walk_launched(s),
                                 .type = work_of(&s->event)};
    call.call.span = survey_number(&g->walk->survey, &g->walk->spans, s->event.thread);
    ARRAY_PUSH(c->calls, c->count, &call);
    g->call_count++;
    return &c->calls[c->count - 1];
}

static void begin_capture(struct graph_origins *g, const struct process *p)
{
    const struct key key = graph_origins_key_of(p, OPEN, 0);
    uint64_t open = key_map_get(&g->keys, key);
    if (open) { /* captured calls cannot be assigned */
        g->captures[open - 1].is_bad = true;
    } else if (g->capture_count < GRAPH_ORIGINS_MAX) {
        ARRAY_PUSH(g->captures, g->capture_count, NULL);
        key_map_set(&g->keys, key, g->capture_count);
    }
}

static void end_capture(struct graph_origins *g, const struct event *e)
{
    const struct key key = graph_origins_key_of(e->process, OPEN, 0);
    const struct key graph = key_of_argument(e, GRAPH, "graph");
    uint64_t open = key_map_get(&g->keys, key);
    key_map_remove(&g->keys, key);
    if (open && graph.b && e->record->result == 0)
        key_map_set(&g->keys, graph, open);
}

static void instantiate(struct graph_origins *g, const struct event *e)
{
    const struct key exec = key_of_argument(e, EXEC, "exec");
    uint64_t capture = key_map_get(&g->keys, key_of_argument(e, GRAPH, "graph"));
    key_map_remove(&g->keys, exec); /* its handle may have been reused */
    if (capture)
        key_map_set(&g->keys, exec, capture);
}

static void launch(struct graph_origins *g, const struct event *e)
{
    const struct key key = graph_origins_key_of(e->process, LAUNCH, e->record->correlation);
    uint64_t exec = key_map_get(&g->keys, key_of_argument(e, EXEC, "exec"));
    struct capture *c = exec ? &g->captures[exec - 1] : NULL;
    if (c && key.b && c->launches < LAUNCHES_KEPT) {
        c->launches++;
        key_map_set(&g->keys, key, exec);
    }
}

const struct captured_call *graph_origins_take(struct graph_origins *g, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->record->type != RECORD_CALL || e->record->flags & RECORD_NESTED ||
        (e->record->result != 0 && e->function->does != API_DOES_CAPTURE_END))
        return NULL; /* the end of a capture counts even if it failed */
    if (e->record->flags & RECORD_CAPTURED && e->record->result == 0 && work_of(e))
        return add_captured(g, s);
    switch (e->function->does) {
    case API_DOES_CAPTURE_BEGIN: begin_capture(g, e->process); break;
    case API_DOES_CAPTURE_END: end_capture(g, e); break;
    case API_DOES_GRAPH_INSTANTIATE: instantiate(g, e); break;
    case API_DOES_GRAPH_LAUNCH: launch(g, e); break;
    }
    return NULL;
}

/* ---- replays --------------------------------------------------------------------------------- */

static unsigned graph_at(const struct record *r)
{
    return r->type == RECORD_KERNEL ? KERNEL_GRAPH
           : r->type == RECORD_COPY ? COPY_GRAPH
           : r->type == RECORD_SET  ? SET_GRAPH
                                    : GRAPH_GRAPH;
}

_Static_assert(KERNEL_GRAPH_NODE == KERNEL_GRAPH + 1 && COPY_GRAPH_NODE == COPY_GRAPH + 1 &&
                   SET_GRAPH_NODE == SET_GRAPH + 1,
               "the one behind the other");
_Static_assert((int)KERNEL_DEVICE == (int)COPY_DEVICE && (int)KERNEL_DEVICE == (int)SET_DEVICE,
               "the device of any work");

/* Learns the capture of a graph number. */
static void graph_origins_learn(struct graph_origins *g, const struct slice *s, uint64_t graph)
{
    const struct process *p = s->event.process;
    const struct key id = graph_origins_key_of(p, ID, graph);
    if (!s->is_called || key_map_get(&g->keys, id))
        return;
    uint64_t capture = key_map_get(&g->keys, graph_origins_key_of(p, LAUNCH, s->call.id));
    if (capture)
        key_map_set(&g->keys, id, capture);
}

static __attribute__((noinline)) bool count_node(struct graph_origins *g, const struct slice *s)
{
    const struct record *r = s->event.record;
    struct graph_node made = {.process = s->event.process,
                              .graph = record_arg(r, graph_at(r)),
                              .node = r->type == RECORD_GRAPH ? 0 : record_arg(r, graph_at(r) + 1),
                              .kernel =
                                  r->type == RECORD_KERNEL ? record_arg(r, KERNEL_NAME_INDEX) : 0,
                              .device = record_arg(r, KERNEL_DEVICE),
                              .type = r->type};
    struct key key = graph_origins_key_of(made.process, NODE, made.graph);
    key.c = made.node;
    graph_origins_learn(g, s, made.graph);
    uint32_t place = KEY_MAP_ITEM(&g->keys, key, g->nodes, g->node_count, UINT32_MAX, &made);
    if (!place)
        return false;
    struct graph_node *node = &g->nodes[place - 1];
    node->is_changed |=
        node->type != made.type || node->kernel != made.kernel || node->device != made.device;
    node->ns += s->event.end_ns - s->event.begin_ns;
    node->count++;
    return true;
}

bool graph_origins_work(struct graph_origins *g, const struct slice *s)
{
    const struct record *r = s->event.record;
    return (r->type == RECORD_GRAPH || record_arg(r, graph_at(r))) && count_node(g, s);
}

static int compare_nodes(const void *left, const void *right)
{
    const struct graph_node *a = left, *b = right;
    return ORDER(a->process->index, b->process->index) ?: ORDER(a->graph, b->graph) ?:
           ORDER(a->node, b->node);
}

/* Finds the origin of the `count` nodes of one graph, in their order. */
static enum graph_origin origin_of(const struct graph_origins *g, const struct graph_node *nodes,
                                   uint32_t count, const struct capture **capture)
{
    uint64_t id = key_map_get(&g->keys, graph_origins_key_of(nodes->process, ID, nodes->graph));
    if (nodes->type == RECORD_GRAPH)
        return GRAPH_WHOLE;
    if (!id)
        return GRAPH_UNSEEN;
    const struct capture *c = *capture = &g->captures[id - 1];
    if (c->is_bad || c->count != count)
        return GRAPH_DIFFERENT;
    for (uint32_t i = 0; i < count; i++) {
        const struct kernel_name *name =
            nodes[i].kernel ? walk_kernel(g->walk, nodes[i].process, nodes[i].kernel) : NULL;
        if (nodes[i].is_changed || nodes[i].type != c->calls[i].type ||
            (name && c->calls[i].kernel && name != c->calls[i].kernel))
            return GRAPH_DIFFERENT;
    }
    return GRAPH_KNOWN;
}

int graph_origins_report(struct graph_origins *g, graph_origin_fn *notify, void *context)
{
    int error = 0;
    ARRAY_SORT(g->nodes, g->node_count, compare_nodes);
    for (uint32_t i = 0, count; error == 0 && i < g->node_count; i += count) {
        const struct graph_node *nodes = &g->nodes[i];
        const struct capture *capture = NULL;
        for (count = 1; i + count < g->node_count; count++)
            if (nodes[count].process != nodes->process || nodes[count].graph != nodes->graph)
                break;
        enum graph_origin origin = origin_of(g, nodes, count, &capture);
        for (uint32_t k = 0; error == 0 && k < count; k++)
            error = notify(context, &nodes[k], origin,
                           origin == GRAPH_KNOWN ? &capture->calls[k] : NULL);
    }
    return error;
}
