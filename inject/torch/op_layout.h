/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where at::RecordFunction has what it does not tell by an exported function: a table of what is
 * known (known_versions.h), and a look at the first operators, through the kernel, whether they
 * are laid out as one of its rows. What fits none is not read: operators have names only then.
 */
#ifndef GPUPROF_INJECT_OP_LAYOUT_H
#define GPUPROF_INJECT_OP_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#define OP_SCOPE 96 /* in all of them: a byte */
#define LOOK_LOCK_NS                                                                               \
    100000000u /* to wait for another thread's look: a few microseconds, and rare */

struct op_layout {
    uint16_t sequence; /* int64_t; -1: none */
    uint16_t inputs;   /* address and count of its values */
    uint16_t forward;  /* the thread that its forward operator ran on; 0: it is no backward one */
};

/* Once enough operators were looked at: [1] with their inputs, which are asked for or not. */
extern _Atomic(const struct op_layout *) op_layout_known[2];

/* True: none of them fits; nothing is looked at any more. */
bool op_layout_is_refused(void);

/* In the child of a fork: no thread of it is looking. */
void op_layout_reset(void);

/* Looks at one of the first, whose name is `name`, and which has its inputs if they were asked for.
 * NULL: not known. errno is kept. */
const struct op_layout *op_layout_look(const void *function, const char *name, bool has_inputs);

static inline const struct op_layout *op_layout_of(const void *function, const char *name,
                                                   bool has_inputs)
{
    const struct op_layout *l =
        atomic_load_explicit(&op_layout_known[has_inputs], memory_order_relaxed);
    return likely(l) ? l : op_layout_look(function, name, has_inputs);
}

static inline uint64_t op_word(const void *at, unsigned offset)
{
    uint64_t word;
    memcpy(&word, (const char *)at + offset, sizeof word);
    return word;
}

#endif
