/* SPDX-License-Identifier: Apache-2.0 */
#include "model/op_kind.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text)
{
    if (scope == OP_SCOPE_BACKWARD)
        return OP_KIND_BACKWARD;
    if (!text)
        return OP_KIND_PLAIN;
    if (scope != OP_SCOPE_LABEL) /* where PyTorch's layout is not known, neither are the scopes */
        return begins_with(text->shown, "autograd::engine::") ? OP_KIND_BACKWARD : OP_KIND_PLAIN;
    switch (text->shown[0]) {
    case 'O':
        return begins_with(text->shown, OP_OPTIMIZER_PREFIX)      ? OP_KIND_OPTIMIZER
               : begins_with(text->shown, "Optimizer.zero_grad#") ? OP_KIND_ZERO_GRAD
                                                                  : OP_KIND_PLAIN;
    case 'P':
        return begins_with(text->shown, OP_PROFILER_PREFIX) ? OP_KIND_PROFILER : OP_KIND_PLAIN;
    case 'e':
        return begins_with(text->shown, "enumerate(DataLoader)#") ? OP_KIND_LOADER : OP_KIND_PLAIN;
    default: return OP_KIND_PLAIN;
    }
}

enum op_python op_python_of(const struct kernel_name *text)
{
    const char *shown = text && text->shown[0] == 'P' ? text->shown : "";
    return strcmp(shown, "PythonDispatchMode") == 0 ? OP_PYTHON_MODE
           : strcmp(shown, "PythonSubclass") == 0   ? OP_PYTHON_SUBCLASS
                                                    : OP_PYTHON_NONE;
}

const char *op_hook_name(const struct kernel_name *text)
{
    size_t prefix = strlen(OP_HOOK_PREFIX);
    return strncmp(text->shown, OP_HOOK_PREFIX, prefix) == 0 ? text->shown + prefix : NULL;
}

/* ---- forward and backward operators ---------------------------------------------------------- */

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
