/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who made the calls, as recorded: the modules, places in Python code and stacks of all processes,
 * by their numbers (see "Who made a call" in event-stream.md). The survey fills it; nothing is
 * symbolised here. Memory: 40 bytes a module, 24 a place, 24 a stack and 8 a frame, up to the
 * maxima below, and the texts, each once, up to those of kernel_names.h. What is beyond is counted.
 */
#ifndef GPUPROF_COLLECTOR_STACK_TABLE_H
#define GPUPROF_COLLECTOR_STACK_TABLE_H

#include "kernel_names.h"
#include "key_map.h"
#include "timeline.h"

#define STACK_MODULES_MAX (1u << 16)
#define STACK_PLACES_MAX  (1u << 20)
#define STACKS_MAX        (1u << 20)
#define STACK_WORDS_MAX   (1u << 25) /* frames of all stacks */

struct stack_module {
    const struct kernel_name *path;     /* NULL: a text too many */
    const struct kernel_name *build_id; /* hexadecimal; NULL: it has none */
    uint32_t process;
};

struct stack_place {
    const struct kernel_name *file; /* NULL: a text too many */
    const struct kernel_name *function;
    uint32_t line; /* 0: not known */
};

struct recorded_stack {
    uint32_t first; /* of its words */
    uint32_t count;
    uint32_t flags; /* enum stack_flag */
    uint32_t process;
};

struct stack_table {
    struct kernel_names texts; /* plain */
    struct key_map modules_of; /* (process, number) -> place + 1, and so the others */
    struct key_map places_of;
    struct key_map stacks_of;
    struct stack_module *modules; /* owned */
    uint32_t module_count;
    uint32_t module_capacity;
    struct stack_place *places; /* owned */
    uint32_t place_count;
    uint32_t place_capacity;
    struct recorded_stack *stacks; /* owned */
    uint32_t stack_count;
    uint32_t stack_capacity;
    uint64_t *words; /* owned: frames, innermost first (frame.h) */
    uint32_t word_count;
    uint32_t word_capacity;
    uint64_t left_out; /* records beyond the maxima */
};

void stack_table_init(struct stack_table *t);
void stack_table_release(struct stack_table *t);

/* Takes a MODULE, PYTHON or STACK record, if it is a good one. 0 or GPUPROF_NO_MEMORY. */
int stack_table_take(struct stack_table *t, const struct event *e);

/* Views; NULL: no record of that number. `process` is the process's index. */
const struct recorded_stack *stack_table_stack(const struct stack_table *t, uint32_t process,
                                               uint32_t number);
const struct stack_module *stack_table_module(const struct stack_table *t, uint32_t process,
                                              uint32_t number);
const struct stack_place *stack_table_place(const struct stack_table *t, uint32_t process,
                                            uint32_t number);

#endif
