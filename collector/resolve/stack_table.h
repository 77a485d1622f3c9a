/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers as recorded: modules, places in Python code and stacks of all processes, by number (see
 * "Who made a call" in event-stream.md). The survey fills it; nothing is symbolised here. Frames
 * that stacks of a process share, from the outermost on, are stored once: a stack is the path
 * outwards from its innermost frame. Memory: 100 bytes a module, place or stack and 16 to 48 a
 * frame, up to the maxima below, and each text once, up to those of kernel_names.h. Records beyond
 * that are counted.
 */
#ifndef GPUPROF_COLLECTOR_STACK_TABLE_H
#define GPUPROF_COLLECTOR_STACK_TABLE_H

#include <stdbool.h>

#include "base/key_map.h"
#include "frame.h"
#include "record.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

/* Checks of the records that describe stacks (MODULE, PYTHON, STACK). */
#define BUILD_ID_MAX 64 /* bytes of a build id; its text has twice as many */

/* False if no reader can use such a record; readers count it in losses.stacks_unread. */
bool stack_record_is_good(const struct record *r);

#define STACK_MODULES_MAX (1u << 16)
#define STACK_PLACES_MAX  (1u << 20)
#define STACKS_MAX        (1u << 20)
#define STACK_FRAMES_MAX  (1u << 24)

/*
 * A crafted file can hold millions of stacks and frames that differ in a few bytes. So the maximum
 * depends on the size of the files: this many, and more for each byte. Real ones take more bytes.
 */
#define STACKS_FREE           (1u << 16)
#define STACK_FRAMES_FREE     (1u << 18)
#define STACK_FRAMES_PER_BYTE 4

struct stack_module {
    const struct kernel_name *path;     /* NULL: too many texts */
    const struct kernel_name *build_id; /* hexadecimal; NULL: none */
    uint32_t process;
};

struct stack_place {
    const struct kernel_name *file; /* NULL: too many texts */
    const struct kernel_name *function;
    uint32_t line; /* 0: not known */
};

struct stack_frame {
    uint64_t word;   /* frame.h */
    uint32_t parent; /* number of the next outer frame; 0: none */
    uint32_t process;
};

struct recorded_stack {
    uint32_t frame; /* number of the innermost frame */
    uint32_t count; /* number of frames */
    uint32_t flags; /* enum stack_flag */
    uint32_t process;
};

struct stack_table {
    struct kernel_names texts; /* plain */
    struct key_map modules_of; /* (process, number) -> index + 1, like the next two */
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

/* `bytes` is the size of all files that fill it. */
void stack_table_init(struct stack_table *t, uint64_t bytes);
void stack_table_release(struct stack_table *t);

/* Takes a MODULE, PYTHON or STACK record; ignores invalid ones. Returns 0. */
int stack_table_take(struct stack_table *t, const struct event *e);

/* Writes the stack's frames, innermost first. Returns their number. */
uint32_t stack_table_words(const struct stack_table *t, const struct recorded_stack *stack,
                           uint64_t words[static FRAME_COUNT_MAX]);

/* Whether the stack has a Python frame. */
bool stack_table_has_python(const struct stack_table *t, const struct recorded_stack *stack);

/* The maximum: `free`, and `ratio` for each byte of the files, but no more than `most`. */
uint32_t stack_table_limit(uint32_t most, uint32_t free, uint32_t ratio, uint64_t bytes);

/* Return views; NULL: no record of that number. `process` is the process index. */
const struct recorded_stack *stack_table_stack(const struct stack_table *t, uint32_t process,
                                               uint32_t number);
const struct stack_module *stack_table_module(const struct stack_table *t, uint32_t process,
                                              uint32_t number);
const struct stack_place *stack_table_place(const struct stack_table *t, uint32_t process,
                                            uint32_t number);

#endif
