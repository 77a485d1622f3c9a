/* SPDX-License-Identifier: Apache-2.0 */
#include "model/library_flops.h"

#include <string.h>

#include "api/api.h"
#include "record/library_text.h"

#define NUMBER_MAX  (1ull << 48) /* of a size: what is above was negative, or made up */
#define SIZES_MAX   8            /* dimensions of a tensor */
#define TENSORS_MAX 8            /* of an operation of a plan */

enum library_formula {
    FLOPS_NONE,
    FLOPS_PRODUCT, /* of matrices: m x k, k x n */
    FLOPS_VECTOR,  /* of an m x n matrix and a vector */
    FLOPS_DOT,     /* of two vectors of n */
    FLOPS_SOLVE    /* a triangular matrix, m x n right sides */
};

static const uint8_t formulae[API_ROLE_COUNT] = {
#define LIBRARY_FLOPS(ROLE, formula) [API_DOES_##ROLE] = FLOPS_##formula,
#include "model/library_flops.def"
};

/* ---- arithmetic that does not overflow ------------------------------------------------------- */

/* *product times `factor`; false: more than fits, or a factor that is none. */
static bool times(uint64_t *product, uint64_t factor)
{
    return factor <= NUMBER_MAX && !__builtin_mul_overflow(*product, factor, product);
}

/* a * b * c numbers of that type are added to *bytes. */
static bool add_bytes(uint64_t *bytes, unsigned type, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t bits = library_type_bits(type);
    return bits && times(&bits, a) && times(&bits, b) && times(&bits, c) &&
           !__builtin_add_overflow(*bytes, bits / 8 + (bits % 8 != 0), bytes);
}

/* ---- of arguments ---------------------------------------------------------------------------- */

static bool product(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    work->flops = library_type_is_complex(s->a_type) ? 8 : 2;
    work->has_bytes = add_bytes(&work->bytes, s->a_type, s->m, s->k, batch) &&
                      add_bytes(&work->bytes, s->b_type, s->k, s->n, batch) &&
                      add_bytes(&work->bytes, s->d_type, s->m, s->n, batch);
    return s->has_m && s->has_n && s->has_k && times(&work->flops, s->m) &&
           times(&work->flops, s->n) && times(&work->flops, s->k) && times(&work->flops, batch);
}

static bool vector(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    /* The vectors have m and n numbers, whichever of them is the result. */
    work->flops = library_type_is_complex(s->a_type) ? 8 : 2;
    work->has_bytes = add_bytes(&work->bytes, s->a_type, s->m, s->n, batch) &&
                      add_bytes(&work->bytes, s->a_type, s->m, 1, batch) &&
                      add_bytes(&work->bytes, s->a_type, s->n, 1, batch);
    return s->has_m && s->has_n && times(&work->flops, s->m) && times(&work->flops, s->n) &&
           times(&work->flops, batch);
}

static bool dot(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    work->flops = library_type_is_complex(s->a_type) ? 8 : 2;
    work->has_bytes = add_bytes(&work->bytes, s->a_type, s->n, 2, batch);
    return s->has_n && times(&work->flops, s->n) && times(&work->flops, batch);
}

/* A triangle of m x m on the left, or n x n on the right, of which half is there; the right sides
 * are read and written. */
static bool solve(const struct library_shape *s, uint64_t batch, struct library_work *work)
{
    uint64_t size = s->side ? s->n : s->m, triangle = 0;
    work->flops = library_type_is_complex(s->a_type) ? 4 : 1;
    work->has_bytes = size < NUMBER_MAX && add_bytes(&triangle, s->a_type, size, size + 1, batch) &&
                      add_bytes(&work->bytes, s->a_type, s->m, s->n, batch) &&
                      !__builtin_mul_overflow(work->bytes, 2, &work->bytes) &&
                      !__builtin_add_overflow(work->bytes, triangle / 2, &work->bytes);
    return s->has_m && s->has_n && times(&work->flops, s->m) && times(&work->flops, s->n) &&
           times(&work->flops, size) && times(&work->flops, batch);
}

struct library_work library_work_of(unsigned does, const struct library_shape *s)
{
    struct library_work work = {.type = s->a_type == s->b_type ? s->a_type : LIBRARY_TYPE_NONE};
    uint64_t batch = s->batch ? s->batch : 1;
    switch (does < API_ROLE_COUNT ? formulae[does] : FLOPS_NONE) {
    case FLOPS_PRODUCT: work.has_flops = product(s, batch, &work); break;
    case FLOPS_VECTOR: work.has_flops = vector(s, batch, &work); break;
    case FLOPS_DOT: work.has_flops = dot(s, batch, &work); break;
    case FLOPS_SOLVE: work.has_flops = solve(s, batch, &work); break;
    default: break;
    }
    return work;
}

/* ---- of a plan's text ------------------------------------------------------------------------ */

struct words {
    const char *at;
    const char *end;
};

/* A tensor of an operation: x=8,64,56,56:f16. */
struct tensor {
    struct words name;
    uint64_t sizes[SIZES_MAX];
    uint32_t count;
    uint8_t type;
};

struct operation {
    struct words name;
    struct tensor tensors[TENSORS_MAX];
    uint32_t count;
};

static struct words cut(struct words *from, char at)
{
    struct words word = *from;
    const char *found = memchr(from->at, at, (size_t)(from->end - from->at));
    word.end = found ? found : from->end;
    from->at = found ? found + 1 : from->end;
    return word;
}

static bool is_word(struct words w, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(w.end - w.at) == length && memcmp(w.at, text, length) == 0;
}

static uint8_t type_named(struct words w)
{
    for (unsigned i = 0; i < LIBRARY_TYPE_NONE; i++)
        if (cuda_type_text(i) && is_word(w, cuda_type_text(i)))
            return (uint8_t)i;
    return LIBRARY_TYPE_NONE;
}

static bool read_number(struct words w, uint64_t *number)
{
    *number = 0;
    for (const char *p = w.at; p < w.end; p++) {
        if (*p < '0' || *p > '9' || *number > NUMBER_MAX)
            return false;
        *number = *number * 10 + (uint64_t)(*p - '0');
    }
    return w.at < w.end;
}

/* A parameter (stride=1,1) has no type, and is no tensor. */
static void read_tensor(struct words word, struct operation *o)
{
    struct tensor *t = &o->tensors[o->count];
    *t = (struct tensor){.name = cut(&word, '=')};
    struct words sizes = cut(&word, ':');
    t->type = type_named(word);
    while (sizes.at < sizes.end && t->count < SIZES_MAX)
        if (!read_number(cut(&sizes, ','), &t->sizes[t->count++]))
            return;
    o->count += t->type != LIBRARY_TYPE_NONE && sizes.at == sizes.end && t->count;
}

static void read_operation(struct words text, struct operation *o)
{
    while (text.at < text.end && *text.at == ' ')
        text.at++;
    *o = (struct operation){.name = cut(&text, ' ')};
    while (text.at < text.end && o->count < TENSORS_MAX)
        read_tensor(cut(&text, ' '), o);
}

/* The tensor of one of these names: a gradient stands for what it is the gradient of. */
static const struct tensor *tensor_of(const struct operation *o, const char *name,
                                      const char *gradient)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (is_word(o->tensors[i].name, name) || is_word(o->tensors[i].name, gradient))
            return &o->tensors[i];
    return NULL;
}

static bool times_sizes(uint64_t *product, const struct tensor *t, uint32_t from)
{
    for (uint32_t i = from; i < t->count; i++)
        if (!times(product, t->sizes[i]))
            return false;
    return true;
}

static bool add_tensor(uint64_t *bytes, const struct tensor *t)
{
    uint64_t count = 1;
    return times_sizes(&count, t, 0) && add_bytes(bytes, t->type, count, 1, 1);
}

/*
 * Forward, or one of the two gradients: the filter is laid on as often as its output has points,
 * and has for each of them the channels of its group, in all of the three. A filter of k outputs,
 * c/groups, r, s: 2 * (n * k * p * q) * (c/groups * r * s).
 */
static bool convolution(const struct operation *o, struct library_work *work)
{
    const struct tensor *x = tensor_of(o, "x", "dx"), *w = tensor_of(o, "w", "dw");
    const struct tensor *y = tensor_of(o, "y", "dy");
    if (!x || !w || !y || w->count < 3 || x->count != w->count || y->count != w->count)
        return false;
    work->flops = 2;
    work->type = x->type == w->type ? x->type : LIBRARY_TYPE_NONE;
    work->has_bytes =
        add_tensor(&work->bytes, x) && add_tensor(&work->bytes, w) && add_tensor(&work->bytes, y);
    return times_sizes(&work->flops, y, 0) && times_sizes(&work->flops, w, 1);
}

static bool matrices(const struct operation *o, struct library_work *work)
{
    const struct tensor *a = tensor_of(o, "a", "a"), *b = tensor_of(o, "b", "b");
    const struct tensor *c = tensor_of(o, "c", "c");
    if (!a || !b || !c || a->count < 2 || c->count < 2)
        return false;
    work->flops = 2;
    work->type = a->type == b->type ? a->type : LIBRARY_TYPE_NONE;
    work->has_bytes =
        add_tensor(&work->bytes, a) && add_tensor(&work->bytes, b) && add_tensor(&work->bytes, c);
    return times_sizes(&work->flops, c, 0) && times(&work->flops, a->sizes[a->count - 1]);
}

static bool is_counted(const struct operation *o, bool *is_convolution)
{
    *is_convolution = is_word(o->name, "convolution_forward") ||
                      is_word(o->name, "convolution_backward_data") ||
                      is_word(o->name, "convolution_backward_filter");
    return *is_convolution || is_word(o->name, "matmul");
}

/* What is neither a convolution nor a product is little beside them, and none of a plan without. */
struct library_work library_plan_work(const char *text, size_t bytes)
{
    struct library_work all = {.type = LIBRARY_TYPE_NONE};
    struct words rest = {text, text + bytes};
    bool is_convolution;
    for (unsigned found = 0; rest.at < rest.end;) {
        struct operation o;
        struct library_work one = {.has_bytes = false};
        read_operation(cut(&rest, ';'), &o);
        if (!is_counted(&o, &is_convolution))
            continue;
        bool is_known = is_convolution ? convolution(&o, &one) : matrices(&o, &one);
        if (!is_known || __builtin_add_overflow(all.flops, one.flops, &all.flops))
            return (struct library_work){.type = LIBRARY_TYPE_NONE};
        all.type = found && all.type != one.type ? LIBRARY_TYPE_NONE : one.type;
        /* Of several, what one hands to the next need not leave the chip. */
        all.has_bytes = !found && one.has_bytes;
        all.bytes = one.bytes;
        all.has_flops = true;
        found++;
    }
    return all;
}
