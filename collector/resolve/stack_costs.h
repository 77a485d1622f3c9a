/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up what the calls of each stack cost: host time, device time of the work that they launched,
 * calls and allocated bytes. During the walk, costs are added to one row for each stack, function,
 * range and kind of work. Once everything is known about these, the rows are added to the nodes of
 * a call tree. Calls nested in other calls are ignored: the outer ones include their times. Samples
 * count at the innermost frame of their stack, waits below the frame that made them. Memory: 20
 * bytes a thread and 208 bytes a row, as many rows as the tree may have nodes; costs beyond that
 * count as without a stack.
 */
#ifndef GPUPROF_COLLECTOR_STACK_COSTS_H
#define GPUPROF_COLLECTOR_STACK_COSTS_H

#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "resolve/host_facts.h"

struct stack_cost {
    uint64_t calls;
    uint64_t host_ns;
    uint64_t works; /* kernels, copies, sets, graphs */
    uint64_t gpu_ns;
    uint64_t bytes; /* allocated */
    /* From samples, with has_samples: */
    uint64_t samples; /* CPU samples: ticks of the thread's timer */
    uint64_t cpu_ns;  /* CPU time that samples represent, and known parts of it */
    uint64_t time_ns[HOST_TIMES];
    /* Off the CPU: in calls that waited, or waiting for the GIL, without calls that ran meanwhile;
     * or where a sample saw the thread wait in neither. */
    uint64_t waits;
    uint64_t waited_ns;
};

/* In place of a function index: samples, or waits, instead of calls. */
#define STACK_SAMPLED (UINT32_MAX - 1)
#define STACK_WAITED  (UINT32_MAX - 2)

/* One row for everything recorded with the same key. */
struct stack_row {
    uint32_t process;
    uint32_t thread; /* struct thread index; 0 unless threads are split */
    uint32_t stack;
    uint32_t function; /* struct function index; UINT32_MAX: not known; or STACK_... */
    const struct kernel_name *range;
    uint64_t work[4]; /* record type and parts of its title; 0: calls, or not split */
    struct stack_cost cost;
};

struct stack_costs {
    struct recording *rec;
    struct walk *walk;
    struct stack_row *rows; /* owned; in the order of first use */
    uint32_t row_count;
    uint32_t rows_max;
    uint64_t left_out; /* calls and work beyond the maximum */
    struct number_set row_numbers;
    struct call_tree tree;     /* made by stack_costs_finish, like the members below */
    struct kernel_names names; /* plain: texts that were not recorded */
    struct stack_cost *costs;  /* owned: costs of nodes, without those below */
    uint32_t cost_count;
    struct stack_cost *stackless; /* owned, by process index: costs without a stack */
    uint32_t *roots;              /* owned, by process or thread index; 0: not made yet */
    bool *pythonic;               /* owned, by process index: it has Python frames */
    bool split_processes;         /* each process has a root of its own */
    bool merges_ranks; /* ranks of one program share a root; threads are matched by name */
    bool only_own;     /* as in call_tree.h */
    bool only_named;
    bool split_threads;     /* each thread has a node below its process */
    bool split_work;        /* work has nodes below the calls */
    bool has_samples;       /* samples count */
    bool has_waits;         /* waits count */
    struct open_wait *open; /* owned, by thread index */
};

/* `walk` must stay. Set the flags between this and the walk. */
void stack_costs_init(struct stack_costs *s, struct walk *walk);
void stack_costs_release(struct stack_costs *s);

/* The consumer of all calls and work; `s` must not move. */
struct consumer stack_costs_consumer(struct stack_costs *s);

/* After the walk: makes the tree, with symbols from `symbol_folder` (symbols.h). */
void stack_costs_finish(struct stack_costs *s, const char *symbol_folder);

/* The cost of a node itself; zeros if it has none. */
struct stack_cost stack_cost_of(const struct stack_costs *s, uint32_t node);
void stack_cost_add(struct stack_cost *to, const struct stack_cost *more);

/* After stack_costs_show_stackless: whether there are samples or waits. */
bool stack_costs_has_host(const struct stack_costs *s);

/* Costs without a stack, of all processes. */
struct stack_cost stack_costs_without(const struct stack_costs *s);

/* Why calls have no stack: it is taken on return, when the call is known to be slow. */
#define NO_STACK_REASON "below the threshold, not asked for, lost, or not returned"

/* After the last event: adds a node for costs without a stack to each process. */
void stack_costs_show_stackless(struct stack_costs *s);

#endif
