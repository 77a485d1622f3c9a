/* SPDX-License-Identifier: Apache-2.0 */
#include "flops/op_flops.h"

#include <math.h>
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
    FLOPS_CONVOLUTION_BACKWARD,
    FLOPS_ATTENTION,
    FLOPS_ATTENTION_BACKWARD
};

/* Operators with floating-point operations that follow from their inputs. Those that need values on
 * the device (such as the sequence lengths of _flash_attention_forward) have no row. */
static const struct op_formula formulae[] = {
    {"aten::mm", FLOPS_PRODUCT, FLOPS_PRODUCT, 0},
    {"aten::addmm", FLOPS_PRODUCT, FLOPS_PRODUCT, 1},
    {"aten::bmm", FLOPS_BATCHED, FLOPS_BATCHED, 0},
    {"aten::baddbmm", FLOPS_BATCHED, FLOPS_BATCHED, 1},
    {"aten::_scaled_mm", FLOPS_NONE, FLOPS_PRODUCT, 0},
    {"aten::mul", FLOPS_ELEMENTS, FLOPS_NONE, 0},
    {"aten::add", FLOPS_ELEMENTS, FLOPS_NONE, 0},
    {"aten::conv2d", FLOPS_CONV2D, FLOPS_NONE, 0},
    {"aten::convolution", FLOPS_NONE, FLOPS_CONVOLUTION, 0},
    {"aten::_convolution", FLOPS_NONE, FLOPS_CONVOLUTION, 0},
    {"aten::convolution_backward", FLOPS_NONE, FLOPS_CONVOLUTION_BACKWARD, 0},
    {"aten::_scaled_dot_product_flash_attention", FLOPS_NONE, FLOPS_ATTENTION, 0},
    {"aten::_scaled_dot_product_efficient_attention", FLOPS_NONE, FLOPS_ATTENTION, 0},
    {"aten::_scaled_dot_product_cudnn_attention", FLOPS_NONE, FLOPS_ATTENTION, 0},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", FLOPS_NONE, FLOPS_ATTENTION, 0},
    {"aten::_scaled_dot_product_flash_attention_backward", FLOPS_NONE, FLOPS_ATTENTION_BACKWARD, 0},
    {"aten::_scaled_dot_product_efficient_attention_backward", FLOPS_NONE, FLOPS_ATTENTION_BACKWARD,
     0},
    {"aten::_scaled_dot_product_cudnn_attention_backward", FLOPS_NONE, FLOPS_ATTENTION_BACKWARD, 0},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", FLOPS_NONE,
     FLOPS_ATTENTION_BACKWARD, 0},
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

/* ---- what it was called with ----------------------------------------------------------------- */

/* Sets a value of an input, which is not known if no formula can use that number, such as a
 * negative one. */
static void set_value(struct input *in, uint32_t i, bool is_whole, uint64_t number)
{
    if (i < VALUES_MAX && is_whole && number <= NUMBER_MAX)
        in->values[i] = number;
    else
        in->count = UINT32_MAX;
}

static bool is_whole(const struct op_value *value)
{
    return value->kind == OP_INT || value->kind == OP_BOOL;
}

static bool read_inputs(struct inputs *all, const char *bytes, uint32_t byte_count)
{
    struct op_values v = {.bytes = byte_reader((const uint8_t *)bytes, byte_count)};
    struct op_value value = {.count = 0};
    for (all->count = 0; all->count < INPUTS_MAX; all->count++) {
        struct input *in = &all->list[all->count];
        if (op_values_next(&v, &value) <= 0 || value.kind == OP_CUT)
            break;
        *in = (struct input){value.kind, value.type, is_whole(&value) ? 1 : value.count, {0}};
        for (uint32_t i = 0; value.kind == OP_TENSOR && i < value.count; i++)
            set_value(in, i, true, value.sizes[i]);
        if (is_whole(&value))
            set_value(in, 0, true, (uint64_t)value.number);
        for (uint32_t i = 0; v.list_left; i++) {
            if (op_values_next(&v, &value) < 0)
                return false;
            set_value(in, i, is_whole(&value), (uint64_t)value.number);
        }
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

/* Each returns NAN if the operations are not known. */

static double sizes_product(const struct input *in, unsigned from)
{
    double product = 1;
    for (unsigned i = from; i < in->count; i++)
        product *= (double)in->values[i];
    return product;
}

static double elements(const struct inputs *all, unsigned at)
{
    const struct input *in = input(all, at, OP_TENSOR);
    return in ? sizes_product(in, 0) : NAN;
}

/* A matrix product with `batches` leading dimensions: 2 * m * n * k. */
static double product(const struct inputs *all, unsigned at, unsigned batches)
{
    const struct input *a = tensor(all, at, batches + 2), *b = tensor(all, at + 1, batches + 2);
    if (!a || !b || a->values[batches + 1] != b->values[batches] ||
        (batches && a->values[0] != b->values[0]))
        return NAN;
    return 2 * sizes_product(a, 0) * (double)b->values[batches + 1];
}

/* Output size of a convolution in one dimension. */
static double output_size(uint64_t size, uint64_t kernel, uint64_t stride, uint64_t padding,
                          uint64_t dilation)
{
    double room = (double)size + 2 * (double)padding;
    double span = (double)dilation * ((double)kernel - 1);
    return stride && kernel && span < room ? floor((room - span - 1) / (double)stride) + 1 : NAN;
}

/* 2 * batch * (points that the filter is applied to) * (numbers of the filter). conv2d has groups
 * where the others say whether it is transposed. */
static double convolution(const struct inputs *all, bool is_conv2d)
{
    const struct input *x = input(all, 0, OP_TENSOR);
    const struct input *transposed = is_conv2d ? NULL : input(all, 6, OP_BOOL);
    if (!x || x->count < 3 || (is_conv2d ? x->count != 4 : !transposed))
        return NAN;
    unsigned count = x->count - 2;
    const struct input *w = tensor(all, 1, x->count);
    const struct input *stride = numbers(all, 3, count), *padding = numbers(all, 4, count);
    const struct input *dilation = numbers(all, 5, count);
    if (!w)
        return NAN;
    double flops = 2 * (double)x->values[0] * sizes_product(w, 0);
    if (transposed && transposed->values[0])
        return flops * sizes_product(x, 2);
    if (!stride || !padding || !dilation)
        return NAN;
    for (unsigned i = 0; i < count; i++)
        flops *= output_size(x->values[i + 2], w->values[i + 2], number_at(stride, i),
                             number_at(padding, i), number_at(dilation, i));
    return flops;
}

/* The requested gradients of input and filter; flop_counter ignores the groups in the latter. */
static double convolution_backward(const struct inputs *all)
{
    const struct input *grad = input(all, 0, OP_TENSOR);
    if (!grad || grad->count < 3)
        return NAN;
    const struct input *x = tensor(all, 1, grad->count), *w = tensor(all, 2, grad->count);
    const struct input *transposed = input(all, 7, OP_BOOL), *mask = input(all, 10, OP_LIST);
    if (!x || !w || !transposed || !mask || mask->count != 3)
        return NAN;
    const struct input *points = transposed->values[0] ? x : grad;
    const struct input *other = transposed->values[0] ? grad : x;
    double flops = 0;
    if (mask->values[0])
        flops += 2 * (double)grad->values[0] * sizes_product(points, 2) * sizes_product(w, 0);
    if (mask->values[1])
        flops += 2 * (double)other->values[1] * sizes_product(w, 2) * sizes_product(points, 0);
    return flops;
}

/* 2 * b * h * sq * sk * (keys * key size + values * value size). Several query heads may share one
 * head of keys and values. */
static double attention(const struct inputs *all, unsigned at, double keys, double values)
{
    const struct input *q = tensor(all, at, 4), *k = tensor(all, at + 1, 4);
    const struct input *v = tensor(all, at + 2, 4);
    if (!q || !k || !v || q->values[3] != k->values[3] || k->values[2] != v->values[2])
        return NAN;
    if (q->values[0] != k->values[0] || q->values[0] != v->values[0] ||
        k->values[1] != v->values[1] || !k->values[1] || q->values[1] % k->values[1])
        return NAN;
    return 2 * (double)q->values[0] * (double)q->values[1] * (double)q->values[2] *
           (double)k->values[2] * (keys * (double)q->values[3] + values * (double)v->values[3]);
}

static double attention_backward(const struct inputs *all)
{
    const struct input *grad = tensor(all, 0, 4), *q = tensor(all, 1, 4), *v = tensor(all, 3, 4);
    if (!grad || !q || !v || memcmp(grad->values, q->values, 3 * sizeof grad->values[0]) != 0 ||
        grad->values[3] != v->values[3])
        return NAN;
    return attention(all, 1, 3, 2);
}

static bool apply(enum flop_formula formula, const struct inputs *all, unsigned first,
                  uint64_t *number)
{
    double flops = NAN;
    switch (formula) {
    case FLOPS_ELEMENTS: flops = elements(all, first); break;
    case FLOPS_PRODUCT: flops = product(all, first, 0); break;
    case FLOPS_BATCHED: flops = product(all, first, 1); break;
    case FLOPS_CONV2D: flops = convolution(all, true); break;
    case FLOPS_CONVOLUTION: flops = convolution(all, false); break;
    case FLOPS_CONVOLUTION_BACKWARD: flops = convolution_backward(all); break;
    case FLOPS_ATTENTION: flops = attention(all, first, 1, 1); break;
    case FLOPS_ATTENTION_BACKWARD: flops = attention_backward(all); break;
    case FLOPS_NONE: break;
    }
    bool is_known = flops < 0x1p63; /* not if it is NAN */
    *number = is_known ? (uint64_t)flops : 0;
    return is_known;
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
