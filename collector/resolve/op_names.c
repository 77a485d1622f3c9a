/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/op_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text)
{
    static const struct {
        const char *prefix;
        bool is_label;
        enum op_kind kind;
    } kinds[] = {
        {OP_OPTIMIZER_PREFIX, true, OP_KIND_OPTIMIZER},
        {"Optimizer.zero_grad#", true, OP_KIND_ZERO_GRAD},
        {OP_PROFILER_PREFIX, true, OP_KIND_PROFILER},
        {"enumerate(DataLoader)#", true, OP_KIND_LOADER},
        /* Without PyTorch's layout, scopes are not known either. */
        {"autograd::engine::", false, OP_KIND_BACKWARD},
    };
    if (scope == OP_SCOPE_BACKWARD)
        return OP_KIND_BACKWARD;
    for (size_t i = 0; text && i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is_label == (scope == OP_SCOPE_LABEL) &&
            strncmp(text->shown, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].kind;
    return OP_KIND_PLAIN;
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

/* Has the numbers of the operator that it evaluates; PyTorch's arrows lead to that one. */
#define EVALUATES "autograd::engine::evaluate_function"

void op_pairs_release(struct op_pairs *pairs)
{
    free(pairs->slots);
    *pairs = (struct op_pairs){0};
}

static uint32_t op_pairs_slot(const struct forward_op *key)
{
    uint64_t hash = (key->process * 31ull + key->thread) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(((hash >> 40) + key->sequence) % OP_PAIRS_MAX);
}

static bool op_pairs_same(const struct forward_op *a, const struct forward_op *b)
{
    return a->number && a->process == b->process && a->thread == b->thread &&
           a->sequence == b->sequence;
}

const struct forward_op *op_pairs_keep(struct op_pairs *pairs, const struct host_span *op,
                                       uint64_t thread)
{
    struct forward_op made = {.process = op->process->index,
                              .thread = thread,
                              .sequence = op->sequence,
                              .number = op->number,
                              .begin_ns = op->begin_ns,
                              .row = op->row};
    if (!op->sequence || !thread || op->forward_thread || op_is_label(op) || op->is_traced)
        return NULL;
    if (!pairs->slots)
        pairs->slots = memory_new(OP_PAIRS_MAX, sizeof *pairs->slots);
    struct forward_op *kept = &pairs->slots[op_pairs_slot(&made)];
    if (op_pairs_same(kept, &made) && kept->number > made.number)
        return NULL;
    *kept = made;
    return kept;
}

const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct host_span *op,
                                       const struct kernel_name *name)
{
    struct forward_op key = {
        .process = op->process->index, .thread = op->forward_thread, .sequence = op->sequence};
    if (!pairs->slots || !op->sequence || !op->forward_thread || op->is_traced ||
        op->scope != OP_SCOPE_BACKWARD ||
        (name && strncmp(name->shown, EVALUATES, sizeof EVALUATES - 1) == 0))
        return NULL;
    const struct forward_op *found = &pairs->slots[op_pairs_slot(&key)];
    return op_pairs_same(found, &key) && found->begin_ns <= op->begin_ns ? found : NULL;
}
