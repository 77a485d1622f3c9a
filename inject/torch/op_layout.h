/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the fields of at::RecordFunction that no exported function returns. A table lists the known
 * layouts (known_versions.h); the first operators are checked against it, with reads through the
 * kernel. If no layout matches, the fields are not read: operators then have only names.
 */
#ifndef GPUPROF_INJECT_OP_LAYOUT_H
#define GPUPROF_INJECT_OP_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#define OP_SCOPE 96 /* offset of a byte in all layouts */
/* how long to wait for another thread's check, which takes microseconds and is rare */
#define LOOK_LOCK_NS 100000000u

struct op_layout {
    uint16_t sequence; /* offset of an int64_t; -1 there: none */
    uint16_t inputs;   /* offset of the address and number of its values */
    /*
     * offset of the thread that its forward operator ran on; 0 there: it is not a backward operator
     */
    uint16_t forward;
};

/* The layout, as soon as enough operators were checked; index 1 for operators with inputs. */
extern _Atomic(const struct op_layout *) op_layout_known[2];

/* Returns true if no layout matches; no more operators are checked then. */
bool op_layout_is_refused(void);

/* Call it in the child of a fork: no thread there is checking. */
void op_layout_reset(void);

/* Checks one of the first operators, whose name is `name`; it has inputs if they were requested.
 * Returns its layout, or NULL if not known. Keeps errno. */
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
