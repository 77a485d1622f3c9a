/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who made the calls, as recorded: the modules, places in Python code and stacks of all processes,
 * by their numbers (see "Who made a call" in event-stream.md). The survey fills it; nothing is
 * symbolised here. Frames that stacks of a process have in common, from the outermost on, are kept
 * once: a stack is the way from its innermost frame out. Memory: 100 bytes a module, a place or a
 * stack and 16 to 48 a frame, up to the maxima below, and the texts, each once, up to those of
 * kernel_names.h. What is beyond is counted.
 */
#ifndef GPUPROF_COLLECTOR_STACK_TABLE_H
#define GPUPROF_COLLECTOR_STACK_TABLE_H

#include <stdbool.h>

#include "base/key_map.h"
#include "frame.h"
#include "record.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

/* The records that say what stacks are (MODULE, PYTHON, STACK): do they mean anything? */
#define BUILD_ID_MAX 64 /* bytes of one; its text has twice as many */

/* False of such a record that no reader can use; every reader counts it in losses.stacks_unread. */
bool stack_record_is_good(const struct record *r);

#define STACK_MODULES_MAX (1u << 16)
#define STACK_PLACES_MAX  (1u << 20)
#define STACKS_MAX        (1u << 20)
#define STACK_FRAMES_MAX  (1u << 24)

/*
 * A file made for it can hold millions of stacks and frames that differ in a few bytes. So many of
 * them are for free, and further ones for each byte of the files: real ones take more.
 */
#define STACKS_FREE           (1u << 16)
#define STACK_FRAMES_FREE     (1u << 18)
#define STACK_FRAMES_PER_BYTE 4

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

struct stack_frame {
    uint64_t word;   /* frame.h */
    uint32_t parent; /* number of the next one out; 0: none */
    uint32_t process;
};

struct recorded_stack {
    uint32_t frame; /* number of the innermost one */
    uint32_t count; /* of frames */
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
    struct stack_place *places; /* owned */
    uint32_t place_count;
    struct recorded_stack *stacks; /* owned */
    uint32_t stack_count;
    struct stack_frame *frames; /* owned; number n is frames[n - 1], after its parent */
    uint32_t frame_count;
    uint32_t frames_max;
    struct number_set frame_numbers;
    uint64_t left_out; /* records beyond the maxima */
};

/* `bytes`: of all files that it will be filled from. */
void stack_table_init(struct stack_table *t, uint64_t bytes);
void stack_table_release(struct stack_table *t);

/* Takes a MODULE, PYTHON or STACK record, if it is a good one. 0 or GPUPROF_NO_MEMORY. */
int stack_table_take(struct stack_table *t, const struct event *e);

/*
 * Adds a stack of `from`, which must stay, with what its frames mean: so that names are looked up
 * for a few stacks, not for all, and (`keeps`, if not NULL) for those of its frames alone that it
 * says. 0 or GPUPROF_NO_MEMORY.
 */
typedef bool stack_keeps_fn(const struct stack_table *from, uint32_t process, uint64_t word,
                            bool is_innermost);
int stack_table_pick(struct stack_table *to, const struct stack_table *from, uint32_t process,
                     uint32_t number, stack_keeps_fn *keeps);

/* The stack's frames, innermost first; their number. */
uint32_t stack_table_words(const struct stack_table *t, const struct recorded_stack *stack,
                           uint64_t words[static FRAME_COUNT_MAX]);

/* Is any of them a Python frame? */
bool stack_table_has_python(const struct stack_table *t, const struct recorded_stack *stack);

/* So many at most: `most`, or what is for free and `ratio` for each byte. */
uint32_t stack_table_limit(uint32_t most, uint32_t free, uint32_t ratio, uint64_t bytes);

/* Views; NULL: no record of that number. `process` is the process's index. */
const struct recorded_stack *stack_table_stack(const struct stack_table *t, uint32_t process,
                                               uint32_t number);
const struct stack_module *stack_table_module(const struct stack_table *t, uint32_t process,
                                              uint32_t number);
const struct stack_place *stack_table_place(const struct stack_table *t, uint32_t process,
                                            uint32_t number);

#endif
