/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of each stack cost: times on the host, on the device (of the work that they
 * launched, by correlation), calls and bytes allocated, added up at the nodes of a call tree. Calls
 * nested in other calls count for nothing: the outer ones have their times.
 */
#ifndef GPUPROF_COLLECTOR_STACK_COSTS_H
#define GPUPROF_COLLECTOR_STACK_COSTS_H

#include "model/call_tree.h"
#include "model/range_stack.h"

struct stack_cost {
    uint64_t calls;
    uint64_t open; /* of these: that had not returned */
    uint64_t host_ns;
    uint64_t max_ns; /* of a call */
    uint64_t works;  /* kernels, copies, sets, graphs */
    uint64_t gpu_ns;
    uint64_t bytes; /* allocated */
};

struct stack_costs {
    struct recording *rec;
    struct survey *survey;
    struct call_tree tree;
    struct ranges ranges;
    struct kernel_names names; /* plain: of what is no recorded text */
    struct stack_cost *costs;  /* owned: a node's own, without what is below, if it has any */
    uint32_t cost_count;
    uint32_t cost_capacity;
    struct stack_cost *stackless;  /* owned, by process index: what has no stack */
    const struct thread **threads; /* owned, by thread index */
    uint32_t *roots;               /* owned, by process or thread index; 0: not yet made */
    bool split_processes;          /* each process has a root of its own */
    bool split_threads;            /* and each of its threads a node below that */
    bool split_work;               /* work has nodes below the calls */
};

/*
 * `survey` must stay. The flags are to be set between this and the first event. 0, or an error;
 * stack_costs_release in both cases.
 */
int stack_costs_init(struct stack_costs *s, struct survey *survey, const char *symbol_folder);
void stack_costs_release(struct stack_costs *s);

/* Any event, in the order of the timeline. 0 or an error. */
int stack_costs_take(struct stack_costs *s, const struct event *e);

/* What a node's own cost is; zeros where there is none. */
struct stack_cost stack_cost_of(const struct stack_costs *s, uint32_t node);
void stack_cost_add(struct stack_cost *to, const struct stack_cost *more);

/* What has no stack, of all processes. */
struct stack_cost stack_costs_without(const struct stack_costs *s);

/* Why calls have none, "below the threshold ..."; returns `text`. */
#define NO_STACK_BYTES 128
char *stack_costs_reason(const struct stack_cost *without, char *text);

/* After the last event: what has no stack gets a node of its own in each process. 0 or an error. */
int stack_costs_show_stackless(struct stack_costs *s);

#endif
