/* SPDX-License-Identifier: Apache-2.0 */
#include "flops/op_flops.h"

#include <string.h>

#include "record/op_record.h"

#define INPUTS_MAX 12 /* inputs of an operator; formulas need up to output_mask */
#define VALUES_MAX 16 /* dimensions of a tensor, or values of a list */
#define NUMBER_MAX (1ull << 48)

enum flop_formula {
    FLOPS_NONE,
    FLOPS_ELEMENTS,
    FLOPS_PRODUCT,
    FLOPS_BATCHED,
    FLOPS_CONV2D,
    FLOPS_CONVOLUTION,
    FLOPS_CUDNN_CONVOLUTION,
    FLOPS_SLOW_CONVOLUTION,
    FLOPS_CONVOLUTION_BACKWARD,
    FLOPS_ATTENTION,
    FLOPS_ATTENTION_BACKWARD
};

struct op_formula {
    const char *name;
    uint8_t profiler;
    uint8_t counter;
    uint8_t first;
};

static const struct op_formula formulae[] = {
#define OP_FLOPS(name, profiler, counter, first) {name, FLOPS_##profiler, FLOPS_##counter, first},
#include "flops/op_flops.def"
};

/* Sizes of a tensor, numbers of a list, or a number; `count` UINT32_MAX: not known. */
struct input {
    enum op_value_kind kind;
    uint8_t type;
    uint32_t count;
    uint64_t values[VALUES_MAX];
};

/* Inputs of a call. Those beyond `count` are zero and fit no formula. */
struct inputs {
    uint32_t count;
    struct input list[INPUTS_MAX];
};

const struct op_formula *op_formula_of(const char *name)
{
    for (unsigned i = 0; i < sizeof formulae / sizeof formulae[0]; i++)
        if (strcmp(formulae[i].name, name) == 0)
            return &formulae[i];
    return NULL;
}

bool op_formula_is_profiled(const struct op_formula *f)
{
    return f->profiler != FLOPS_NONE;
}

bool op_formula_is_counted(const struct op_formula *f)
{
    return f->counter != FLOPS_NONE;
}

/* ---- what it was called with ----------------------------------------------------------------- */

static void op_flops_take_tensor(struct input *in, const struct op_value *value)
{
    in->type = value->type;
    if (value->count > VALUES_MAX)
        in->count = UINT32_MAX;
    for (uint32_t i = 0; i < value->count && i < VALUES_MAX; i++) {
        in->values[i] = value->sizes[i];
        if (in->values[i] > NUMBER_MAX)
            in->count = UINT32_MAX;
    }
}

static bool op_flops_is_whole(const struct op_value *value)
{
    return (value->kind == OP_INT || value->kind == OP_BOOL) && value->number >= 0 &&
           (uint64_t)value->number <= NUMBER_MAX;
}

/* Reads a list. Numbers that no formula can use, such as negative ones, are not known. */
static int op_flops_take_list(struct input *in, struct op_values *v)
{
    struct op_value value;
    int result = 1;
    for (uint32_t i = 0; v->list_left && result > 0; i++) {
        result = op_values_next(v, &value);
        if (i < VALUES_MAX && result > 0 && op_flops_is_whole(&value))
            in->values[i] = (uint64_t)value.number;
        else
            in->count = UINT32_MAX;
    }
    return result;
}

static bool read_inputs(struct inputs *all, const char *bytes, uint32_t byte_count)
{
    struct op_values v = {.bytes = byte_reader((const uint8_t *)bytes, byte_count)};
    struct op_value value;
    int result;
    all->count = 0;
    while (all->count < INPUTS_MAX && (result = op_values_next(&v, &value)) > 0) {
        struct input *in = &all->list[all->count];
        *in = (struct input){.kind = value.kind, .count = value.count};
        if (value.kind == OP_CUT)
            break;
        if (value.kind == OP_TENSOR)
            op_flops_take_tensor(in, &value);
        else if (value.kind == OP_LIST && op_flops_take_list(in, &v) < 0)
            return false;
        else if (value.kind == OP_INT || value.kind == OP_BOOL) {
            in->count = op_flops_is_whole(&value) ? 1 : UINT32_MAX;
            in->values[0] = (uint64_t)value.number;
        }
        all->count++;
    }
    return true;
}

static const struct input *input(const struct inputs *all, unsigned at, enum op_value_kind kind)
{
    const struct input *in = at < all->count ? &all->list[at] : NULL;
    return in && in->kind == kind && in->count != UINT32_MAX ? in : NULL;
}

static const struct input *tensor(const struct inputs *all, unsigned at, unsigned dimensions)
{
    const struct input *in = input(all, at, OP_TENSOR);
    return in && in->count == dimensions ? in : NULL;
}

/* A list of `count` numbers, or of one that applies to all. */
static const struct input *numbers(const struct inputs *all, unsigned at, unsigned count)
{
    const struct input *in = input(all, at, OP_LIST);
    return in && (in->count == count || in->count == 1) ? in : NULL;
}

static uint64_t number_at(const struct input *list, unsigned i)
{
    return list->values[list->count == 1 ? 0 : i];
}

/* ---- formulae -------------------------------------------------------------------------------- */

/* Multiplies *flops by `factor`; false: overflow. */
static bool times(uint64_t *flops, uint64_t factor)
{
    return !__builtin_mul_overflow(*flops, factor, flops);
}

static bool times_all(uint64_t *flops, const struct input *in, unsigned from)
{
    for (unsigned i = from; i < in->count; i++)
        if (!times(flops, in->values[i]))
            return false;
    return true;
}

static bool elements(const struct inputs *all, unsigned at, uint64_t *flops)
{
    const struct input *in = input(all, at, OP_TENSOR);
    *flops = 1;
    return in && times_all(flops, in, 0);
}

/* A matrix product with `batches` leading dimensions: 2 * m * n * k. */
static bool product(const struct inputs *all, unsigned at, unsigned batches, uint64_t *flops)
{
    const struct input *a = tensor(all, at, batches + 2), *b = tensor(all, at + 1, batches + 2);
    if (!a || !b || a->values[batches + 1] != b->values[batches])
        return false;
    if (batches && a->values[0] != b->values[0])
        return false;
    *flops = 2;
    return times_all(flops, a, 0) && times(flops, b->values[batches + 1]);
}

/* Output size of a convolution in one dimension. */
static bool output_size(uint64_t size, uint64_t kernel, uint64_t stride, uint64_t padding,
                        uint64_t dilation, uint64_t *out)
{
    uint64_t span;
    if (!stride || !kernel || __builtin_mul_overflow(dilation, kernel - 1, &span) ||
        span >= size + 2 * padding)
        return false;
    *out = (size + 2 * padding - span - 1) / stride + 1;
    return true;
}

/* 2 * batch * (points that the filter is applied to) * (points of the filter) * (in) * (out). */
static bool convolve(uint64_t batch, const uint64_t *points, const uint64_t *filter,
                     unsigned dimensions, uint64_t in, uint64_t out, uint64_t *flops)
{
    *flops = 2;
    for (unsigned i = 0; i < dimensions; i++)
        if (!times(flops, points[i]) || !times(flops, filter[i]))
            return false;
    return times(flops, batch) && times(flops, in) && times(flops, out);
}

/* Indexes of a convolution's parameters among its inputs. */
struct parameters {
    uint8_t stride, padding, dilation, transposed; /* 0: absent, or 1 everywhere */
};

static bool convolution(const struct inputs *all, const struct parameters *at, uint64_t *flops)
{
    const struct input *x = input(all, 0, OP_TENSOR);
    if (!x || x->count < 3)
        return false;
    unsigned count = x->count - 2;
    const struct input *w = tensor(all, 1, x->count);
    const struct input *transposed = at->transposed ? input(all, at->transposed, OP_BOOL) : NULL;
    if (!w || (at->transposed && !transposed))
        return false;
    if (transposed && transposed->values[0])
        return convolve(x->values[0], &x->values[2], &w->values[2], count, w->values[0],
                        w->values[1], flops);
    static const struct input ones = {.count = 1, .values = {1}};
    const struct input *stride = numbers(all, at->stride, count);
    const struct input *padding = numbers(all, at->padding, count);
    const struct input *dilation = at->dilation ? numbers(all, at->dilation, count) : &ones;
    uint64_t points[VALUES_MAX];
    if (!stride || !padding || !dilation)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!output_size(x->values[i + 2], w->values[i + 2], number_at(stride, i),
                         number_at(padding, i), number_at(dilation, i), &points[i]))
            return false;
    return convolve(x->values[0], points, &w->values[2], count, w->values[0], w->values[1], flops);
}

/* with_flops uses the channels of the input for the filter, and divides by the groups. */
static bool conv2d(const struct inputs *all, uint64_t *flops)
{
    const struct input *x = tensor(all, 0, 4), *w = tensor(all, 1, 4);
    const struct input *stride = input(all, 3, OP_LIST), *padding = input(all, 4, OP_LIST);
    const struct input *dilation = input(all, 5, OP_LIST), *groups = input(all, 6, OP_INT);
    uint64_t points[2];
    if (!x || !w || !stride || !padding || !dilation || !groups || !groups->values[0] ||
        stride->count != 2 || padding->count != 2 || dilation->count != 2)
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (!output_size(x->values[i + 2], w->values[i + 2], stride->values[i], padding->values[i],
                         dilation->values[i], &points[i]))
            return false;
    if (!convolve(x->values[0], points, &w->values[2], 2, x->values[1], w->values[0], flops))
        return false;
    *flops /= groups->values[0];
    return true;
}

/* The requested gradients of input and filter; flop_counter ignores the groups in the latter. */
static bool convolution_backward(const struct inputs *all, uint64_t *flops)
{
    const struct input *grad = input(all, 0, OP_TENSOR);
    if (!grad || grad->count < 3)
        return false;
    const struct input *x = tensor(all, 1, grad->count), *w = tensor(all, 2, grad->count);
    const struct input *transposed = input(all, 7, OP_BOOL), *mask = input(all, 10, OP_LIST);
    unsigned count = grad->count - 2;
    uint64_t of_input = 0, of_filter = 0;
    if (!x || !w || !transposed || !mask || mask->count != 3)
        return false;
    bool is_transposed = transposed->values[0];
    const struct input *points = is_transposed ? x : grad;
    if (mask->values[0] && !convolve(grad->values[0], &points->values[2], &w->values[2], count,
                                     w->values[0], w->values[1], &of_input))
        return false;
    const struct input *batch = is_transposed ? grad : x, *other = is_transposed ? x : grad;
    if (mask->values[1] && !convolve(batch->values[1], &w->values[2], &other->values[2], count,
                                     other->values[0], other->values[1], &of_filter))
        return false;
    return !__builtin_add_overflow(of_input, of_filter, flops);
}

/* 2 * b * h * sq * sk * (keys * key size + values * value size). Several query heads may share one
 * head of keys and values. */
static bool attention(const struct inputs *all, unsigned at, unsigned keys, unsigned values,
                      uint64_t *flops)
{
    const struct input *q = tensor(all, at, 4), *k = tensor(all, at + 1, 4);
    const struct input *v = tensor(all, at + 2, 4);
    if (!q || !k || !v || q->values[3] != k->values[3] || k->values[2] != v->values[2])
        return false;
    if (q->values[0] != k->values[0] || q->values[0] != v->values[0] ||
        k->values[1] != v->values[1] || !k->values[1] || q->values[1] % k->values[1])
        return false;
    *flops = 2;
    return times(flops, q->values[0]) && times(flops, q->values[1]) && times(flops, q->values[2]) &&
           times(flops, k->values[2]) && times(flops, keys * q->values[3] + values * v->values[3]);
}

static bool attention_backward(const struct inputs *all, uint64_t *flops)
{
    const struct input *grad = tensor(all, 0, 4), *q = tensor(all, 1, 4), *v = tensor(all, 3, 4);
    if (!grad || !q || !v || memcmp(grad->values, q->values, 3 * sizeof grad->values[0]) != 0 ||
        grad->values[3] != v->values[3])
        return false;
    return attention(all, 1, 3, 2, flops);
}

static bool apply(enum flop_formula formula, const struct inputs *all, unsigned first,
                  uint64_t *flops)
{
    static const struct parameters usual = {3, 4, 5, 6}, cudnn = {3, 2, 4, 0}, slow = {4, 5, 0, 0};
    switch (formula) {
    case FLOPS_ELEMENTS: return elements(all, first, flops);
    case FLOPS_PRODUCT: return product(all, first, 0, flops);
    case FLOPS_BATCHED: return product(all, first, 1, flops);
    case FLOPS_CONV2D: return conv2d(all, flops);
    case FLOPS_CONVOLUTION: return convolution(all, &usual, flops);
    case FLOPS_CUDNN_CONVOLUTION: return convolution(all, &cudnn, flops);
    case FLOPS_SLOW_CONVOLUTION: return convolution(all, &slow, flops);
    case FLOPS_CONVOLUTION_BACKWARD: return convolution_backward(all, flops);
    case FLOPS_ATTENTION: return attention(all, first, 1, 1, flops);
    case FLOPS_ATTENTION_BACKWARD: return attention_backward(all, flops);
    case FLOPS_NONE: break;
    }
    return false;
}

struct op_flops op_flops_of(const struct op_formula *f, const char *bytes, uint32_t byte_count)
{
    struct op_flops out = {.type = OP_TYPE_MIXED};
    struct inputs all;
    if (!read_inputs(&all, bytes, byte_count))
        return out;
    out.is_profiled = apply(f->profiler, &all, f->first, &out.profiler);
    out.is_counted = apply(f->counter, &all, f->first, &out.counter);
    const struct input *a = input(&all, f->first, OP_TENSOR);
    const struct input *b = input(&all, f->first + 1u, OP_TENSOR);
    if (out.is_counted && a && b && a->type == b->type)
        out.type = a->type;
    return out;
}
