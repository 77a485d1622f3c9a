/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of each stack cost: times on the host, on the device (of the work that they
 * launched, by correlation), calls and bytes allocated. While the walk lasts they are added up by
 * what was recorded, a row for each stack, function, range and kind of work; then, when all is
 * known that says what these are, at the nodes of a call tree. Calls nested in other calls count
 * for nothing: the outer ones have their times. Samples count at the innermost frame of their
 * stack, waits below the one that they were made from. Memory: 32 bytes a thread, 216 bytes a row,
 * as many as the tree may have nodes; what is beyond counts as without a stack.
 */
#ifndef GPUPROF_COLLECTOR_STACK_COSTS_H
#define GPUPROF_COLLECTOR_STACK_COSTS_H

#include "resolve/call_tree.h"
#include "resolve/event_walk.h"
#include "resolve/host_facts.h"

struct stack_cost {
    uint64_t calls;
    uint64_t open; /* of these: that had not returned */
    uint64_t host_ns;
    uint64_t works; /* kernels, copies, sets, graphs */
    uint64_t gpu_ns;
    uint64_t bytes; /* allocated */
    /* What samples say, with has_samples: */
    uint64_t samples; /* CPU samples: ticks of the thread's timer */
    uint64_t cpu_ns;  /* CPU time that they stand for, and which of it is known to be the ... */
    uint64_t time_ns[HOST_TIMES];
    uint64_t looks_ns; /* in gaps between calls, in which a look saw the thread here */
    /* Off the CPU: in calls that waited, or waiting for the GIL, without what ran meanwhile; or
     * where a look saw the thread wait in neither. */
    uint64_t waits;
    uint64_t waited_ns;
};

/* In place of a function: samples, or waits, and no calls. */
#define STACK_SAMPLED (UINT32_MAX - 1)
#define STACK_WAITED  (UINT32_MAX - 2)

/* What was recorded alike. */
struct stack_row {
    uint32_t process;
    uint32_t thread; /* struct thread index; 0 unless threads are split */
    uint32_t stack;
    uint32_t function; /* struct function index; UINT32_MAX: not known; or STACK_... */
    const struct kernel_name *range;
    uint64_t work[4]; /* a record's type and what its title is made of; 0: calls, or not split */
    struct stack_cost cost;
};

struct stack_costs {
    struct recording *rec;
    struct walk *walk;
    struct stack_row *rows; /* owned; in the order of their first coming */
    uint32_t row_count;
    uint32_t rows_max;
    uint64_t left_out; /* calls and work beyond the maximum */
    struct number_set row_numbers;
    struct call_tree tree;     /* this and what follows: by stack_costs_finish */
    struct kernel_names names; /* plain: of what is no recorded text */
    struct stack_cost *costs;  /* owned: a node's own, without what is below, if it has any */
    uint32_t cost_count;
    struct stack_cost *stackless;  /* owned, by process index: what has no stack */
    const struct thread **threads; /* owned, by thread index */
    uint32_t *roots;               /* owned, by process or thread index; 0: not yet made */
    bool *pythonic;                /* owned, by process index: has it Python frames? */
    bool split_processes;          /* each process has a root of its own */
    bool merges_ranks;             /* and those of one program share one; threads by their names */
    bool only_own;                 /* as in call_tree.h */
    bool only_named;
    bool split_threads;      /* and each of its threads a node below that */
    bool split_work;         /* work has nodes below the calls */
    bool has_samples;        /* samples count, too, */
    bool has_waits;          /* and what waited */
    struct open_waits *open; /* owned, by thread index: what waits now; NULL: nothing has */
};

/*
 * `walk` must stay. The flags are to be set between this and the walk. 0, or an error;
 * stack_costs_release in both cases.
 */
int stack_costs_init(struct stack_costs *s, struct walk *walk);
void stack_costs_release(struct stack_costs *s);

/* Of all calls and work; `s` must stay where it is. */
struct consumer stack_costs_consumer(struct stack_costs *s);

/* After the walk: makes the tree, with symbols from `symbol_folder` (symbols.h). 0 or an error. */
int stack_costs_finish(struct stack_costs *s, const char *symbol_folder);

/* What a node's own cost is; zeros where there is none. */
struct stack_cost stack_cost_of(const struct stack_costs *s, uint32_t node);
void stack_cost_add(struct stack_cost *to, const struct stack_cost *more);

/* After that and stack_costs_show_stackless: was anything sampled, or did it wait? */
bool stack_costs_has_host(const struct stack_costs *s);

/* What has no stack, of all processes. */
struct stack_cost stack_costs_without(const struct stack_costs *s);

/* Why calls have none, "below the threshold ..."; returns `text`. */
#define NO_STACK_BYTES 128
char *stack_costs_reason(const struct stack_cost *without, char *text);

/* After the last event: what has no stack gets a node of its own in each process. 0 or an error. */
int stack_costs_show_stackless(struct stack_costs *s);

#endif
