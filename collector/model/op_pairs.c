/* SPDX-License-Identifier: Apache-2.0 */
#include "model/op_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

/* It has the number of what it evaluates; PyTorch's arrows lead to that. */
#define EVALUATES "autograd::engine::evaluate_function"

void op_pairs_release(struct op_pairs *pairs)
{
    free(pairs->slots);
    *pairs = (struct op_pairs){0};
}

static uint32_t slot_of(const struct forward_op *key)
{
    uint64_t hash = (key->process * 31ull + key->thread) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(((hash >> 40) + key->sequence) % OP_PAIRS_MAX);
}

static bool is_same(const struct forward_op *a, const struct forward_op *b)
{
    return a->number && a->process == b->process && a->thread == b->thread &&
           a->sequence == b->sequence;
}

int op_pairs_keep(struct op_pairs *pairs, const struct op *op, uint64_t thread, uint32_t *slot)
{
    struct forward_op made = {.process = op->process->index,
                              .thread = thread,
                              .sequence = op->sequence,
                              .number = op->number,
                              .begin_ns = op->begin_ns,
                              .row = op->row};
    if (!op->sequence || !thread || op->forward_thread || op_is_label(op) || op->is_traced)
        return 0;
    if (!pairs->slots)
        pairs->slots = calloc(OP_PAIRS_MAX, sizeof *pairs->slots);
    if (!pairs->slots)
        return GPUPROF_NO_MEMORY;
    *slot = slot_of(&made);
    struct forward_op *kept = &pairs->slots[*slot];
    if (is_same(kept, &made) && kept->number > made.number)
        return 0;
    *kept = made;
    return 1;
}

const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct op *op,
                                       const struct kernel_name *name)
{
    struct forward_op key = {
        .process = op->process->index, .thread = op->forward_thread, .sequence = op->sequence};
    if (!pairs->slots || !op->sequence || !op->forward_thread || op->is_traced ||
        op->scope != OP_SCOPE_BACKWARD ||
        (name && strncmp(name->shown, EVALUATES, sizeof EVALUATES - 1) == 0))
        return NULL;
    const struct forward_op *found = &pairs->slots[slot_of(&key)];
    return is_same(found, &key) && found->begin_ns <= op->begin_ns ? found : NULL;
}
